// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Shapes counts how many more claims fit of each shape that a cluster's claims have, and
// of each class. Where pods on other nodes would leave room for more, it says how many.
// Progress is told of each shape. It fails if ctx is done.
func Shapes(ctx context.Context, s *cluster.Cluster, progress func(shape *api.ClaimShape, done, total int)) (*api.FitShapes, error) {
	shapes, others := shapesIn(s.Snapshot)
	c := newSlots(s, shapes)
	shapes, err := c.laddered(ctx, shapes)
	if err != nil {
		return nil, err
	}
	for i, shape := range shapes {
		progress(&shape.ClaimShape, i, len(shapes))
		line, err := c.line(ctx, shape)
		if err != nil {
			return nil, err
		}
		c.out.Shapes = append(c.out.Shapes, *line)
	}
	c.out.OtherClaims = others
	return c.out, nil
}

// slots counts claims of shapes in a cluster as it is, and with all claims released.
// What it has counted it knows.
type slots struct {
	asker     *explain.Asker
	now, free *cluster.Cluster
	out       *api.FitShapes
	pods      map[string]*corev1.Pod
	counts    map[string]map[bool]*slotCount
	bases     map[bool]map[string]*base
	// samples stand for the cluster in both cases. Rooms has for how many claims, each for a
	// pod of its own, nodes have room.
	samples map[bool]*sample
	rooms   map[bool]map[string]int
	// movers are the pods that could run elsewhere, once they were asked for.
	movers []*mover
}

// newSlots prepares to count shapes: the cluster has a template for each of them, for one
// device like theirs, and for all numbers of devices of a class.
func newSlots(s *cluster.Cluster, shapes []*claimShape) *slots {
	c := &slots{
		asker: &explain.Asker{}, out: &api.FitShapes{TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "FitShapes"}, Shapes: []api.ShapeFit{}},
		pods: map[string]*corev1.Pod{}, counts: map[string]map[bool]*slotCount{}, bases: map[bool]map[string]*base{false: {}, true: {}},
		samples: map[bool]*sample{}, rooms: map[bool]map[string]int{},
	}
	snap := s.Snapshot
	add := func(shape *claimShape) {
		key := shape.key()
		if c.pods[key] != nil {
			return
		}
		var made *Shape
		made, snap = ShapeOfClaims(snap, metav1.NamespaceDefault, fmt.Sprintf("shape-%d", len(c.pods)), &shape.spec)
		c.pods[key], c.counts[key] = made.Pod, map[bool]*slotCount{}
	}
	for _, shape := range shapes {
		add(shape)
		add(shape.forOne())
		add(shape.base())
	}
	for _, class := range snap.Classes {
		for count := 1; count <= resourceapi.AllocationResultsMaxSize; count *= 2 {
			add(ofClass(class.Name, count))
		}
	}
	c.now = s.Amended(snap)
	c.free = released(c.now)
	return c
}

// laddered adds shapes of 1, 2, 4 devices of each class and so on, as long as a claim for
// so many would fit with all claims released, and puts all in order.
func (c *slots) laddered(ctx context.Context, shapes []*claimShape) ([]*claimShape, error) {
	known := map[string]bool{}
	for _, shape := range shapes {
		known[shape.key()] = true
	}
	for _, class := range c.now.Snapshot.Classes {
		for devices := 1; devices <= resourceapi.AllocationResultsMaxSize; devices *= 2 {
			shape := ofClass(class.Name, devices)
			count, err := c.count(ctx, shape, true)
			if err != nil {
				return nil, err
			}
			if devices > 1 && count.count.AtLeast == 0 {
				break
			}
			if !known[shape.key()] {
				shapes = append(shapes, shape)
			}
		}
	}
	slices.SortFunc(shapes, func(a, b *claimShape) int {
		return cmp.Or(strings.Compare(a.Class, b.Class), cmp.Compare(len(a.Selectors), len(b.Selectors)), slices.Compare(a.Selectors, b.Selectors),
			cmp.Compare(a.Devices, b.Devices), strings.Compare(a.key(), b.key()))
	})
	return shapes, nil
}

// count counts claims of a shape, now or with all claims released. Why none fits now is
// found out, too.
func (c *slots) count(ctx context.Context, shape *claimShape, free bool) (*slotCount, error) {
	key := shape.key()
	if known := c.counts[key][free]; known != nil {
		return known, nil
	}
	base, err := c.baseOf(ctx, shape, free)
	if err != nil {
		return nil, err
	}
	count, err := base.count(ctx, shape, c.pods[key], !free)
	if err != nil {
		return nil, err
	}
	if count == nil || count.count.AtLeast == 0 && !free && !countsOnly(count.stop) {
		// Nodes depend on each other, or the reason is looked for on all of them.
		state := c.now
		if free {
			state = c.free
		}
		if count, _, err = slotsIn(ctx, c.asker, state, c.pods[key], nil); err != nil {
			return nil, err
		}
	}
	count.devices = base.devices
	c.counts[key][free] = count
	return count, nil
}

// countsOnly reports whether a reason tells how many devices nodes have, and nothing of what
// other devices are like: then it is the same if some nodes stand for others.
func countsOnly(stop *api.CopyStop) bool {
	return stop != nil && slices.Contains([]api.Code{api.CountUnsatisfiable, api.ConstraintUnsatisfiable, api.DeviceAllocated}, stop.Code)
}

// baseOf returns the base of a shape.
func (c *slots) baseOf(ctx context.Context, shape *claimShape, free bool) (*base, error) {
	one := shape.base()
	key := one.key()
	if known := c.bases[free][key]; known != nil {
		return known, nil
	}
	state := c.now
	if free {
		state = c.free
	}
	if c.rooms[free] == nil {
		c.rooms[free] = roomsOf(state, c.pods[key])
	}
	few := c.samples[free]
	if few == nil {
		few = &sample{}
		c.samples[free] = few
		var unsuitable []*corev1.Node
		few.groups, unsuitable = c.asker.Groups(state, slices.Collect(maps.Values(c.pods)))
		for _, group := range few.groups {
			sortByRoom(group, c.rooms[free])
		}
		if len(few.groups) > 0 {
			few.prepare(state.Snapshot, unsuitable)
		}
	}
	whole := state
	if few.state != nil {
		state = few.state
	} else {
		few = nil
	}
	asked, err := c.asker.Ask(ctx, state, c.pods[key], few.namesOf())
	if err != nil {
		return nil, err
	}
	if !free {
		c.hear(asked.Answer)
	}
	c.bases[free][key], err = newBase(ctx, c.asker, whole, c.rooms[free], few, asked)
	return c.bases[free][key], err
}

// hear takes from an answer the facts that are common to all shapes.
func (c *slots) hear(answer *api.Explanation) {
	c.out.Allocator, c.out.NodeCount = answer.Allocator, max(answer.NodeCount, c.out.NodeCount)
	for _, text := range answer.Assumptions {
		if !slices.Contains(c.out.Assumptions, text) {
			c.out.Assumptions = append(c.out.Assumptions, text)
		}
	}
}

// line returns what there is to say of a shape.
func (c *slots) line(ctx context.Context, shape *claimShape) (*api.ShapeFit, error) {
	now, err := c.count(ctx, shape, false)
	if err != nil {
		return nil, err
	}
	later, err := c.count(ctx, shape, true)
	if err != nil {
		return nil, err
	}
	one, err := c.count(ctx, shape.forOne(), false)
	if err != nil {
		return nil, err
	}
	line := &api.ShapeFit{Shape: shape.ClaimShape, Claims: shape.claims, Example: shape.example, Now: now.count, Released: later.count}
	if now.count.AtLeast == 0 {
		line.Stop = now.stop
	}
	if exact(one.count) && later.count.AtLeast > 0 {
		line.Free = ptr.To(one.count.AtLeast)
		if exact(now.count) && one.count.AtLeast > 0 {
			left := one.count.AtLeast - now.count.AtLeast*shape.Devices
			line.LostPercent = ptr.To(max(left, 0) * 100 / one.count.AtLeast)
		}
	}
	if len(now.bounds) > 0 || len(later.bounds) > 0 || !exact(now.count) || later.count.AtLeast <= now.count.AtLeast {
		return line, nil
	}
	return line, c.pack(ctx, shape, line, now, later)
}

// pack looks for moves that leave room for more claims of a shape.
func (c *slots) pack(ctx context.Context, shape *claimShape, line *api.ShapeFit, now, later *slotCount) error {
	classes := map[string]*slotCount{}
	for _, class := range c.now.Snapshot.Classes {
		count, err := c.count(ctx, ofClass(class.Name, 1), false)
		if err != nil {
			return err
		}
		classes[class.Name] = count
	}
	if c.movers == nil {
		c.movers = moversIn(c.now.Snapshot)
	}
	line.Packed = &api.CopyCount{AtLeast: now.count.AtLeast}
	bound := min(later.bound, packedBound(c.now.Snapshot, c.movers, shape, later))
	if bound < unlimited {
		line.Packed.AtMost = ptr.To(max(bound, now.count.AtLeast))
	}
	if bound <= now.count.AtLeast {
		return nil
	}
	p := &packing{
		pod: c.pods[shape.key()], onePod: c.pods[shape.forOne().key()], size: shape.Devices,
		plain: len(shape.Match)+len(shape.Distinct) == 0 && !later.divisible, later: later, classes: classes,
	}
	one, err := c.count(ctx, shape.forOne(), false)
	if err != nil {
		return err
	}
	oneLater, err := c.baseOf(ctx, shape.forOne(), true)
	if err != nil {
		return err
	}
	p.oneDevices = oneLater.devices
	p.start = cluster.New(whatif.Local(c.now.Snapshot, p.among(c.now.Snapshot, c.movers, now, one)))
	p.now, p.ones = now.on(p.start.Snapshot.Nodes), one.on(p.start.Snapshot.Nodes)
	won, move, err := p.best(ctx, c.now, bound-now.count.AtLeast)
	if err != nil {
		return err
	}
	line.Packed.AtLeast += won
	line.Move = move
	return nil
}
