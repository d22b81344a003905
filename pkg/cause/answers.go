// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// fromAnswers makes causes of the answers about pods: a class whose devices are in use is the
// cause of all pods that wait for claims to be released. A pod that has no cause yet is one by
// itself, together with pods that fail for the same reason at the same object.
func (f *finder) fromAnswers() {
	for _, s := range f.stuck {
		switch {
		case s.err != nil:
			c := f.own(s, string(api.Undetermined), s.ref, s.err.Error(), nil)
			c.Severity = api.SeverityWarning
		case s.refused != nil:
			f.fromRefused(s)
		case s.blocked != nil:
			if len(s.causes) == 0 {
				f.fromBlocked(s)
			}
		case s.starts():
		case waitsForClaims(s.answer):
			f.fromFull(s)
		case len(s.causes) == 0:
			c := f.own(s, s.code(), f.at(s), cmp.Or(s.answer.Headline, s.answer.Summary), s.step())
			if s.answer.Verdict == api.Undetermined || s.answer.Verdict == api.Fits {
				c.Severity = api.SeverityWarning
			}
			c.mendOwn(s)
			if owner := s.owner(); f.in(s.ref.Namespace) && !c.changes(s) && !slices.Contains(c.AlsoFor, owner) {
				c.AlsoFor = append(c.AlsoFor, owner)
			}
		}
	}
	for _, c := range f.causes.list {
		if c.needs != nil {
			f.describeFull(c)
		}
	}
}

// own returns the cause that a pod is by itself, with pods that fail for the same reason at the
// same object.
func (f *finder) own(s *stuck, code string, at api.ObjectRef, message string, step *api.NextStep) *cause {
	c, made := f.causes.get(key{code, at.String()})
	if made {
		c.Severity, c.Message, c.NextStep, c.ofPods = api.SeverityError, message, step, true
		if s.answer != nil {
			c.Evidence = s.answer.StageEvidence
		}
	}
	f.causes.blame(c, at)
	c.suffer(s)
	return c
}

// step returns the first remedy of a pod that its user can make, or else the first remedy or next
// step at all.
func (s *stuck) step() *api.NextStep {
	e := s.full
	i := max(0, slices.IndexFunc(e.Remedies, func(r api.Remedy) bool { return r.Actor == api.ActorUser }))
	switch {
	case len(e.Remedies) > 0:
		return &api.NextStep{Actor: e.Remedies[i].Actor, Text: e.Remedies[i].Change, Commands: e.Remedies[i].Commands}
	case len(e.NextSteps) > 0:
		return &e.NextSteps[0]
	default:
		return &api.NextStep{Actor: api.ActorUser, Text: "no change is known that helps; see all conditions", Commands: []string{whyPod(s.pod)}}
	}
}

// at returns the object at fault if a pod does not fit for what it asks: the first object that
// a user's remedy changes, or else the template, the claim, or the workload. Equal pods have the
// object of the first of them.
func (f *finder) at(s *stuck) api.ObjectRef {
	if first := f.byRef[s.answer.SameAs]; first != nil && first.answer != nil && first.answer.SameAs.Kind == "" {
		s = first
	}
	if s.answer.Code == api.ClassNotFound {
		// All pods that name the class have the same cause.
		for _, class := range classesOf(f.exam.Inventory, s) {
			if f.cluster.Snapshot.Class(class) == nil {
				return api.Ref("DeviceClass", "", class)
			}
		}
	}
	for i := range s.full.Remedies {
		if r := &s.full.Remedies[i]; r.Actor == api.ActorUser && len(r.Edits) > 0 && s.full == s.answer {
			return r.Edits[0].Object
		}
	}
	if s.answer.Stage == api.StageNodeFit {
		return s.owner()
	}
	for _, entry := range s.pod.Spec.ResourceClaims {
		if entry.ResourceClaimTemplateName != nil {
			return api.Ref(api.KindTemplate, s.pod.Namespace, *entry.ResourceClaimTemplateName)
		}
		if entry.ResourceClaimName != nil {
			return api.Ref(api.KindClaim, s.pod.Namespace, *entry.ResourceClaimName)
		}
	}
	return s.owner()
}

// Codes of causes of pods that fit and do not start.
const (
	// SchedulingGated means that pods have scheduling gates.
	SchedulingGated = "SchedulingGated"
	// OtherScheduler means that another scheduler than kube-scheduler decides about pods.
	OtherScheduler = "OtherScheduler"
)

// code returns the code of the cause that a pod is by itself.
func (s *stuck) code() string {
	switch {
	case s.answer.Verdict != api.Fits:
		return explain.Word(s.answer)
	case len(s.answer.SchedulingGates) > 0:
		return SchedulingGated
	default:
		return OtherScheduler
	}
}

// waitsForClaims reports whether a pod fits when claims are released.
func waitsForClaims(e *api.Explanation) bool {
	when := explain.When(e)
	return e.Verdict == api.DoesNotFit && (e.Code == api.PodsCompete || when == api.LowerPrioritiesGone || when == api.ClaimsReleased)
}

// fromFull adds a pod to the cause of each class that has too few available devices for it.
func (f *finder) fromFull(s *stuck) {
	type lack struct {
		class    string
		needs    int64
		capacity string
	}
	var all, lacks []lack
	for i := range s.full.Claims {
		for j := range s.full.Claims[i].Requests {
			r := &s.full.Claims[i].Requests[j]
			one := lack{class: r.DeviceClass, needs: max(r.Needs, 1)}
			all = append(all, one)
			if int64(r.MostOnOneNode) >= one.needs {
				continue
			}
			if slices.ContainsFunc(r.Rejected, func(by api.Rejection) bool { return by.Code == api.CapacityInsufficient }) {
				one.capacity = capacityOf(f.cluster, s, s.full.Claims[i].PodClaim, r.Name)
			}
			lacks = append(lacks, one)
		}
	}
	if len(lacks) == 0 {
		lacks = all
	}
	for _, l := range lacks {
		c, _ := f.causes.get(key{string(api.DeviceAllocated), l.class})
		c.Severity, c.ofPods = api.SeverityWarning, true
		f.causes.blame(c, api.Ref("DeviceClass", "", l.class))
		if c.needs == nil {
			c.needs, c.capacity = map[*stuck]int64{}, map[*stuck]string{}
		}
		c.needs[s] += l.needs
		c.capacity[s] = cmp.Or(c.capacity[s], l.capacity)
		c.suffer(s)
	}
}

// capacityOf returns the capacity that a request of a pod asks of each device, such as "80G of
// bandwidth"; empty if it asks for none. The request is named as an answer names it.
func capacityOf(of *cluster.Cluster, s *stuck, podClaim, request string) string {
	var parts []string
	add := func(name string, capacity *resourceapi.CapacityRequirements) {
		if name != request || capacity == nil {
			return
		}
		for _, of := range slices.Sorted(maps.Keys(capacity.Requests)) {
			quantity := capacity.Requests[of]
			parts = append(parts, inventory.QuantityText(quantity.String())+" of "+string(of))
		}
	}
	for _, pc := range of.Claims.OfPod(s.pod) {
		if pc.Claim == nil || pc.Entry != podClaim {
			continue
		}
		for i := range pc.Claim.Spec.Devices.Requests {
			r := &pc.Claim.Spec.Devices.Requests[i]
			if r.Exactly != nil {
				add(r.Name, r.Exactly.Capacity)
			}
			for j := range r.FirstAvailable {
				add(r.Name+"/"+r.FirstAvailable[j].Name, r.FirstAvailable[j].Capacity)
			}
		}
	}
	return strings.Join(parts, " and ")
}

// describeFull says how many devices of a class, or how much of a capacity of them, the pods of a cause
// lack.
func (f *finder) describeFull(c *cause) {
	pods, needs := 0, int64(0)
	var capacity []string
	for _, s := range c.stuck {
		if f.in(s.ref.Namespace) {
			pods++
			needs += c.needs[s]
			if !slices.Contains(capacity, c.capacity[s]) {
				capacity = append(capacity, c.capacity[s])
			}
		}
	}
	// Devices that are shared need not be free.
	short, amount, left := !slices.Contains(capacity, ""), "", ""
	if short {
		amount = english.Sample(capacity, 2) + " on "
		left = "; " + english.Plural(int(needs), "no device has", "too few devices have") + " that much left"
	}
	c.Message = fmt.Sprintf("%s %s for %s%s of %s%s", english.Count(pods, "pod"), english.Plural(pods, "waits", "wait"), amount, english.Count(int(needs), "device"), c.key.group, left)
	for i := range f.overview.Capacity {
		if have := &f.overview.Capacity[i]; have.Class == c.key.group && !short {
			c.Message += fmt.Sprintf("; %d of %d %s free", have.Devices.Free, have.Devices.Total, english.Plural(have.Devices.Free, "is", "are"))
			switch {
			case have.Devices.Free == 0:
			case !slices.ContainsFunc(c.stuck, func(s *stuck) bool { return s.answer.Code != api.PodsCompete }):
				c.Message += ", but pods before " + english.Plural(pods, "it", "them") + " in the queue get " + english.Plural(have.Devices.Free, "it", "them")
			default:
				c.Message += ", but not as " + english.Plural(pods, "it asks", "they ask")
			}
		}
	}
	c.NextStep = &api.NextStep{Actor: api.ActorNobody, Text: "wait until claims are released", Commands: []string{"kubectl dra classes " + shell.Quote(c.key.group) + " -o wide"}}
	like, every := "", true
	for _, s := range c.stuck {
		out := s.full.Outlook
		if out == nil || len(out.OneMoreNode) == 0 || out.OneMoreNode[0].Verdict != api.Fits {
			every = false
			break
		}
		like = cmp.Or(like, out.OneMoreNode[0].Like)
		every = every && like == out.OneMoreNode[0].Like
	}
	if every && like != "" {
		c.NextStep.Text += ", or add a node like " + like + " for each of them"
		if pods == 1 {
			c.NextStep.Text = "wait until claims are released, or add a node like " + like
		}
	}
	if change, n, node := f.toleration(c); n == 1 && pods == 1 {
		c.NextStep.Text += fmt.Sprintf(", or %s (it fits on %s then)", change, node)
	} else if n > 0 {
		c.NextStep.Text += fmt.Sprintf(", or %s (%d of them %s then, each by itself)", change, n, english.Plural(n, "fits", "fit"))
	}
}

// toleration returns the toleration of a taint of nodes with which most pods of a cause fit by
// themselves, with their number and a node: idle devices on nodes that are set aside for other pods
// are no cause, but may be a way out. It is empty if there is none.
func (f *finder) toleration(c *cause) (change string, pods int, node string) {
	counts := map[string]int{}
	for _, s := range c.stuck {
		if !f.in(s.ref.Namespace) {
			continue
		}
		for i := range s.full.Remedies {
			r := &s.full.Remedies[i]
			if r.Actor != api.ActorUser || len(r.Edits) == 0 || slices.ContainsFunc(r.Edits, func(e api.Edit) bool { return whatif.KindOf(&e) != whatif.EditPodToleration }) {
				continue
			}
			if counts[r.Change]++; counts[r.Change] > pods {
				change, pods, node = r.Change, counts[r.Change], r.Node
			}
		}
	}
	return change, pods, node
}

// fromBlocked makes a cause of a pod that has devices and cannot work with them, with pods of the
// same drivers that have the same problem.
func (f *finder) fromBlocked(s *stuck) {
	b := s.blocked
	var drivers []string
	for _, pc := range f.cluster.Claims.OfPod(s.pod) {
		if pc.Claim == nil || pc.Claim.Status.Allocation == nil {
			continue
		}
		for i := range pc.Claim.Status.Allocation.Devices.Results {
			if driver := pc.Claim.Status.Allocation.Devices.Results[i].Driver; !slices.Contains(drivers, driver) {
				drivers = append(drivers, driver)
			}
		}
	}
	slices.Sort(drivers)
	c, made := f.causes.get(key{string(b.Code), strings.Join(drivers, ",")})
	if made {
		c.Severity, c.Message = api.SeverityError, fmt.Sprintf("pod %s/%s, stage %s: %s", b.Namespace, b.Name, b.Stage, b.Summary)
		if len(b.Steps) > 0 {
			c.NextStep = &b.Steps[0]
		} else {
			c.NextStep = &api.NextStep{Actor: cmp.Or(b.Actor, api.ActorAdmin), Text: "see all conditions", Commands: []string{whyPod(s.pod)}}
		}
	} else {
		c.others++
	}
	if b.Proof != nil {
		c.Evidence = append(c.Evidence, *b.Proof)
	}
	for _, driver := range drivers {
		f.causes.blame(c, api.Ref("Driver", "", driver))
	}
	c.suffer(s)
}

func whyPod(pod *corev1.Pod) string {
	return "kubectl dra why " + shell.Quote("pod/"+pod.Name) + " -n " + shell.Quote(pod.Namespace)
}

// fromRefused makes a cause of a workload whose pods the API server refuses, with workloads that
// are refused because of the same object.
func (f *finder) fromRefused(s *stuck) {
	r, at := s.refused, s.ref
	for _, e := range r.Evidence {
		if e.Object.Kind != "Event" && e.Object != s.ref && e.Object.Name != "" {
			at = e.Object
			break
		}
	}
	c, made := f.causes.get(key{string(r.Code), at.String()})
	if made {
		c.Severity, c.Message, c.Evidence = api.SeverityError, fmt.Sprintf("%s: %s", s.ref.Title(), r.Reason), r.Evidence
		if len(r.Steps) > 0 {
			c.NextStep = &r.Steps[0]
		}
	} else {
		c.others++
	}
	f.causes.blame(c, at)
	c.suffer(s)
}
