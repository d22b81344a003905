// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// NodeContents describe nodes by all that the allocator can see of them, for claims that
// look at no more than looks: what drivers publish, and what of it is in use.
type NodeContents struct {
	published *publishedDevices
	// round is the round of published when the rest was described.
	round int
	of    map[*corev1.Node]string
	// shared are the pools that look the same to several nodes, by the number of
	// their text: each is described once, not once for each node that reaches it.
	shared map[eligibility.PoolOnNode]int
	texts  map[string]int
}

// publishedDevices describes what drivers publish.
type publishedDevices struct {
	looks nodeLooks
	// round counts how often all was forgotten, for claims that look at more.
	round int
	of    map[eligibility.PoolOnNode]int
	texts map[string]int
}

// NewNodeContents describe the nodes of a cluster.
func NewNodeContents() *NodeContents { return &NodeContents{published: &publishedDevices{}} }

// Amended describe the nodes of an amended cluster. What is published there and here is
// described once.
func (c *NodeContents) Amended() *NodeContents { return &NodeContents{published: c.published} }

// Groups puts nodes together that have the same: the same devices in the same order, but
// for their names and the attributes that nothing looks at. Nodes that are only
// equivalent, see [NodeSignatures.Equivalent], give these claims the same answer; these do
// so for all claims that look at no more than these, and whichever pod releases devices or
// tolerates taints. The groups are in the order of the nodes.
func (c *NodeContents) Groups(q *eligibility.Question, nodes []*corev1.Node) [][]*corev1.Node {
	groups, _ := c.FewGroups(q, nodes, len(nodes))
	return groups
}

// FewGroups returns the groups of [NodeContents.Groups] if there are not more than that.
func (c *NodeContents) FewGroups(q *eligibility.Question, nodes []*corev1.Node, most int) (groups [][]*corev1.Node, ok bool) {
	c.published.lookAt(looksAt(q))
	if c.of == nil || c.round != c.published.round {
		*c = NodeContents{
			published: c.published, round: c.published.round,
			of: make(map[*corev1.Node]string, len(nodes)), shared: map[eligibility.PoolOnNode]int{}, texts: map[string]int{},
		}
	}
	at := map[string]int{}
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
		if len(groups) > most {
			return nil, false
		}
		groups[i] = append(groups[i], node)
	}
	return groups, true
}

// GroupsByUse divides what [NodeContents.Groups] puts together: the nodes of a group
// also have the same misfits, and devices divided in the same way among claims.
func (c *NodeContents) GroupsByUse(q *eligibility.Question, nodes []*corev1.Node) [][]*corev1.Node {
	var groups [][]*corev1.Node
	at := map[string]int{}
	for _, same := range c.Groups(q, nodes) {
		for _, node := range same {
			key := fmt.Sprintf("%p %s %s", same[0], misfitKey(q, node), holderKey(q, node))
			i, known := at[key]
			if !known {
				i = len(groups)
				at[key] = i
				groups = append(groups, nil)
			}
			groups[i] = append(groups[i], node)
		}
	}
	return groups
}

// misfitKey returns the same for nodes that the pod cannot use for the same reasons.
func misfitKey(q *eligibility.Question, node *corev1.Node) string {
	var key strings.Builder
	for _, u := range q.Reach.Misfits[node.Name] {
		fmt.Fprintf(&key, "%s %q %s/%s ", u.Code, u.Misfit.Reason, u.Misfit.Available.String(), u.Misfit.Allocatable.String())
	}
	return key.String()
}

// holderKey returns the same for two nodes if claims have the same devices of both nodes, by the
// places of the devices, and the claims matter as much.
func holderKey(q *eligibility.Question, node *corev1.Node) string {
	var key contentText
	at := map[*resourceapi.ResourceClaim]int{}
	for _, pool := range q.Reach.Pools[node.Name] {
		for i := range pool.Devices {
			for _, h := range q.Cluster.Usage.Holders(pool.Devices[i].ID) {
				number, known := at[h.Claim]
				if !known {
					number = len(at)
					at[h.Claim] = number
				}
				key.words(fmt.Sprint(i, number))
			}
		}
	}
	return string(key.bytes)
}

// lookAt forgets descriptions unless they hold for claims that look at this. Claims with
// changes mostly look at no more than claims without.
func (p *publishedDevices) lookAt(l nodeLooks) {
	if p.of == nil || !p.looks.cover(l) {
		*p = publishedDevices{looks: l, round: p.round + 1, of: map[eligibility.PoolOnNode]int{}, texts: map[string]int{}}
	}
}

// nodeLooks has the values of a device that selectors and constraints can see.
type nodeLooks struct {
	reads []selector.Reading
	// all is true if it could be anything.
	all bool
	// each is true if every node is a case of its own.
	each bool
}

func (l *nodeLooks) add(reads ...selector.Reading) {
	for _, r := range reads {
		if !slices.Contains(l.reads, r) {
			l.reads = append(l.reads, r)
		}
	}
}

// cover reports whether nodes that are the same to l are the same to others, too.
func (l *nodeLooks) cover(other nodeLooks) bool {
	if l.each != other.each || other.all && !l.all {
		return false
	}
	return l.all || !slices.ContainsFunc(other.reads, func(r selector.Reading) bool { return !slices.Contains(l.reads, r) })
}

func looksAt(q *eligibility.Question) nodeLooks {
	var l nodeLooks
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
		for _, alternatives := range cluster.Requests(q.Claims[i].Claim) {
			for _, r := range alternatives {
				if class := q.Cluster.Snapshot.Class(r.Class); class != nil {
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
func (c *NodeContents) describe(q *eligibility.Question, node *corev1.Node) string {
	if c.published.looks.each {
		return node.Name
	}
	var t contentText
	for _, pool := range q.Reach.Pools[node.Name] {
		t.number(c.published.number(q, pool, node))
		if pool.Local {
			usedContent(q, &t, pool)
		} else {
			t.number(c.sharedPool(q, pool, node))
		}
	}
	return string(t.bytes)
}

// sharedPool returns the number of the text about the use of a pool that looks the same to
// several nodes.
func (c *NodeContents) sharedPool(q *eligibility.Question, pool *cluster.NodePool, node *corev1.Node) int {
	seen := eligibility.OnNode(pool, node)
	number, known := c.shared[seen]
	if !known {
		var t contentText
		usedContent(q, &t, pool)
		number = t.numberIn(c.texts)
		c.shared[seen] = number
	}
	return number
}

// number returns the number of the text about the published part of a pool.
func (p *publishedDevices) number(q *eligibility.Question, pool *cluster.NodePool, node *corev1.Node) int {
	seen := eligibility.OnNode(pool, node)
	number, known := p.of[seen]
	if !known {
		var t contentText
		p.describe(q, &t, pool, node)
		number = t.numberIn(p.texts)
		p.of[seen] = number
	}
	return number
}

func (p *publishedDevices) describe(q *eligibility.Question, t *contentText, pool *cluster.NodePool, node *corev1.Node) {
	t.words("pool", pool.Pool.Driver)
	t.flags(pool.Local, pool.AllIgnored, pool.Outdated, pool.Incomplete, pool.Invalid != "")
	for i := range pool.Ignored {
		t.words("ignored", pool.Ignored[i].Gate)
	}
	if !pool.Usable() || len(pool.Ignored) > 0 || slices.ContainsFunc(pool.Pool.Slices, func(s *resourceapi.ResourceSlice) bool { return s.Spec.NodeName == nil }) {
		// What other nodes see of it matters, too.
		t.words("itself", pool.Pool.Name)
	}
	for i := range pool.Devices {
		p.describeDevice(q, t, &pool.Devices[i], node)
	}
}

func (p *publishedDevices) describeDevice(q *eligibility.Question, t *contentText, d *cluster.Device, node *corev1.Node) {
	t.words("device")
	t.flags(ptr.Deref(d.AllowMultipleAllocations, false), q.Selectors.Odd(d.Device))
	if p.looks.all {
		for name, attribute := range sorted(d.Attributes) {
			t.words(string(name), selector.Literal(attribute))
		}
	} else {
		for _, r := range p.looks.reads {
			// The rest of what can be read is below in any case.
			if r.Kind != selector.KindAttributes {
				continue
			}
			value, ok := r.Value(d.ID.Driver, d.Device)
			t.flags(ok)
			t.words(value)
		}
	}
	for name, capacity := range sorted(d.Capacity) {
		t.words(string(name))
		t.quantity(capacity.Value)
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

// usedContent describes the use of a pool: of its counters, and of each device that is not
// free, by its place.
func usedContent(q *eligibility.Question, t *contentText, pool *cluster.NodePool) {
	facts := q.Cluster
	for _, use := range facts.Partitions.Counters(pool.Pool) {
		t.words(use.CounterSet, use.Counter)
		t.quantity(use.Total)
		t.quantity(use.Left)
	}
	if facts.Usage.OfPool(pool.Pool.Driver, pool.Pool.Name) == nil {
		return
	}
	for i := range pool.Devices {
		d := &pool.Devices[i]
		inUse, shared := facts.Usage.InUse(d.ID), facts.Usage.Shared(d.ID)
		if !inUse && !shared {
			continue
		}
		t.number(i)
		t.flags(inUse, shared)
		for name, used := range sorted(facts.Usage.Consumed(d.ID)) {
			t.words(string(name))
			t.quantity(used)
		}
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

// numberIn returns the number of the text among those that are the same or came before.
func (t *contentText) numberIn(texts map[string]int) int {
	number, known := texts[string(t.bytes)]
	if !known {
		number = len(texts)
		texts[string(t.bytes)] = number
	}
	return number
}

func (t *contentText) number(number int) {
	t.bytes = append(strconv.AppendInt(append(t.bytes, '#'), int64(number), 10), ' ')
}

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
