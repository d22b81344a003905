// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/claimspec"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
)

// Groups puts nodes together that have the same: the same devices in the same order, but
// for their names and the attributes that nothing looks at. Nodes that are only
// equivalent, see [Signatures.Equivalent], give these claims the same answer; these do so for
// all claims that look at no more than these, and whichever pod releases devices or
// tolerates taints. The groups are in the order of the nodes.
func (c *Contents) Groups(q *funnel.Question, nodes []*corev1.Node) [][]*corev1.Node {
	looks := looksAt(q)
	if c.of == nil || !c.looks.cover(looks) {
		// Claims with changes mostly look at no more than those without.
		*c = Contents{
			of:     make(map[*corev1.Node]string, len(nodes)),
			looks:  looks,
			shared: map[funnel.PoolOnNode]int{},
			texts:  map[string]int{},
		}
	}
	at := map[string]int{}
	var groups [][]*corev1.Node
	for _, node := range nodes {
		key, described := c.of[node]
		if !described {
			key = c.describe(q, node)
			c.of[node] = key
		}
		i, found := at[key]
		if !found {
			i = len(groups)
			at[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], node)
	}
	return groups
}

// Contents describe nodes by all that the allocator can see of them, for claims that
// look at no more than looks.
type Contents struct {
	of    map[*corev1.Node]string
	looks looks
	// shared are the pools that look the same to several nodes, by the number of
	// their text: each is described once, not once for each node that reaches it.
	shared map[funnel.PoolOnNode]int
	texts  map[string]int
}

// looks is what selectors and constraints can see of a device.
type looks struct {
	reads []selector.Reading
	// all is true if it could be anything.
	all bool
	// each is true if every node is a case of its own.
	each bool
}

func (l *looks) add(reads ...selector.Reading) {
	for _, r := range reads {
		if !slices.Contains(l.reads, r) {
			l.reads = append(l.reads, r)
		}
	}
}

// cover reports whether nodes that are the same to l are the same to others, too.
func (l *looks) cover(other looks) bool {
	if l.each != other.each || other.all && !l.all {
		return false
	}
	return l.all || !slices.ContainsFunc(other.reads, func(r selector.Reading) bool { return !slices.Contains(l.reads, r) })
}

func looksAt(q *funnel.Question) looks {
	var l looks
	read := func(list []resourceapi.DeviceSelector) {
		for _, s := range list {
			if s.CEL == nil {
				continue
			}
			compiled := q.Selectors.Compile(s.CEL.Expression)
			l.add(compiled.Reads...)
			l.all = l.all || compiled.Opaque
		}
	}
	for i := range q.Claims {
		// What a node has of extended resources differs.
		l.each = l.each || q.PodClaims[q.Claims[i].Index].ExtendedResources
		for _, alternatives := range claimspec.Requests(q.Claims[i].Claim) {
			for _, r := range alternatives {
				if class := q.Snap.Class(r.Class); class != nil {
					read(class.Spec.Selectors)
				}
				read(r.Selectors)
				l.all = l.all || len(r.Derived) > 0
				for _, c := range r.Constraints {
					l.add(selector.Attribute(resourceapi.QualifiedName(c.Attribute), ""))
				}
			}
		}
	}
	return l
}

// describe describes a node by all that the allocator can see of it.
func (c *Contents) describe(q *funnel.Question, node *corev1.Node) string {
	if c.looks.each {
		return node.Name
	}
	var t contentText
	for _, pool := range q.Cluster.Pools[node.Name] {
		if pool.Local {
			poolContent(q, &t, pool, node, c.looks)
		} else {
			t.words("shared", strconv.Itoa(c.sharedPool(q, pool, node)))
		}
	}
	return string(t.bytes)
}

// sharedPool is the number of the text of a pool that looks the same to several nodes.
func (c *Contents) sharedPool(q *funnel.Question, pool *cluster.NodePool, node *corev1.Node) int {
	seen := funnel.OnNode(pool, node)
	number, known := c.shared[seen]
	if known {
		return number
	}
	var t contentText
	poolContent(q, &t, pool, node, c.looks)
	number, known = c.texts[string(t.bytes)]
	if !known {
		number = len(c.texts)
		c.texts[string(t.bytes)] = number
	}
	c.shared[seen] = number
	return number
}

func poolContent(q *funnel.Question, t *contentText, pool *cluster.NodePool, node *corev1.Node, l looks) {
	t.words("pool", pool.Pool.Driver)
	t.flags(pool.AllIgnored, pool.Outdated, pool.Incomplete, pool.Invalid != "")
	for i := range pool.Ignored {
		t.words("ignored", pool.Ignored[i].Gate)
	}
	if !pool.Usable() || len(pool.Ignored) > 0 || slices.ContainsFunc(pool.Pool.Slices, func(s *resourceapi.ResourceSlice) bool { return s.Spec.NodeName == nil }) {
		// What other nodes see of it matters, too.
		t.words("itself", pool.Pool.Name)
	}
	for _, use := range q.Cluster.Facts.Partitions.Counters(pool.Pool) {
		t.words(use.CounterSet, use.Counter)
		t.quantity(use.Total)
		t.quantity(use.Left)
	}
	for i := range pool.Devices {
		deviceContent(q, t, &pool.Devices[i], node, l)
	}
}

func deviceContent(q *funnel.Question, t *contentText, d *cluster.Device, node *corev1.Node, l looks) {
	t.words("device")
	t.flags(q.Cluster.Facts.Usage.InUse(d.ID), q.Cluster.Facts.Usage.Shared(d.ID), ptr.Deref(d.AllowMultipleAllocations, false), q.Selectors.Odd(d.Device))
	if l.all {
		for name, attribute := range sorted(d.Attributes) {
			t.words(string(name), selector.Literal(attribute))
		}
	} else {
		for _, r := range l.reads {
			// The rest of what can be read is below in any case.
			if r.Kind != selector.KindAttributes {
				continue
			}
			value, ok := r.Value(d.ID.Driver, d.Device)
			t.flags(ok)
			t.words(value)
		}
	}
	used := q.Cluster.Facts.Usage.Consumed(d.ID)
	for name, capacity := range sorted(d.Capacity) {
		t.words(string(name))
		t.quantity(capacity.Value)
		t.quantity(used[name])
		if capacity.RequestPolicy != nil {
			t.words(capacity.RequestPolicy.String())
		}
	}
	for _, consumption := range d.ConsumesCounters {
		t.words(consumption.CounterSet)
		t.words(consumption.CompatibilityGroups...)
		for name, counter := range sorted(consumption.Counters) {
			t.words(name)
			t.quantity(counter.Value)
		}
	}
	for _, taint := range d.Taints {
		t.words("taint", taint.Key, taint.Value, string(taint.Effect))
	}
	if len(d.BindingConditions)+len(d.BindingFailureConditions) > 0 {
		t.words("binding")
		t.words(d.BindingConditions...)
		t.words(d.BindingFailureConditions...)
	}
	if len(d.NodeAllocatableResources) > 0 {
		t.words("node resources")
	}
	if len(d.Slice.Spec.SkipNodeOperations) > 0 {
		t.flags(slices.Contains(node.Status.DeclaredFeatures, "DRAOptionalNodeOperations"))
	}
}

// sorted goes through a map in the order of its keys. Most maps have few of them.
func sorted[K cmp.Ordered, V any](values map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		var few [8]K
		keys := slices.AppendSeq(few[:0], maps.Keys(values))
		slices.Sort(keys)
		for _, key := range keys {
			if !yield(key, values[key]) {
				return
			}
		}
	}
}

// contentText is written so that different things never read the same: words
// have their length before them.
type contentText struct{ bytes []byte }

func (t *contentText) words(words ...string) {
	t.bytes = strconv.AppendInt(t.bytes, int64(len(words)), 10)
	for _, word := range words {
		t.bytes = append(strconv.AppendInt(append(t.bytes, '.'), int64(len(word)), 10), ':')
		t.bytes = append(t.bytes, word...)
	}
	t.bytes = append(t.bytes, ' ')
}

func (t *contentText) flags(flags ...bool) {
	for _, flag := range flags {
		if flag {
			t.bytes = append(t.bytes, '+')
		} else {
			t.bytes = append(t.bytes, '-')
		}
	}
}

func (t *contentText) quantity(q resource.Quantity) {
	if number, ok := q.AsInt64(); ok {
		t.bytes = append(strconv.AppendInt(t.bytes, number, 10), ' ')
		return
	}
	t.words(q.String())
}
