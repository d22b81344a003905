// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// Most nodes of a large cluster are like others in all that the allocator
// looks at, and then its answer is the same. It is asked about the first of
// them.

// NodeSignatures describe nodes by what the allocator looks at for the claims of a
// question.
type NodeSignatures struct {
	*eligibility.Question
	// partitioned and comparable remember facts about pools.
	partitioned map[*cluster.Pool]string
	comparable  map[*cluster.NodePool]map[string]bool
}

// NewNodeSignatures returns the signatures of the nodes of a question.
func NewNodeSignatures(q *eligibility.Question) *NodeSignatures {
	return &NodeSignatures{Question: q, partitioned: map[*cluster.Pool]string{}, comparable: map[*cluster.NodePool]map[string]bool{}}
}

// Equivalent finds for each of some nodes the first equivalent one, by their indices. A
// node without an equivalent, or that cannot be compared, is its own.
func (s *NodeSignatures) Equivalent(ctx context.Context, nodes []*corev1.Node) []int {
	first, like := map[string]int{}, make([]int, len(nodes))
	funnels, text := allFunnels(s.Question), []byte(nil)
	for i, node := range nodes {
		like[i] = i
		l := nodeSignature{NodeSignatures: s, funnels: funnels, node: node, text: text[:0], numbers: map[string]int{}}
		if !l.describe(ctx) {
			continue
		}
		if j, known := first[string(l.text)]; known {
			like[i] = j
		} else {
			first[string(l.text)] = i
		}
		text = l.text
	}
	return like
}

// nodeSignature describes what a node has for the claims: device by device, in the
// order in which the allocator tries them, all that the allocator looks at but
// for the names. A pool that looks the same to several nodes stands for itself.
type nodeSignature struct {
	*NodeSignatures
	funnels []*eligibility.Funnel
	node    *corev1.Node
	text    []byte
	// numbers has the values of attributes that constraints compare. It only
	// matters which are equal to each other, so they are numbered as they come;
	// those in pools that stand for themselves are written out.
	numbers map[string]int
	shared  []map[string]bool
}

// describe fills in the text. It reports whether the node can be compared: not if a
// selector fails, because such errors name a device, or if the devices in use do not leave
// the same for all nodes.
func (l *nodeSignature) describe(ctx context.Context) bool {
	if eligibility.OnNode(nil, l.node).Optional {
		l.text = append(l.text, "optional "...)
	}
	pools, err := l.Cluster.Pools.For(l.node)
	if err != nil || !l.describeClaims() {
		return false
	}
	for _, pool := range pools {
		if !pool.Local {
			l.shared = append(l.shared, l.sharedValues(ctx, pool))
		}
	}
	for _, pool := range pools {
		if !pool.Local {
			l.text = fmt.Appendf(l.text, "\npool %p", pool)
			continue
		}
		if l.Cluster.Partitions.DependsOnNode(pool.Pool) || hasOtherDevices(pool) && l.SelectorFails(ctx, pool, l.node) {
			return false
		}
		l.text = fmt.Appendf(l.text, "\nown %t %t %t %t", pool.AllIgnored, pool.Outdated, pool.Incomplete, pool.Invalid != "")
		l.text = append(l.text, l.partitions(pool.Pool)...)
		complete := true
		eligibility.EachDevice(pool, func(d *cluster.Device, kept *eligibility.Reason) {
			if kept == nil {
				complete = complete && l.describeDevice(ctx, d)
				return
			}
			l.text = append(append(l.text, '\n'), kept.Code...)
			for _, f := range l.funnels {
				l.text = strconv.AppendBool(l.text, f.OtherClass(d))
			}
		})
		if !complete {
			return false
		}
	}
	return true
}

// hasOtherDevices reports whether slices for a node have devices for other nodes.
func hasOtherDevices(pool *cluster.NodePool) bool {
	devices := 0
	for _, slice := range pool.Slices {
		devices += len(slice.Spec.Devices)
	}
	return devices > len(pool.Devices)
}

// describeClaims writes the requirements, where they differ between nodes. It reports
// whether the node can be compared.
func (l *nodeSignature) describeClaims() bool {
	for _, c := range l.Claims {
		if !l.PodClaims[c.Index].ExtendedResources {
			continue
		}
		claim, err := l.Cluster.Claims.ExtendedResourceClaim(l.Pod, l.node)
		if err != nil {
			return false
		}
		if claim == nil {
			l.text = append(l.text, "nothing "...)
			continue
		}
		spec, err := json.Marshal(claim.Spec)
		if err != nil {
			return false
		}
		l.text = append(l.text, spec...)
	}
	return true
}

// partitions writes what devices in use leave of a pool's counters.
func (s *NodeSignatures) partitions(pool *cluster.Pool) string {
	if text, known := s.partitioned[pool]; known {
		return text
	}
	text := ""
	for _, counter := range s.Cluster.Partitions.Counters(pool) {
		groups := s.Cluster.Partitions.GroupsOn(pool, counter.CounterSet, nil)
		text += fmt.Sprintf(" %q %q %s of %s %v %q", counter.CounterSet, counter.Counter,
			counter.Left.String(), counter.Total.String(), groups.Used, slices.Sorted(maps.Keys(groups.Groups)))
	}
	s.partitioned[pool] = text
	return text
}

// sharedValues returns the values that constraints compare in a pool that looks the same to
// several nodes.
func (s *NodeSignatures) sharedValues(ctx context.Context, pool *cluster.NodePool) map[string]bool {
	if values, known := s.comparable[pool]; known {
		return values
	}
	values := map[string]bool{}
	for _, f := range allFunnels(s.Question) {
		for _, c := range f.Request.Constraints {
			for i := range pool.Devices {
				if value, ok, err := f.Checks.Attribute(ctx, &pool.Devices[i], c.Attribute); ok && err == nil {
					for _, text := range eligibility.ValueTexts(value) {
						values[text] = true
					}
				}
			}
		}
	}
	s.comparable[pool] = values
	return values
}

// allFunnels lists the funnels of all requests and alternatives.
func allFunnels(q *eligibility.Question) []*eligibility.Funnel {
	var all []*eligibility.Funnel
	for i := range q.Claims {
		for _, alternatives := range q.Claims[i].Funnels {
			all = append(all, alternatives...)
		}
	}
	return all
}

func (l *nodeSignature) describeDevice(ctx context.Context, d *cluster.Device) bool {
	l.text = append(l.text, '\n')
	for _, f := range l.funnels {
		r := f.Checks.Device(ctx, d, l.node)
		// What the allocator sees of a selector must not be hidden by what
		// counts for people.
		if r != nil && (r.Check == eligibility.BindingConditions || r.Check == eligibility.InUse) {
			if selected := f.Checks.CheckSelectors(ctx, d); selected != nil {
				l.text = append(append(l.text, selected.Label...), ' ')
				if selected.Code == api.SelectorError {
					return false
				}
			}
		}
		switch {
		case r == nil:
			l.text = append(l.text, '+')
		case r.Code == api.SelectorError:
			return false
		default:
			l.text = append(append(l.text, r.Code...), r.Label...)
		}
		if !l.describeValues(ctx, f, d) {
			return false
		}
	}
	alloc := allocator.Of(l.Cluster)
	flag := func(set bool, letter byte) {
		if set {
			l.text = append(l.text, letter)
		}
	}
	flag(alloc.Facts.Usage.InUse(d.ID), 'u')
	flag(alloc.Facts.Usage.Shared(d.ID), 's')
	flag(len(d.NodeAllocatableResources) > 0, 'n')
	flag(d.BindsToNode != nil && *d.BindsToNode, 'b')
	for _, list := range [][]string{d.BindingConditions, d.BindingFailureConditions} {
		if len(list) > 0 {
			l.text = fmt.Appendf(l.text, " %q", list)
		}
	}
	if len(d.Slice.Spec.SkipNodeOperations) > 0 {
		l.text = fmt.Appendf(l.text, " skip%q", d.Slice.Spec.SkipNodeOperations)
	}
	for _, selector := range []*corev1.NodeSelector{d.Slice.Spec.NodeSelector, d.NodeSelector} {
		if selector != nil {
			l.text = fmt.Appendf(l.text, " %d terms", len(selector.NodeSelectorTerms))
		}
	}
	for _, taint := range d.Taints {
		l.text = fmt.Appendf(l.text, " %q", []string{taint.Key, taint.Value, string(taint.Effect)})
	}
	for _, consumption := range d.ConsumesCounters {
		l.text = fmt.Appendf(l.text, " %q %q", consumption.CounterSet, consumption.CompatibilityGroups)
		for name, counter := range sorted(consumption.Counters) {
			l.text = appendQuantity(l.text, name, counter.Value)
		}
	}
	if !alloc.Facts.Gates.Enabled("DRAConsumableCapacity") {
		return true
	}
	flag(d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations, 'm')
	return l.describeCapacity(d)
}

func (l *nodeSignature) describeCapacity(d *cluster.Device) bool {
	used := l.Cluster.Usage.Consumed(d.ID)
	for name, capacity := range sorted(d.Capacity) {
		l.text = appendQuantity(l.text, string(name), capacity.Value)
		if quantity, ok := used[name]; ok {
			l.text = appendQuantity(l.text, "", quantity)
		}
		if capacity.RequestPolicy == nil {
			continue
		}
		policy, err := json.Marshal(capacity.RequestPolicy)
		if err != nil {
			return false
		}
		l.text = append(l.text, policy...)
	}
	return true
}

// describeValues writes the values of attributes that constraints compare. It reports
// whether the node can be compared.
func (l *nodeSignature) describeValues(ctx context.Context, f *eligibility.Funnel, d *cluster.Device) bool {
	for _, c := range f.Request.Constraints {
		value, ok, err := f.Checks.Attribute(ctx, d, c.Attribute)
		switch {
		case err != nil:
			return false
		case !ok:
			l.text = append(l.text, '!')
			continue
		case selector.IsList(value):
			l.text = append(l.text, '*')
		}
		for _, text := range eligibility.ValueTexts(value) {
			l.describeValue(text)
		}
		l.text = append(l.text, ';')
	}
	return true
}

func (l *nodeSignature) describeValue(value string) {
	if slices.ContainsFunc(l.shared, func(values map[string]bool) bool { return values[value] }) {
		l.text = strconv.AppendQuote(l.text, value)
		return
	}
	number, known := l.numbers[value]
	if !known {
		number = len(l.numbers)
		l.numbers[value] = number
	}
	l.text = strconv.AppendInt(append(l.text, '#'), int64(number), 10)
}

func appendQuantity(text []byte, name string, quantity resource.Quantity) []byte {
	return append(append(strconv.AppendQuote(text, name), '='), quantity.String()...)
}

// Available describes only those devices of a node that could be had if it were
// not for the others: why nothing fits is the same for all nodes that offer the
// same.
func (s *NodeSignatures) Available(ctx context.Context, node *corev1.Node) string {
	l := nodeSignature{NodeSignatures: s, funnels: allFunnels(s.Question), node: node, numbers: map[string]int{}}
	pools := s.Reach.Pools[node.Name]
	for _, pool := range pools {
		if !pool.Local {
			l.shared = append(l.shared, s.sharedValues(ctx, pool))
		}
	}
	for _, pool := range pools {
		if !pool.Local {
			l.text = fmt.Appendf(l.text, "\npool %p", pool)
			continue
		}
		l.text = append(append(l.text, "\nown"...), s.partitions(pool.Pool)...)
		for i := range pool.Devices {
			d := &pool.Devices[i]
			if !slices.ContainsFunc(l.funnels, func(f *eligibility.Funnel) bool {
				r := f.Checks.Device(ctx, d, node)
				return r == nil || r.Check > eligibility.InUse
			}) {
				continue
			}
			if complete := l.describeDevice(ctx, d); !complete {
				l.text = fmt.Appendf(l.text, " %s", d.ID)
			}
		}
	}
	return string(l.text)
}
