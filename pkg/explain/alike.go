// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
)

// alike groups nodes that are the same to the allocator for these claims, and
// for claims that look at no more than they do: the same devices in the same
// order, but for their names and the attributes that nothing looks at. The
// groups are in the order of the nodes.
func (x *inquiry) alike(nodes []*corev1.Node) [][]*corev1.Node {
	looks := x.looksAt()
	at := map[string]int{}
	var groups [][]*corev1.Node
	for _, node := range nodes {
		key := x.likeness(node, looks)
		i, known := at[key]
		if !known {
			i = len(groups)
			at[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], node)
	}
	return groups
}

// looks is what selectors and constraints can see of a device.
type looks struct {
	reads []reading
	// all is true if it could be anything.
	all bool
	// each is true if every node is a case of its own.
	each bool
}

func (l *looks) add(reads ...reading) {
	for _, r := range reads {
		if !slices.Contains(l.reads, r) {
			l.reads = append(l.reads, r)
		}
	}
}

func (x *inquiry) looksAt() looks {
	var l looks
	selectors := func(list []resourceapi.DeviceSelector) {
		for _, s := range list {
			if s.CEL == nil {
				continue
			}
			compiled := x.selectors.compile(s.CEL.Expression)
			l.add(compiled.reads...)
			l.all = l.all || compiled.opaque
		}
	}
	for i := range x.claims {
		// What a node has of extended resources differs.
		l.each = l.each || x.subject.claims[x.claims[i].index].ExtendedResources
		for _, alternatives := range requestsOf(x.claims[i].claim) {
			for _, r := range alternatives {
				if class := x.snap.Class(r.class); class != nil {
					selectors(class.Spec.Selectors)
				}
				selectors(r.selectors)
				l.all = l.all || len(r.derived) > 0
				for _, c := range r.constraints {
					domain, name, _ := strings.Cut(string(c.attribute), "/")
					l.add(reading{kind: "attributes", domain: domain, name: name})
				}
			}
		}
	}
	return l
}

// likeness describes a node by all that the allocator can see of it.
func (x *inquiry) likeness(node *corev1.Node, l looks) string {
	var text strings.Builder
	if l.each {
		return node.Name
	}
	pools := x.site.pools[node.Name]
	for i := range pools {
		pool := &pools[i]
		fmt.Fprintf(&text, "pool %s %t %t %t %t %d\n", pool.Pool.Driver, pool.Unseen, pool.Outdated, pool.Incomplete, pool.Invalid != "", len(pool.Ignored))
		for j := range pool.Ignored {
			fmt.Fprintf(&text, "ignored %s\n", pool.Ignored[j].Gate)
		}
		if !pool.Usable() || len(pool.Ignored) > 0 || slices.ContainsFunc(pool.Pool.Slices, func(s *resourceapi.ResourceSlice) bool { return s.Spec.NodeName == nil }) {
			// What other nodes see of it matters, too.
			fmt.Fprintf(&text, "itself %s\n", pool.Pool.Name)
		}
		for _, use := range x.site.alloc.CountersOf(pool.Pool) {
			fmt.Fprintf(&text, "counter %s %s %s %s\n", use.CounterSet, use.Counter, use.Total.String(), use.Left.String())
		}
		for j := range pool.Devices {
			x.deviceLikeness(&text, &pool.Devices[j], node, l)
		}
	}
	return text.String()
}

func (x *inquiry) deviceLikeness(text *strings.Builder, d *allocator.Device, node *corev1.Node, l looks) {
	fmt.Fprintf(text, "device %t %t %t %t", x.site.alloc.InUse(d.ID), x.site.alloc.Shared(d.ID), ptr.Deref(d.AllowMultipleAllocations, false), x.selectors.isOdd(d.Device))
	for _, r := range l.reads {
		value, ok := r.value(d.ID.Driver, d.Device)
		text.WriteByte(' ')
		if ok {
			fmt.Fprintf(text, "%q", value)
		}
	}
	if l.all {
		for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
			fmt.Fprintf(text, " %s=%q", name, attributeText(d.Attributes[name]))
		}
	}
	used := x.site.alloc.Consumed(d.ID)
	for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
		capacity := d.Capacity[name]
		taken := used[name]
		fmt.Fprintf(text, " %s=%s-%s", name, capacity.Value.String(), taken.String())
		if capacity.RequestPolicy != nil {
			fmt.Fprintf(text, " %s", capacity.RequestPolicy)
		}
	}
	for _, consumption := range d.ConsumesCounters {
		fmt.Fprintf(text, " %s %q", consumption.CounterSet, consumption.CompatibilityGroups)
		for _, name := range slices.Sorted(maps.Keys(consumption.Counters)) {
			quantity := consumption.Counters[name].Value
			fmt.Fprintf(text, " %s=%s", name, quantity.String())
		}
	}
	for _, taint := range d.Taints {
		fmt.Fprintf(text, " %s", taintText(taint))
	}
	if len(d.BindingConditions) > 0 || len(d.NodeAllocatableResources) > 0 || len(d.Slice.Spec.SkipNodeOperations) > 0 {
		fmt.Fprintf(text, " %q %t %q %q", d.BindingConditions, len(d.NodeAllocatableResources) > 0, d.Slice.Spec.SkipNodeOperations, node.Status.DeclaredFeatures)
	}
	text.WriteByte('\n')
}
