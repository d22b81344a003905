// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/doctor"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// shownMost limits how many objects, facts and owners a cause lists.
const shownMost = 10

// stuck is a pod that waits for devices or cannot work with them, or a workload whose pods are
// refused.
type stuck struct {
	ref api.ObjectRef
	pod *corev1.Pod
	age int64
	// answer is the explanation of a pod that waits, or err why there is none; full is the
	// explanation with the advice, of an equal pod where there is one.
	answer, full *api.Explanation
	err          error
	blocked      *lifecycle.BlockedPod
	refused      *lifecycle.Refusal
	causes       []*cause
}

// owner returns the workload of a pod, the pod itself if it has none, or the refused workload.
func (s *stuck) owner() api.ObjectRef {
	if s.pod == nil {
		return s.ref
	}
	return cmp.Or(whatif.Owner(s.pod), s.ref)
}

// starts reports whether the scheduler places a pod as soon as it looks at it.
func (s *stuck) starts() bool {
	return s.answer != nil && s.answer.Verdict == api.Fits && s.answer.OtherScheduler == nil && len(s.answer.SchedulingGates) == 0
}

// key identifies a cause: its code, and the name of an object or of what its objects have in
// common.
type key struct{ code, group string }

// cause is a cause while it is found.
type cause struct {
	api.Cause
	key   key
	stuck []*stuck
	// ofPods says that only pods make it a cause: there is nothing wrong without them.
	ofPods bool
	edits  []api.Edit
	// others counts the findings and pods with messages of their own besides the first.
	others int
	// fitsOn says where pods fit after the edits, if what they ask is changed.
	fitsOn string
	// safe counts the pods that are evicted because of it.
	safe int
	// needs has how many devices each pod lacks, for a class whose devices are in use.
	needs map[*stuck]int64
	// capacity names the capacity that devices lack, by pod: "80G of bandwidth".
	capacity map[*stuck]string
}

// suffer adds a pod to a cause.
func (c *cause) suffer(s *stuck) {
	if !slices.Contains(s.causes, c) {
		s.causes = append(s.causes, c)
		c.stuck = append(c.stuck, s)
	}
}

// began notes when a part of a cause began; the first one counts.
func (c *cause) began(at *metav1.Time) {
	if !at.IsZero() && (c.Since == nil || at.Before(c.Since)) {
		c.Since = at
	}
}

// edit adds an edit that mends a cause.
func (c *cause) edit(e *api.Edit) {
	if !slices.ContainsFunc(c.edits, func(have api.Edit) bool {
		return have.Object == e.Object && have.Op == e.Op && have.Path == e.Path
	}) {
		c.edits = append(c.edits, *e)
	}
}

// finder finds the causes of a cluster.
type finder struct {
	cluster   *cluster.Cluster
	exam      *doctor.Examination
	namespace string
	taints    []api.Taint
	overview  *inventory.Overview
	// symptoms are findings about claims and templates.
	symptoms []*api.Finding
	stuck    []*stuck
	byRef    map[api.ObjectRef]*stuck
	causes   causeSet
}

// in reports whether a namespace is asked about.
func (f *finder) in(namespace string) bool { return f.namespace == "" || namespace == f.namespace }

func (f *finder) add(s *stuck) *stuck {
	if f.byRef[s.ref] == nil {
		f.stuck, f.byRef[s.ref] = append(f.stuck, s), s
	}
	return f.byRef[s.ref]
}

// causeSet has the causes that were found.
type causeSet struct {
	list  []*cause
	byKey map[key]*cause
	// byObject has the first cause of each object at fault.
	byObject map[api.ObjectRef]*cause
}

// get returns the cause with a key, which it makes if there is none, and reports whether it is
// new.
func (set *causeSet) get(k key) (c *cause, made bool) {
	if c := set.byKey[k]; c != nil {
		return c, false
	}
	c = &cause{key: k, Cause: api.Cause{Code: k.code, ID: identity(k)}}
	set.byKey[k], set.list = c, append(set.list, c)
	return c, true
}

// blame adds an object at fault to a cause.
func (set *causeSet) blame(c *cause, objects ...api.ObjectRef) {
	for _, o := range objects {
		if !slices.Contains(c.Objects, o) {
			c.Objects = append(c.Objects, o)
		}
		if set.byObject[o] == nil {
			set.byObject[o] = c
		}
	}
}

func identity(k key) string {
	sum := sha256.Sum256([]byte(k.code + "\x00" + k.group))
	return k.code + "-" + hex.EncodeToString(sum[:4])
}

// ranked returns the causes of the namespace, the worst first, with their numbers.
func (f *finder) ranked() []*cause {
	var list []*cause
	for _, c := range f.causes.list {
		if f.number(c) {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b *cause) int {
		return cmp.Or(
			cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(b.Pods, a.Pods), cmp.Compare(b.LongestSeconds, a.LongestSeconds),
			cmp.Compare(b.Devices, a.Devices), cmp.Compare(a.ID, b.ID),
		)
	})
	return list
}

func rank(s api.Severity) int {
	return slices.Index([]api.Severity{api.SeverityError, api.SeverityWarning, api.SeverityInfo, api.SeverityUnknown}, s)
}

// number counts the pods that suffer from a cause in the namespace, and reports whether the cause
// concerns it.
func (f *finder) number(c *cause) bool {
	type of struct{ owner api.ObjectRef }
	groups := map[of]*api.AffectedPods{}
	var order []*api.AffectedPods
	namespaces := map[string]bool{}
	for _, s := range c.stuck {
		if !f.in(s.ref.Namespace) {
			continue
		}
		owner := s.owner()
		group := groups[of{owner}]
		if group == nil {
			group = &api.AffectedPods{Namespace: s.ref.Namespace, Name: s.ref.Name}
			if owner != s.ref || s.pod == nil {
				group.Owner = owner
			}
			groups[of{owner}], order = group, append(order, group)
		}
		if s.pod != nil {
			group.Count++
			c.Pods++
		}
		namespaces[s.ref.Namespace] = true
		c.LongestSeconds = max(c.LongestSeconds, s.age)
	}
	slices.SortStableFunc(order, func(a, b *api.AffectedPods) int { return cmp.Compare(b.Count, a.Count) })
	for _, group := range order[:min(len(order), shownMost)] {
		c.Affected = append(c.Affected, *group)
	}
	c.Workloads, c.Namespaces = len(order), len(namespaces)
	if len(order) == 0 && len(c.stuck) > 0 {
		// Only pods of other namespaces suffer from it.
		c.Severity = api.SeverityWarning
	}
	for _, o := range c.Objects {
		if o.Kind == api.KindNode {
			c.Nodes++
		}
	}
	if c.Since != nil {
		c.AgeSeconds = int64(f.cluster.Snapshot.Now().Sub(c.Since.Time).Seconds())
	}
	return f.namespace == "" || len(order) > 0 || !c.ofPods && inventory.Concerns(&api.Finding{Objects: c.Objects}, f.namespace)
}

// shown returns a cause as it is printed.
func (c *cause) shown() api.Cause {
	out := c.Cause
	out.ObjectCount = len(out.Objects)
	out.Objects = out.Objects[:min(len(out.Objects), shownMost)]
	out.Evidence = out.Evidence[:min(len(out.Evidence), shownMost)]
	if c.others > 0 {
		out.Message += fmt.Sprintf(" (and %d more like it)", c.others)
	}
	if out.NextStep != nil {
		out.Actor = out.NextStep.Actor
	}
	return out
}
