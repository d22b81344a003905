// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Random makes a cluster that is small enough for the allocator to try
// everything: up to three nodes, a handful of devices, a pod with one or a few
// claims. A few of all features come together in each. The same seed always
// gives the same cluster. Every device has an attribute "id" that no other
// device has.
func Random(seed uint64) *Case {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 7)), on: map[string]bool{}, snap: &snapshot.Snapshot{
		Source: fmt.Sprintf("seed %d", seed), Release: snapshot.Release{ServerVersion: "v1.37.1", Gates: map[string]snapshot.Gate{}},
		Clock: snapshot.Clock{TakenAt: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)},
	}}
	features := Features()
	for range 3 + g.IntN(6) {
		g.on[features[g.IntN(len(features))].Name] = true
	}
	// What rarely makes a difference comes more often, what always does less.
	if g.chance(60) {
		rare := []string{ListAttributes, RequestPolicies, BindingConditions, CompatibilityGroups, Shares, Tolerations}
		g.on[rare[g.IntN(len(rare))]] = true
		for _, name := range []string{Mistakes, ManyDevices, AllocatedClaims} {
			g.on[name] = g.on[name] && g.chance(40)
		}
	}
	// What makes no sense alone.
	for _, pair := range [][2]string{
		{Tolerations, Taints},
		{RequestPolicies, CapacityRequests},
		{CapacityRequests, Shares},
		{CompatibilityGroups, Counters},
		{ListAttributes, MatchConstraints},
		{ObsoletePools, Holders},
	} {
		if g.on[pair[0]] && g.chance(70) {
			g.on[pair[1]] = true
		}
	}
	c := &Case{Seed: seed, Snapshot: g.snap}
	for _, f := range features {
		if g.on[f.Name] {
			c.Features = append(c.Features, f.Name)
		}
	}
	g.gates()
	g.nodes()
	g.classes()
	// What the allocator tries grows beyond measure with both.
	most := 12
	if g.on[SeveralClaims] {
		most = 7
	}
	for p := range 1 + g.IntN(4) {
		if len(g.published) < most {
			g.pool(p)
		}
	}
	g.holders()
	g.taintRules()
	g.pod()
	g.mistakes()
	sortByName(g.snap.Claims)
	sortByName(g.snap.Slices)
	sortByName(g.snap.Classes)
	return c
}

func sortByName[T metav1.Object](list []T) {
	slices.SortStableFunc(list, func(a, b T) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
}

// gates turns everything on, or what one of the allocator's implementations
// knows, or anything.
func (g *generator) gates() {
	stable := []string{"DRAAdminAccess", "DRAPrioritizedList", "DRAPartitionableDevices", "DRADeviceTaints"}
	incubating := append(slices.Clone(stable), "DRAConsumableCapacity", "DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")
	enabled := AllGates()
	if g.on[GatesOff] || g.on[BindingConditions] && g.chance(30) {
		switch g.IntN(3) {
		case 0:
			enabled = stable
		case 1:
			enabled = incubating
		default:
			enabled = slices.DeleteFunc(enabled, func(string) bool { return g.chance(25) })
		}
	}
	for _, name := range AllGates() {
		g.snap.Gates[name] = snapshot.Gate{Enabled: slices.Contains(enabled, name), Source: snapshot.GateFromFlag}
	}
	// These two are not about what the allocator can do.
	g.snap.Gates["DRAExtendedResource"] = snapshot.Gate{Enabled: true, Source: snapshot.GateFromFlag}
	g.snap.Gates["DRASchedulerFilterTimeout"] = snapshot.Gate{Enabled: true, Source: snapshot.GateFromFlag}
}

func (g *generator) nodes() {
	for i := range 1 + g.IntN(3) {
		n := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i+1), Labels: map[string]string{"zone": g.pick("a", "b")}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("110"),
			}},
		}
		n.Labels[corev1.LabelHostname] = n.Name
		if g.with(NodeFit, 30) {
			n.Spec.Taints = []corev1.Taint{{Key: g.pick("x", "y"), Effect: corev1.TaintEffectNoSchedule}}
		}
		if g.with(NodeFit, 15) {
			n.Spec.Unschedulable = true
		}
		if g.chance(60) {
			n.Status.DeclaredFeatures = []string{"DRAOptionalNodeOperations"}
		}
		if g.with(ExtendedResources, 15) {
			n.Status.Allocatable[extendedName] = resource.MustParse("1")
		}
		g.snap.Nodes = append(g.snap.Nodes, n)
	}
	g.snap.Namespaces = []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: Namespace, Labels: map[string]string{resourceapi.DRAAdminNamespaceLabelKey: "true"}}}}
}

func (g *generator) classes() {
	for name, expressions := range map[string][]string{
		Class:     {`device.driver == "` + Driver + `"`},
		Links:     {`device.driver == "` + Links + `"`},
		fastClass: {`device.driver == "` + Driver + `"`, `device.attributes["` + Driver + `"].id % 2 == 0`},
		anyClass:  nil,
	} {
		c := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, expression := range expressions {
			c.Spec.Selectors = append(c.Spec.Selectors, celSelector(expression))
		}
		if name == Class && g.on[ExtendedResources] {
			c.Spec.ExtendedResourceName = ptr.To(extendedName)
		}
		g.snap.Classes = append(g.snap.Classes, c)
	}
}

// pool publishes the devices of one driver, for a node or for several.
func (g *generator) pool(number int) {
	driver, home, name := Driver, g.node(), fmt.Sprintf("pool-%d", number)
	if number > 0 && g.chance(30) {
		driver = Links
	}
	parts := 1
	if g.chance(20) {
		parts = 2
	}
	withCounters := g.with(Counters, 80)
	var all []*resourceapi.ResourceSlice
	for range parts {
		s := g.slice(driver, name, home)
		for range 1 + g.IntN(4) {
			s.Spec.Devices = append(s.Spec.Devices, g.device(withCounters))
		}
		if s.Spec.PerDeviceNodeSelection != nil {
			for i := range s.Spec.Devices {
				if d := &s.Spec.Devices[i]; g.chance(20) {
					d.AllNodes = ptr.To(true)
				} else {
					d.NodeName = ptr.To(g.node())
				}
			}
		}
		all = append(all, s)
	}
	if g.with(ManyDevices, 30) && !g.on[SeveralClaims] && !g.on[PrioritizedLists] && !g.on[ExtendedResources] {
		for len(all[0].Spec.Devices) < resourceapi.AllocationResultsMaxSize+1 {
			all[0].Spec.Devices = append(all[0].Spec.Devices, g.device(false))
		}
	}
	if withCounters {
		s := g.slice(driver, name, home)
		set := resourceapi.CounterSet{Name: "board", Counters: map[string]resourceapi.Counter{"units": {Value: g.quantity("2", "3", "4")}}}
		if g.chance(30) {
			set.Counters["memory"] = resourceapi.Counter{Value: g.quantity("2", "1500m", "5")}
		}
		s.Spec.SharedCounters = []resourceapi.CounterSet{set}
		all = append(all, s)
	}
	g.defects(all)
	g.snap.Slices = append(g.snap.Slices, all...)
	for _, s := range all {
		for i := range s.Spec.Devices {
			g.published = append(g.published, published{driver, name, home, &s.Spec.Devices[i]})
		}
	}
}

// slice returns one of a pool, for its home unless the devices are elsewhere.
func (g *generator) slice(driver, pool, home string) *resourceapi.ResourceSlice {
	g.slices++
	s := &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%d-%02d-%s", g.IntN(10), g.slices, pool)},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, NodeName: ptr.To(home), Pool: resourceapi.ResourcePool{Name: pool, Generation: 1},
		},
	}
	switch {
	case g.chance(5):
		s.Spec.NodeName = ptr.To(g.node())
	case g.with(NetworkAttached, 40):
		s.Spec.NodeName, s.Spec.AllNodes = nil, ptr.To(true)
	case g.with(NetworkAttached, 50):
		s.Spec.NodeName, s.Spec.NodeSelector = nil, &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{g.pick("a", "b")}}},
		}}}
	case g.with(PerDeviceNodes, 60):
		s.Spec.NodeName, s.Spec.PerDeviceNodeSelection = nil, ptr.To(true)
	}
	if g.with(NodeOperations, 50) {
		s.Spec.SkipNodeOperations = []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationAll}
	}
	return s
}

// defects makes pools incomplete, invalid and obsolete.
func (g *generator) defects(all []*resourceapi.ResourceSlice) {
	count := len(all)
	if g.with(IncompletePools, 50) {
		count++
	}
	for _, s := range all {
		s.Spec.Pool.ResourceSliceCount = int64(count)
	}
	if g.with(InvalidPools, 50) {
		s := all[0]
		switch g.IntN(3) {
		case 0:
			copied := *s.Spec.Devices[0].DeepCopy()
			copied.Attributes["id"] = resourceapi.DeviceAttribute{IntValue: ptr.To(int64(1000 + len(g.published)))}
			s.Spec.Devices = append(s.Spec.Devices, copied)
		case 1:
			if last := all[len(all)-1]; len(last.Spec.SharedCounters) > 0 {
				last.Spec.SharedCounters = append(last.Spec.SharedCounters, last.Spec.SharedCounters[0])
			}
		default:
			s.Spec.Devices[0].ConsumesCounters = []resourceapi.DeviceCounterConsumption{{
				CounterSet: "missing", Counters: map[string]resourceapi.Counter{"units": {Value: resource.MustParse("1")}},
			}}
		}
	}
	if g.with(ObsoletePools, 50) {
		newest := all[g.IntN(len(all))]
		newest.Spec.Pool.Generation = 2
		if g.chance(70) {
			newest.Spec.Pool.ResourceSliceCount = 1
		}
	}
}

// holders allocates some of the devices to claims of others.
func (g *generator) holders() {
	g.published = slices.DeleteFunc(g.published, func(p published) bool { return p.pool == "" })
	for i := range g.published {
		p := &g.published[i]
		if !g.with(Holders, 60) {
			continue
		}
		g.snap.Claims = append(g.snap.Claims, g.allocated("serving", fmt.Sprintf("holder-%02d", i), p))
	}
}

func (g *generator) taintRules() {
	if !g.on[TaintRules] {
		return
	}
	rule := &resourceapi.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: "broken"},
		Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: &resourceapi.DeviceTaintSelector{Driver: ptr.To(Driver)},
			Taint:          resourceapi.DeviceTaint{Key: g.pick("x", "y"), Effect: resourceapi.DeviceTaintEffect(g.pick("NoSchedule", "NoExecute"))},
		},
	}
	if g.chance(70) && len(g.published) > 0 {
		p := g.published[g.IntN(len(g.published))]
		rule.Spec.DeviceSelector = &resourceapi.DeviceTaintSelector{Pool: ptr.To(p.pool)}
		if g.chance(60) {
			rule.Spec.DeviceSelector.Device = ptr.To(p.device.Name)
		}
	}
	g.snap.TaintRules = append(g.snap.TaintRules, rule)
}

func (g *generator) device(withCounters bool) resourceapi.Device {
	id := len(g.published)*7 + g.IntN(7)
	for slices.ContainsFunc(g.published, func(p published) bool { return p.device.Name == deviceName(id) }) {
		id++
	}
	d := resourceapi.Device{
		Name: deviceName(id),
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"id":                              {IntValue: ptr.To(int64(id))},
			"numa":                            {IntValue: ptr.To(int64(g.IntN(3)))},
			"resource.kubernetes.io/pcieRoot": {StringValue: ptr.To(g.pick("r0", "r1"))},
		},
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: g.quantity("4", "8", "10")}},
	}
	// Taken at once, so that the name of the next one differs.
	g.published = append(g.published, published{device: &resourceapi.Device{Name: d.Name}})
	if g.chance(92) {
		d.Attributes["model"] = resourceapi.DeviceAttribute{StringValue: ptr.To(g.pick("A", "A", "B"))}
	}
	if g.with(ListAttributes, 60) {
		d.Attributes["model"] = resourceapi.DeviceAttribute{StringValues: slices.Compact([]string{g.pick("A", "B"), g.pick("B", "C")})}
	}
	if g.with(ListAttributes, 60) {
		d.Attributes["resource.kubernetes.io/pcieRoot"] = resourceapi.DeviceAttribute{StringValues: slices.Compact([]string{g.pick("r0", "r1"), g.pick("r1", "r2")})}
	}
	if g.with(ListAttributes, 15) {
		d.Attributes["model"] = resourceapi.DeviceAttribute{IntValue: ptr.To(int64(1))}
	}
	if g.with(ListAttributes, 40) {
		d.Attributes["numa"] = resourceapi.DeviceAttribute{IntValues: slices.Compact([]int64{int64(g.IntN(2)), int64(1 + g.IntN(2))})}
	}
	if g.with(RequestPolicies, 80) {
		d.Capacity["memory"] = g.policed(d.Capacity["memory"])
	}
	if g.with(Shares, 70) {
		d.AllowMultipleAllocations = ptr.To(true)
		if g.chance(30) {
			d.Capacity["lanes"] = resourceapi.DeviceCapacity{Value: g.quantity("1", "2", "1500m")}
		}
	}
	if g.with(Taints, 65) {
		d.Taints = []resourceapi.DeviceTaint{{Key: g.pick("x", "y"), Effect: resourceapi.DeviceTaintEffect(g.pick("NoSchedule", "NoExecute", "None"))}}
	}
	if withCounters && g.chance(80) {
		use := resourceapi.DeviceCounterConsumption{
			CounterSet: "board", Counters: map[string]resourceapi.Counter{"units": {Value: g.quantity("1", "2", "3")}},
		}
		if g.on[CompatibilityGroups] {
			// Else it is the counters that do not suffice.
			use.Counters["units"] = resourceapi.Counter{Value: resource.MustParse("1")}
		}
		if g.with(CompatibilityGroups, 85) {
			use.CompatibilityGroups = slices.Compact([]string{g.pick("g", "h"), g.pick("h", "i")})
		}
		d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{use}
	}
	if g.with(BindingConditions, 60) {
		d.BindingConditions, d.BindingFailureConditions = []string{"ready"}, []string{"broken"}
	}
	return d
}

func deviceName(id int) string { return fmt.Sprintf("dev-%02d", id) }

// policed adds a request policy to a capacity.
func (g *generator) policed(c resourceapi.DeviceCapacity) resourceapi.DeviceCapacity {
	standard := g.quantity("1", "2")
	c.RequestPolicy = &resourceapi.CapacityRequestPolicy{Default: &standard}
	switch g.IntN(3) {
	case 0:
		c.RequestPolicy.ValidValues = []resource.Quantity{resource.MustParse("1"), resource.MustParse("2"), resource.MustParse("4")}
	case 1:
		c.RequestPolicy.ValidRange = &resourceapi.CapacityRequestPolicyRange{
			Min: ptr.To(g.quantity("1", "500m", "2")), Step: ptr.To(g.quantity("1", "500m", "2")),
		}
		if g.chance(50) {
			c.RequestPolicy.ValidRange.Max = ptr.To(g.quantity("2", "4"))
		}
	}
	return c
}
