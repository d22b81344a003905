// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	storageapi "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Ranks of changes, in the order in which they are tried as a reason.
const (
	rankSettings = iota
	rankDriver
	rankObject
	rankNode
	rankPool
	rankPod
)

// comparison has the changes between two snapshots.
type comparison struct {
	old, new    *snapshot.Snapshot
	changes     []*change
	byPod       map[types.NamespacedName]*change
	byClaim     map[types.NamespacedName]*change
	notCompared []string
}

// compare finds the changes between two snapshots, in the order of their ranks.
func compare(old, later *snapshot.Snapshot) *comparison {
	c := &comparison{old: old, new: later, byPod: map[types.NamespacedName]*change{}, byClaim: map[types.NamespacedName]*change{}}
	if facts := settingsFacts(old, later); len(facts) > 0 {
		c.changes = append(c.changes, &change{unit: "settings", rank: rankSettings, settings: true, facts: facts, objects: []*object{{was: &relevant{}, is: &relevant{}}}})
	}
	moved := map[string]bool{}
	if c.read(snapshot.ResourceNodes) {
		for was, is := range snapshot.Changes(old.Nodes, later.Nodes) {
			if o := differing(api.KindNode, was, is, relevantNode); o != nil {
				moved[o.ref.Name] = o.op() != api.Changed
				c.add(&change{unit: "node " + o.ref.Name, rank: rankNode, facts: nodeFacts(o.ref.Name, was, is)}, o)
			}
		}
	}
	if c.read(snapshot.ResourceSlices) {
		c.comparePools(moved)
	}
	if c.read(snapshot.ResourceTaintRules) {
		for was, is := range snapshot.Changes(old.TaintRules, later.TaintRules) {
			if o := differing("DeviceTaintRule", was, is, relevantRule); o != nil {
				c.add(&change{rank: rankObject, facts: ruleFacts(o.ref.Name, was, is)}, o)
			}
		}
	}
	compareList(c, snapshot.ResourceClasses, "DeviceClass", "class", old.Classes, later.Classes, func(o *resourceapi.DeviceClass) relevant { return relevant{Spec: o.Spec} })
	compareList(c, snapshot.ResourceTemplates, api.KindTemplate, "template", old.Templates, later.Templates, func(o *resourceapi.ResourceClaimTemplate) relevant { return relevant{Spec: o.Spec} })
	compareList(c, snapshot.ResourceNamespaces, "Namespace", "namespace", old.Namespaces, later.Namespaces, relevantNamespace)
	c.compareOthers()
	c.compareWorkloads()
	if c.read(snapshot.ResourceClaims) {
		for was, is := range snapshot.Changes(old.Claims, later.Claims) {
			if o := differing(api.KindClaim, was, is, relevantClaim); o != nil {
				c.addClaim(o, was, is)
			}
		}
	}
	if c.read(snapshot.ResourcePods) {
		for was, is := range snapshot.Changes(old.Pods, later.Pods) {
			if o := differing(api.KindPod, was, is, relevantPod); o != nil {
				c.addPod(o, was, is)
			}
		}
	}
	slices.SortStableFunc(c.changes, func(a, b *change) int { return cmp.Compare(a.rank, b.rank) })
	return c
}

// read reports whether both states have all objects of a resource, and notes it if they do not.
func (c *comparison) read(resource string) bool {
	for _, s := range []*snapshot.Snapshot{c.old, c.new} {
		if gap := s.Gap(resource); gap != nil && !gap.LeftOut {
			c.notCompared = append(c.notCompared, resource+" of "+s.Source+": "+gap.Reason)
			return false
		}
	}
	return true
}

// add adds a change of one object.
func (c *comparison) add(ch *change, o *object) {
	ch.objects, ch.undo = append(ch.objects, o), append(ch.undo, o.ref)
	ch.unit = cmp.Or(ch.unit, o.ref.String())
	c.changes = append(c.changes, ch)
}

// differing returns an object if its relevant parts differ, else nil.
func differing[T interface {
	comparable
	metav1.Object
}](kind string, was, is T, part func(T) relevant,
) *object {
	var none T
	o := &object{}
	if was != none {
		before := part(was)
		o.ref, o.was = api.RefTo(kind, was), &before
	}
	if is != none {
		after := part(is)
		o.ref, o.is = api.RefTo(kind, is), &after
	}
	if o.was == nil || o.is == nil {
		return o
	}
	if o.was.Metadata.UID == "" || o.is.Metadata.UID == "" {
		o.was.Metadata.UID, o.is.Metadata.UID = "", ""
	}
	if equality.Semantic.DeepEqual(o.was, o.is) {
		return nil
	}
	return o
}

// compareList adds the changes of objects about which nothing special is to be said.
func compareList[T interface {
	comparable
	metav1.Object
}](c *comparison, resource, kind, noun string, old, later []T, part func(T) relevant,
) {
	if !c.read(resource) {
		return
	}
	for was, is := range snapshot.Changes(old, later) {
		if o := differing(kind, was, is, part); o != nil {
			c.add(&change{rank: rankObject, facts: objectFacts(noun, o)}, o)
		}
	}
}

// compareWorkloads adds the changes of workloads that both states have: a live cluster is asked for
// few of them.
func (c *comparison) compareWorkloads() {
	for was, is := range snapshot.Changes(c.old.Workloads, c.new.Workloads) {
		if was == nil || is == nil {
			continue
		}
		if o := differing(is.Kind, was, is, relevantWorkload); o != nil {
			o.ref = is.Ref()
			c.add(&change{rank: rankObject, facts: objectFacts(is.Kind, o)}, o)
		}
	}
}

// comparePools adds the changes of pools. moved has the nodes that came or went: their pools belong
// to them.
func (c *comparison) comparePools(moved map[string]bool) {
	touched := map[snapshot.PoolID]bool{}
	for was, is := range snapshot.Changes(c.old.Slices, c.new.Slices) {
		for _, s := range []*resourceapi.ResourceSlice{was, is} {
			if s != nil {
				touched[snapshot.PoolOf(s)] = true
			}
		}
	}
	if len(touched) == 0 {
		return
	}
	type sides struct{ was, is []*resourceapi.ResourceSlice }
	pools, drivers := map[snapshot.PoolID]*sides{}, map[string]map[string]bool{}
	side := func(s *resourceapi.ResourceSlice) *sides {
		id := snapshot.PoolOf(s)
		if pools[id] == nil {
			pools[id] = &sides{}
			if drivers[id.Name] == nil {
				drivers[id.Name] = map[string]bool{}
			}
			drivers[id.Name][id.Driver] = true
		}
		return pools[id]
	}
	for _, s := range c.old.Slices {
		side(s).was = append(side(s).was, s)
	}
	for _, s := range c.new.Slices {
		side(s).is = append(side(s).is, s)
	}
	before, after := newestGenerations(c.old.Slices), newestGenerations(c.new.Slices)
	var changed []*change
	for id := range touched {
		s := pools[id]
		ch := &change{unit: "pool " + id.Driver + "/" + id.Name, rank: rankPool, objects: slicesThatDiffer(s.was, s.is, before, after)}
		if len(ch.objects) == 0 {
			continue
		}
		for _, slice := range slices.Concat(s.was, s.is) {
			ch.undo = append(ch.undo, api.RefTo("ResourceSlice", slice))
		}
		was, is := newPoolState(s.was), newPoolState(s.is)
		name := id.Name
		if len(drivers[id.Name]) > 1 {
			name += " of driver " + id.Driver
		}
		ch.facts = poolFacts(id.Driver, name, was, is, ch.objects)
		from, to := was.version(id.Driver), is.version(id.Driver)
		switch node := cmp.Or(is.node, was.node); {
		case from != "" && to != "" && from != to:
			ch.unit, ch.rank = "driver "+id.Driver, rankDriver
		case moved[node]:
			ch.unit, ch.rank = "node "+node, rankNode
		}
		changed = append(changed, ch)
	}
	slices.SortFunc(changed, func(a, b *change) int {
		return cmp.Or(english.CompareNames(a.facts[0].name, b.facts[0].name), cmp.Compare(a.unit, b.unit))
	})
	c.changes = append(c.changes, changed...)
}

// slicesThatDiffer returns the slices of a pool that differ. Slices that only have another name are
// the same: drivers publish them again under new names.
func slicesThatDiffer(old, later []*resourceapi.ResourceSlice, before, after map[snapshot.PoolID]int64) []*object {
	parts := func(list []*resourceapi.ResourceSlice, newest map[snapshot.PoolID]int64) []*object {
		var objects []*object
		for _, s := range list {
			part := relevantSlice(s, newest)
			objects = append(objects, &object{ref: api.RefTo("ResourceSlice", s), is: &part})
		}
		return objects
	}
	was, is := parts(old, before), parts(later, after)
	for _, same := range []func(a, b *object) bool{
		func(a, b *object) bool { return a.ref == b.ref && equality.Semantic.DeepEqual(a.is, b.is) },
		func(a, b *object) bool { return equality.Semantic.DeepEqual(a.is, b.is) },
	} {
		was = slices.DeleteFunc(was, func(a *object) bool {
			at := slices.IndexFunc(is, func(b *object) bool { return same(a, b) })
			if at >= 0 {
				is = slices.Delete(is, at, at+1)
			}
			return at >= 0
		})
	}
	for _, a := range was {
		a.was, a.is = a.is, nil
		if at := slices.IndexFunc(is, func(b *object) bool { return a.ref == b.ref }); at >= 0 {
			a.is = is[at].is
			is = slices.Delete(is, at, at+1)
		}
	}
	return slices.Concat(was, is)
}

// addPod adds the change of a pod, which is undone together with the changes of its claims.
func (c *comparison) addPod(o *object, was, is *corev1.Pod) {
	ch := c.ofPod(types.NamespacedName{Namespace: o.ref.Namespace, Name: o.ref.Name})
	ch.objects, ch.undo = append(ch.objects, o), append(ch.undo, o.ref)
	// A claim that came, went, or got devices says what became of its pod.
	if len(ch.facts) == 0 {
		ch.facts = podFacts(o, was, is)
	} else {
		ch.facts = append(podFacts(o, was, is), ch.facts...)
	}
	for _, pod := range []*corev1.Pod{was, is} {
		if pod != nil && pod.Spec.NodeName != "" {
			ch.unit = "pods on node " + pod.Spec.NodeName
		}
	}
}

// addClaim adds the change of a claim to the change of its pod.
func (c *comparison) addClaim(o *object, was, is *resourceapi.ResourceClaim) {
	pod := ""
	for _, claim := range []*resourceapi.ResourceClaim{was, is} {
		if claim != nil {
			pod = cmp.Or(podOf(claim), pod)
		}
	}
	ch := &change{rank: rankPod, unit: "claims in " + o.ref.Namespace}
	if pod != "" {
		ch = c.ofPod(types.NamespacedName{Namespace: o.ref.Namespace, Name: pod})
	} else {
		c.changes = append(c.changes, ch)
	}
	ch.objects, ch.undo = append(ch.objects, o), append(ch.undo, o.ref)
	ch.facts = append(ch.facts, claimFacts(o, was, is)...)
	c.byClaim[types.NamespacedName{Namespace: o.ref.Namespace, Name: o.ref.Name}] = ch
}

// ofPod returns the change of a pod and its claims.
func (c *comparison) ofPod(name types.NamespacedName) *change {
	if c.byPod[name] == nil {
		c.byPod[name] = &change{rank: rankPod, unit: "pods in " + name.Namespace}
		c.changes = append(c.changes, c.byPod[name])
	}
	return c.byPod[name]
}

// compareOthers adds the changes of objects that decide about pods besides devices. Most of them are
// read only where a pod depends on them.
func (c *comparison) compareOthers() {
	both := func(resource string) bool {
		return slices.Contains(c.old.Listed, resource) == slices.Contains(c.new.Listed, resource)
	}
	compareList(c, snapshot.ResourcePodGroups, api.KindPodGroup, api.KindPodGroup, c.old.PodGroups, c.new.PodGroups, func(o *schedulingapi.PodGroup) relevant { return relevant{Spec: o.Spec} })
	if both(snapshot.ResourceCompositePodGroups) {
		compareList(c, snapshot.ResourceCompositePodGroups, api.KindCompositePodGroup, api.KindCompositePodGroup, c.old.CompositePodGroups, c.new.CompositePodGroups, func(o *schedulingv1alpha3.CompositePodGroup) relevant {
			return relevant{Spec: o.Spec}
		})
	}
	if both(snapshot.ResourceQuotas) {
		compareList(c, snapshot.ResourceQuotas, "ResourceQuota", "ResourceQuota", c.old.Quotas, c.new.Quotas, func(o *corev1.ResourceQuota) relevant { return relevant{Spec: o.Spec, Status: o.Status} })
	}
	if both(snapshot.ResourceLimitRanges) {
		compareList(c, snapshot.ResourceLimitRanges, "LimitRange", "LimitRange", c.old.LimitRanges, c.new.LimitRanges, func(o *corev1.LimitRange) relevant { return relevant{Spec: o.Spec} })
	}
	if both(snapshot.ResourceVolumeClaims) {
		compareList(c, snapshot.ResourceVolumeClaims, "PersistentVolumeClaim", "PersistentVolumeClaim", c.old.VolumeClaims, c.new.VolumeClaims, func(o *corev1.PersistentVolumeClaim) relevant {
			return relevant{Spec: o.Spec, Status: o.Status.Phase}
		})
	}
	if both(snapshot.ResourceVolumes) {
		compareList(c, snapshot.ResourceVolumes, "PersistentVolume", "PersistentVolume", c.old.Volumes, c.new.Volumes, func(o *corev1.PersistentVolume) relevant { return relevant{Spec: o.Spec, Status: o.Status.Phase} })
	}
	if both(snapshot.ResourceStorageClasses) {
		compareList(c, snapshot.ResourceStorageClasses, "StorageClass", "StorageClass", c.old.StorageClasses, c.new.StorageClasses, func(o *storageapi.StorageClass) relevant {
			return relevant{Spec: []any{o.Provisioner, o.VolumeBindingMode, o.AllowedTopologies}}
		})
	}
}
