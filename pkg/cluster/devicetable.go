// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import resourceapi "k8s.io/api/resource/v1"

// DeviceTable maps some devices to values. Mostly, the devices of a slice are looked up one
// after the other: then it is faster than a map of devices. The zero value is empty. Not
// safe for concurrent use.
type DeviceTable[V any] struct {
	rows map[*resourceapi.ResourceSlice][]deviceValue[V]
	// slice is the slice of the last lookup, and row is its row.
	slice *resourceapi.ResourceSlice
	row   []deviceValue[V]
}

type deviceValue[V any] struct {
	value V
	known bool
}

// Get returns the value of a device, and whether it has one.
func (t *DeviceTable[V]) Get(d *Device) (value V, known bool) {
	t.lookAt(d.Slice)
	if t.row == nil {
		return value, false
	}
	return t.row[d.index].value, t.row[d.index].known
}

// Set gives a device a value.
func (t *DeviceTable[V]) Set(d *Device, value V) {
	t.lookAt(d.Slice)
	if t.row == nil {
		if t.rows == nil {
			t.rows = map[*resourceapi.ResourceSlice][]deviceValue[V]{}
		}
		t.row = make([]deviceValue[V], len(d.Slice.Spec.Devices))
		t.rows[d.Slice] = t.row
	}
	t.row[d.index] = deviceValue[V]{value, true}
}

func (t *DeviceTable[V]) lookAt(slice *resourceapi.ResourceSlice) {
	if t.slice != slice {
		t.slice, t.row = slice, t.rows[slice]
	}
}
