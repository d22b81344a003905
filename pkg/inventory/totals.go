// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// SliceTotal sums up slices.
type SliceTotal struct {
	Slices, Devices, Free int
	// FreeIsUpperBound is true if fewer may be free.
	FreeIsUpperBound bool
	// Problems counts the slices that are not in the state Current.
	Problems int
}

// TotalOfSlices sums slices up.
func TotalOfSlices(list []*api.Slice) SliceTotal {
	total := SliceTotal{Slices: len(list)}
	for _, slice := range list {
		total.Devices += slice.Devices
		total.Free += slice.Free
		total.FreeIsUpperBound = total.FreeIsUpperBound || slice.FreeIsUpperBound
		if slice.State != api.SliceStateCurrent {
			total.Problems++
		}
	}
	return total
}

// PoolTotal sums up pools.
type PoolTotal struct {
	Pools   int
	Devices api.DeviceCounts
	// Unusable counts the pools that are not in the state Usable.
	Unusable int
}

// TotalOfPools sums pools up.
func TotalOfPools(list []*api.Pool) PoolTotal {
	total := PoolTotal{Pools: len(list)}
	for _, pool := range list {
		AddCounts(&total.Devices, pool.Devices)
		for name, bound := range pool.Devices.Bounds {
			setBound(&total.Devices, name, bound)
		}
		if pool.State != api.PoolStateUsable {
			total.Unusable++
		}
	}
	return total
}

// NodeTotal sums up nodes.
type NodeTotal struct {
	Nodes   int
	Devices api.DeviceCounts
	// Problems counts the nodes with problems, Missing the ones whose slices are missing.
	Problems, Missing int
}

// TotalOfNodes sums nodes up.
func TotalOfNodes(list []*api.ListedNode) NodeTotal {
	total := NodeTotal{Nodes: len(list)}
	for _, node := range list {
		AddCounts(&total.Devices, node.Devices)
		if len(node.Problems) > 0 {
			total.Problems++
		}
		if slices.ContainsFunc(node.Problems, func(p api.NodeProblem) bool { return p.Code == api.NodeSlicesMissing }) {
			total.Missing++
		}
	}
	return total
}

// UsageTotal sums up usage.
type UsageTotal struct {
	Groups, Used, Waiting, Idle int
	// Hours is nil without a recording.
	Hours *api.UsageHours
}

// TotalOfUsage sums usage up.
func TotalOfUsage(list []*api.Usage) UsageTotal {
	total := UsageTotal{Groups: len(list)}
	for _, u := range list {
		total.Used += u.Used
		total.Waiting += u.Waiting
		total.Idle += u.Idle
		if u.Hours == nil {
			continue
		}
		if total.Hours == nil {
			total.Hours = &api.UsageHours{}
		}
		total.Hours.Devices += u.Hours.Devices
		total.Hours.Idle += u.Hours.Idle
		total.Hours.Waiting += u.Hours.Waiting
	}
	return total
}

// DeviceTotal sums up devices.
type DeviceTotal struct {
	Counts api.DeviceCounts
	// Unpublished counts the allocated devices that are in no slice.
	Unpublished int
}

// TotalOfDevices sums devices up.
func (v *Inventory) TotalOfDevices(list []*api.Device) DeviceTotal {
	total := DeviceTotal{Counts: v.CountDevices(list)}
	for _, d := range list {
		if d.State == api.DeviceStateUnpublished {
			total.Unpublished++
		}
	}
	return total
}

// ClaimTotal sums up claims.
type ClaimTotal struct {
	Claims  int
	ByState map[api.ClaimState]int
	// Devices counts the devices of the claims, each once.
	Devices int
}

// TotalOfClaims sums claims up.
func TotalOfClaims(list []*api.Claim) ClaimTotal {
	total, devices := ClaimTotal{Claims: len(list), ByState: map[api.ClaimState]int{}}, map[string]bool{}
	for _, c := range list {
		total.ByState[c.State]++
		for _, r := range c.Requests {
			for _, d := range r.Devices {
				devices[d.Driver+"/"+d.Pool+"/"+d.Device] = true
			}
		}
	}
	total.Devices = len(devices)
	return total
}

// ClassTotal sums up classes.
type ClassTotal struct {
	Classes int
	// Failing counts the classes with a selector that fails on some device.
	Failing int
}

// TotalOfClasses sums classes up.
func TotalOfClasses(list []*api.Class) ClassTotal {
	total := ClassTotal{Classes: len(list)}
	for _, class := range list {
		if class.Failing > 0 {
			total.Failing++
		}
	}
	return total
}

// AttributeTotal sums up attributes and capacities.
type AttributeTotal struct{ Attributes, Capacities int }

// TotalOfAttributes sums attributes and capacities up.
func TotalOfAttributes(list []*api.Attribute) AttributeTotal {
	var total AttributeTotal
	for _, attribute := range list {
		if attribute.Source == api.SourceCapacity {
			total.Capacities++
		} else {
			total.Attributes++
		}
	}
	return total
}

// TaintTotal sums up taints.
type TaintTotal struct {
	Taints int
	// Devices counts the devices with one of the taints, Evicted the pods that are going to
	// be evicted, each once.
	Devices, Evicted int
	// EvictedIsLowerBound is true if there may be more pods.
	EvictedIsLowerBound bool
}

// TotalOfTaints sums taints up.
func TotalOfTaints(list []*api.Taint) TaintTotal {
	total, devices, evicted := TaintTotal{Taints: len(list)}, map[string]bool{}, map[string]bool{}
	for _, t := range list {
		for _, d := range t.Devices {
			devices[d] = true
		}
		total.EvictedIsLowerBound = total.EvictedIsLowerBound || t.PodsAreLowerBounds && t.Effect == string(resourceapi.DeviceTaintEffectNoExecute)
		for _, p := range t.Pods {
			if p.Evicted {
				evicted[p.Namespace+"/"+p.Name] = true
			}
		}
	}
	total.Devices, total.Evicted = len(devices), len(evicted)
	return total
}

// CountDevices counts devices by state. What may be otherwise in truth gets a
// bound, by what it is that could not be seen.
func (v *Inventory) CountDevices(devices []*api.Device) api.DeviceCounts {
	var c api.DeviceCounts
	for _, d := range devices {
		c.Total++
		*countOf(&c, d.State)++
		if d.Health == string(corev1.ResourceHealthStatusUnhealthy) {
			c.Unhealthy++
		} else if v.notRead.claims || v.notRead.pods {
			setBound(&c, "unhealthy", api.BoundAtLeast)
		}
		if !d.Uncertain {
			continue
		}
		setBound(&c, strings.ToLower(string(d.State)), api.BoundAtMost)
		if v.notRead.rules && d.State == api.DeviceStateFree {
			setBound(&c, "tainted", api.BoundAtLeast)
		}
		if !v.notRead.claims {
			continue
		}
		setBound(&c, "allocated", api.BoundAtLeast)
		if d.Shareable {
			setBound(&c, "shared", api.BoundAtLeast)
		}
		if len(d.Counters) > 0 {
			setBound(&c, "blocked", api.BoundAtLeast)
		}
	}
	_, c.FreeIsUpperBound = c.Bounds["free"]
	return c
}

// NotRead says, a sentence each, how far counts and states can be wrong because
// of what could not be seen. It is empty if all was seen.
func (v *Inventory) NotRead() []string {
	var said []string
	if v.notRead.claims {
		said = append(said, "claims that were not seen may have devices: counts with ≤ or ≥ are bounds, and a device in a state with ? may be allocated, shared or blocked")
	}
	if v.notRead.rules {
		said = append(said, "DeviceTaintRules that were not seen may taint devices that count as free")
	}
	return said
}
