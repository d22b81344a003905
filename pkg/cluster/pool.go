// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// DeviceID identifies a device in the cluster.
type DeviceID struct {
	Driver, Pool, Device string
}

// String returns driver/pool/device.
func (id DeviceID) String() string {
	return id.Driver + "/" + id.Pool + "/" + id.Device
}

// Pool is a resource pool as the whole cluster sees it. The allocator judges
// pools for each node again; see [Pools.For] for when that differs.
type Pool struct {
	Driver, Name string
	// Index is the place of the pool among all, by driver and name.
	Index int
	// Generation is the newest generation of any slice.
	Generation int64
	// Slices are the slices of the newest generation, sorted by name, with the taints of
	// the DeviceTaintRules.
	Slices []*resourceapi.ResourceSlice
	// Obsolete are the slices of older generations.
	Obsolete []*resourceapi.ResourceSlice
	// Expected is the number of slices that the driver declares.
	Expected int64
	// Incomplete pools have more or fewer slices than that. The allocator uses no device of
	// them, and requests for all devices fail.
	Incomplete bool
	// Invalid is why the allocator refuses the pool, empty if it does not. Duplicate device
	// names count only if some node certainly sees both.
	Invalid string
	// BindingConditions is true if a device has some. The allocator tries such
	// pools last.
	BindingConditions bool
}

// Device is a device of the newest generation of a pool.
type Device struct {
	ID DeviceID
	*resourceapi.Device
	Slice *resourceapi.ResourceSlice
	Pool  *Pool
	// index is its place in the slice.
	index int
}

// DeviceIn returns the device of a slice of a pool at an index.
func DeviceIn(pool *Pool, slice *resourceapi.ResourceSlice, index int) Device {
	device := &slice.Spec.Devices[index]
	return Device{
		ID:     DeviceID{Driver: pool.Driver, Pool: pool.Name, Device: device.Name},
		Device: device,
		Slice:  slice,
		Pool:   pool,
		index:  index,
	}
}

// NodeSelection returns the fields that select the nodes of a device.
func (d *Device) NodeSelection() (name *string, all *bool, selector *corev1.NodeSelector) {
	if ptr.Deref(d.Slice.Spec.PerDeviceNodeSelection, false) {
		return d.NodeName, d.AllNodes, d.NodeSelector
	}
	return d.Slice.Spec.NodeName, d.Slice.Spec.AllNodes, d.Slice.Spec.NodeSelector
}

// WhyIncomplete says how many slices of the newest generation there are, for a pool that is
// Incomplete. The allocator compares the number for equality (GatherPools, pools_*.go of
// k8s.io/dynamic-resource-allocation/structured): with a slice too many it uses no device
// of the pool either, for any node whose own slices are not exactly as many as the driver
// declares.
func (p *Pool) WhyIncomplete() string {
	extra := len(p.Slices) - int(p.Expected)
	if extra <= 0 {
		return fmt.Sprintf("%d of %d slices", len(p.Slices), p.Expected)
	}
	noun := "slices"
	if extra == 1 {
		noun = "slice"
	}
	text := fmt.Sprintf("%d %s too many, %d published and %d declared", extra, noun, len(p.Slices), p.Expected)
	oldest := slices.MinFunc(p.Slices, func(a, b *resourceapi.ResourceSlice) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	if oldest.CreationTimestamp.IsZero() {
		return text
	}
	return fmt.Sprintf("%s: the oldest, %s, was published at %s (generation %d)",
		text, oldest.Name, oldest.CreationTimestamp.UTC().Format(time.RFC3339), oldest.Spec.Pool.Generation)
}

// NodePool is a pool as the allocator sees it when it looks at one node.
//
// That differs from the cluster's view ([Pool]) because the allocator starts
// with the slices that target the node, of the newest generation among those.
// If there are as many as the pool is said to have, it looks no further, even
// if other nodes have a newer generation. Else it looks at all slices of the
// pool: if one is newer, the whole pool is outdated for the node; if their
// number is not the expected one, the pool is incomplete. Device names must be
// unique only among the slices that target the node.
type NodePool struct {
	Pool *Pool
	// Generation is the generation that the allocator uses for this node.
	Generation int64
	// AllIgnored is true if all slices that could target the node are Ignored: the
	// allocator does not see the pool.
	AllIgnored bool
	// Outdated is true if the allocator drops the pool because there are
	// slices of a newer generation, none of them for this node.
	Outdated bool
	// Incomplete is true if slices are missing.
	Incomplete bool
	// Invalid is why the allocator refuses the pool, empty if it does not.
	Invalid string
	// Local is true if a slice names the node. Otherwise, all nodes to which the pool looks
	// the same share one NodePool.
	Local bool
	// Slices are the slices of Generation that target the node, and Older the slices of
	// earlier generations; Ignored slices are in neither.
	Slices, Older []*resourceapi.ResourceSlice
	// Ignored are slices that could target the node but do not count.
	Ignored []IgnoredSlice
	// Devices are the devices that target the node, in the order in which the allocator
	// tries them. There are none if it does not use the pool.
	Devices []Device

	// Last is true if the allocator tries the pool after all others: a slice for the node
	// has a device with binding conditions.
	Last bool
}

// Usable reports whether the allocator takes devices from the pool.
func (p *NodePool) Usable() bool {
	return !p.AllIgnored && !p.Outdated && !p.Incomplete && p.Invalid == ""
}

// IgnoredSlice is a slice that the allocator does not look at.
type IgnoredSlice struct {
	Slice *resourceapi.ResourceSlice
	// Reason says why.
	Reason string
	// Gate is the feature gate that would make it count, empty if none would.
	Gate string
}

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
