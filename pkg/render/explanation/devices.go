// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// writeAllocation draws the allocated devices of a claim, and its consumers.
func writeAllocation(p *page, a *api.Allocation, titled bool) {
	if !titled {
		p.Blank()
	}
	said := "Allocated: " + english.Count(len(a.Devices), "device")
	if a.Nodes != "" {
		said += ", usable on " + a.Nodes
	}
	if !a.Since.IsZero() {
		said += ", since " + a.Since.UTC().Format(time.RFC3339)
	}
	if a.AgeSeconds > 0 {
		said += " (" + render.Age(a.AgeSeconds) + ")"
	}
	p.Text(0, render.Plain, said)
	writeDevices(p, 2, a.Devices)
	if len(a.ReservedFor) == 0 {
		p.Text(0, render.Plain, "Not reserved for any pod")
		return
	}
	const reserved = "Reserved for "
	p.Text(0, render.Plain, reserved+p.Some(english.Texts(a.ReservedFor, api.ObjectRef.Argument), len(a.ReservedFor), p.Width-len(reserved)))
}

// writeDevices lists allocated devices, the requests in a column of their own.
func writeDevices(p *page, indent int, devices []api.AllocatedDevice) {
	rows := make([][]render.Cell, 0, len(devices))
	for i := range devices {
		d := &devices[i]
		request := d.Request
		if d.Container != "" {
			request = cluster.RequestTitle(d.Request, d.Container, d.ExtendedResource)
		}
		rows = append(rows, []render.Cell{{Text: request}, {Text: deviceText(d)}})
	}
	p.Rows(indent, rows, 30)
}

func deviceText(d *api.AllocatedDevice) string {
	said := d.Driver + "/" + d.Pool + "/" + d.Device
	if d.ShareID != "" {
		said += ", share " + d.ShareID
	}
	said += deviceNotes(d)
	return said
}

// deviceNotes lists the peculiarities of an allocated device.
func deviceNotes(d *api.AllocatedDevice) string {
	said := ""
	for _, name := range slices.Sorted(maps.Keys(d.ConsumedCapacity)) {
		said += fmt.Sprintf(", %s %s", inventory.QuantityText(d.ConsumedCapacity[name]), name)
	}
	if d.AdminAccess {
		said += ", admin access"
	}
	if network := render.NetworkText(d.Status); network != "" {
		said += ", network " + network
	}
	for _, odd := range render.OddConditions(d.Status, inventory.ConditionText) {
		said += ", " + odd
	}
	if data := render.DataText(d.Status); data != "" {
		said += ", " + data
	}
	if d.Missing {
		said += ", MISSING: no longer in any ResourceSlice"
	}
	return said
}
