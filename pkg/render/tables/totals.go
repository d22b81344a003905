// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"fmt"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// SliceTotal returns the line below a list of slices. It ends with where to read what the
// problems are, if that is not empty.
func SliceTotal(t inventory.SliceTotal, where string) string {
	text := fmt.Sprintf("%s, %s, %s free", english.Count(t.Slices, "slice"), english.Count(t.Devices, "device"), render.AtMost(t.Free, t.FreeIsUpperBound))
	if t.Problems > 0 {
		text += fmt.Sprintf("; %d with problems%s", t.Problems, where)
	}
	return text
}

// PoolTotal returns the line below a list of pools. It ends with where to read why some are
// not usable, if that is not empty.
func PoolTotal(t inventory.PoolTotal, where string) string {
	text := fmt.Sprintf("%s, %s, %s free", english.Count(t.Pools, "pool"), english.Count(t.Devices.Total, "device"), render.AtMost(t.Devices.Free, t.Devices.FreeIsUpperBound))
	if t.Devices.Gone > 0 {
		text += fmt.Sprintf(", %d gone", t.Devices.Gone)
	}
	if t.Devices.Unhealthy > 0 {
		text += fmt.Sprintf(", %d unhealthy", t.Devices.Unhealthy)
	}
	if t.Unusable > 0 {
		text += fmt.Sprintf("; %d not usable%s", t.Unusable, where)
	}
	return text
}

// NodeTotal returns the line below a list of nodes.
func NodeTotal(t inventory.NodeTotal) string {
	text := fmt.Sprintf("%s, %s, %s free", english.Count(t.Nodes, "node"), english.Count(t.Devices.Total, "device"), render.AtMost(t.Devices.Free, t.Devices.FreeIsUpperBound))
	if t.Problems > 0 {
		text += fmt.Sprintf("; %d with problems", t.Problems)
	}
	if t.Missing > 0 {
		text += fmt.Sprintf("; %d without expected slices", t.Missing)
	}
	return text
}

// UsageTotal returns the line below a list of usage.
func UsageTotal(t inventory.UsageTotal) string {
	text := fmt.Sprintf("%s in use by %s", english.Count(t.Used, "device"), english.Count(t.Groups, "group"))
	if t.Waiting > 0 {
		text += fmt.Sprintf(", %s waiting", english.Count(t.Waiting, "pod"))
	}
	if t.Idle > 0 {
		text += fmt.Sprintf(", %d idle", t.Idle)
	}
	if h := t.Hours; h != nil {
		text += fmt.Sprintf("; %.1f device hours, %.1f of them idle, and %.1f hours of waiting pods", h.Devices, h.Idle, h.Waiting)
	}
	return text
}

// DeviceTotal returns the line below a list of devices.
func DeviceTotal(t inventory.DeviceTotal) string {
	counts := t.Counts
	var parts []string
	for _, state := range []struct {
		name  string
		count int
	}{
		{"free", counts.Free},
		{"allocated", counts.Allocated},
		{"shared", counts.Shared},
		{"blocked", counts.Blocked},
		{"tainted", counts.Tainted},
		{"unusable", counts.Unusable},
		{"gone", counts.Gone},
		{"unpublished", t.Unpublished},
	} {
		if state.count > 0 {
			parts = append(parts, render.Bounded(state.count, counts.Bounds[state.name])+" "+state.name)
		}
	}
	text := english.Count(counts.Total, "device") + ": " + strings.Join(parts, ", ")
	if counts.Unhealthy > 0 {
		text += fmt.Sprintf("; %s unhealthy", render.Bounded(counts.Unhealthy, counts.Bounds["unhealthy"]))
	}
	return text
}

// ClaimTotal returns the line below a list of claims.
func ClaimTotal(t inventory.ClaimTotal) string {
	var parts []string
	for _, state := range []api.ClaimState{api.ClaimStatePending, api.ClaimStateAllocated, api.ClaimStateReserved, api.ClaimStateDeleting} {
		if t.ByState[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", t.ByState[state], strings.ToLower(string(state))))
		}
	}
	return fmt.Sprintf("%s: %s; %s", english.Count(t.Claims, "claim"), strings.Join(parts, ", "), english.Count(t.Devices, "device"))
}

// ClassTotal returns the line below a list of classes. It ends with where to read how
// selectors fail, if that is not empty.
func ClassTotal(t inventory.ClassTotal, where string) string {
	text := english.Count(t.Classes, "class")
	if t.Failing > 0 {
		text += fmt.Sprintf("; selectors of %d fail on some devices%s", t.Failing, where)
	}
	return text
}

// TaintTotal returns the line below a list of taints.
func TaintTotal(t inventory.TaintTotal) string {
	pods := english.Count(t.Evicted, "pod")
	if t.EvictedIsLowerBound {
		pods = render.AtLeast(t.Evicted, true) + " pods"
	}
	return fmt.Sprintf("%s on %s; %s to be evicted", english.Count(t.Taints, "taint"), english.Count(t.Devices, "device"), pods)
}

// AttributeTotal returns the line below a list of attributes. It ends with where to read
// expressions about them, if that is not empty.
func AttributeTotal(t inventory.AttributeTotal, where string) string {
	return fmt.Sprintf("%s, %s%s", english.Count(t.Attributes, "attribute"), english.Count(t.Capacities, "capacity"), where)
}
