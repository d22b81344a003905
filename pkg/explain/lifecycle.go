// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// finding is one thing that keeps a pod at a stage of its life, or that is
// wrong with it there, as far as objects in the API tell.
type finding struct {
	// reason is a clause for the summary, empty if the verdict says it all.
	reason string
	// instead is set if the reason says all that people need to know, and
	// what the allocator has to say does not matter.
	instead  bool
	evidence []api.Evidence
	steps    []api.NextStep
}

// life is where a pod stands, and what was found there, the most important
// thing first.
type life struct {
	stage    api.Stage
	findings []finding
	// blocked is set if the pod has its devices and cannot work with them.
	blocked *blockage
}

// told reports whether there is something to say about it.
func (l *life) told() bool {
	return slices.ContainsFunc(l.findings, func(f finding) bool { return f.reason != "" })
}

func (f *finding) prove(object, path, found, wanted string) {
	f.evidence = append(f.evidence, api.Evidence{Object: object, Path: path, Found: found, Wanted: wanted})
}

func (f *finding) step(actor, format string, args ...any) {
	f.steps = append(f.steps, api.NextStep{Actor: actor, Text: fmt.Sprintf(format, args...)})
}

// leeway is how long something may take before it is worth a word.
const leeway = time.Minute

// describeStage finds where the target stands in its life, and why there.
func (x *inquiry) describeStage() {
	var own life
	who := ""
	switch pod := x.subject.pod; {
	case pod == nil:
	case x.subject.hypothetical:
		own.findings = x.gateFindings(pod)
	default:
		own = x.life(pod, x.subject.claims)
		if own.stage == api.StageAllocation && len(x.site.candidates) == 0 && len(x.site.unsuitable) > 0 && !x.fitsElsewhere() {
			own.stage = api.StageNodeFit
		}
		who = x.named(pod)
	}
	if len(x.blockedBy) > 0 {
		own = x.blockedLife(own)
	}
	forClaim := x.subject.pod == nil && x.subject.target.Kind == api.KindClaim
	for i := range x.out.Pods {
		pod := x.subject.users[i]
		if pod == x.subject.pod {
			x.out.Pods[i].Stage = own.stage
			continue
		}
		other := x.life(pod, x.site.alloc.PodClaims(pod))
		x.out.Pods[i].Stage = other.stage
		if finished(pod) {
			// Whether the claim is still reserved for it is found out for the claim.
			other.findings = nil
		}
		if forClaim && (own.stage == "" || !own.told() && other.told()) {
			own, who = other, x.named(pod)
		}
	}
	x.out.Stage = own.stage
	var findings []finding
	if forClaim {
		findings = x.claimFindings(x.subject.claims[0].Claim)
	}
	for _, f := range own.findings {
		// What a claim and the pod that uses it have in common is said of the claim.
		if f.reason != "" && !slices.ContainsFunc(findings, func(other finding) bool { return other.reason == f.reason }) {
			f.reason, who = who+f.reason, ""
		}
		findings = append(findings, f)
	}
	x.report(findings)
	x.block(&own)
	x.nextSteps()
}

// named begins a sentence about a pod that is not itself the target.
func (x *inquiry) named(pod *corev1.Pod) string {
	if x.subject.target.Kind == api.KindPod {
		return ""
	}
	return "pod " + pod.Name + ": "
}

// maxReasons is how many findings a summary has room for.
const maxReasons = 3

// report puts findings into the explanation. What is found twice is said once.
func (x *inquiry) report(findings []finding) {
	var reasons []string
	instead := false
	for _, f := range findings {
		if f.reason != "" && !slices.Contains(reasons, f.reason) {
			reasons = append(reasons, f.reason)
			instead = instead || f.instead
		}
		for _, e := range f.evidence {
			if !slices.Contains(x.out.StageEvidence, e) {
				x.out.StageEvidence = append(x.out.StageEvidence, e)
			}
		}
		for _, step := range f.steps {
			if !slices.ContainsFunc(x.out.NextSteps, func(have api.NextStep) bool { return have.Actor == step.Actor && have.Text == step.Text }) {
				x.out.NextSteps = append(x.out.NextSteps, step)
			}
		}
	}
	if len(reasons) == 0 {
		return
	}
	text := strings.Join(reasons[:min(len(reasons), maxReasons)], "; ")
	if more := len(reasons) - maxReasons; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	if !instead && x.out.Summary != "" {
		text += "; then: " + x.out.Summary
	}
	x.out.Summary = text
}

// life finds where a pod stands.
func (x *inquiry) life(pod *corev1.Pod, claims []allocator.PodClaim) life {
	l := life{stage: x.stageOf(pod, claims)}
	switch l.stage {
	case api.StageClaimGeneration:
		l.findings = slices.Concat(x.generationFindings(pod, claims), x.gateFindings(pod), x.toldByKubelet(pod))
	case api.StageQueueing:
		l.findings = x.queueingFindings(pod, claims)
	case api.StageBinding:
		l.findings = x.bindingFindings(claims)
	case api.StageReservation:
		l.findings = x.reservationFindings(pod, claims)
	case api.StagePreparation, api.StageInjection:
		l.findings = slices.Concat(x.kubeletFindings(pod, claims), x.deviceFindings(pod, claims))
	case api.StageRunning:
		l.findings = x.runningFindings(pod, claims)
	case api.StageCleanup:
		l.findings = x.cleanupFindings(pod, claims)
	case api.StageNodeFit, api.StageAllocation:
		// The funnel and the nodes tell.
	}
	if l.blocked = x.blockage(pod, claims, l.stage); l.blocked != nil && l.blocked.reason != "" {
		l.findings = append([]finding{{instead: true, reason: l.blocked.reason}}, l.findings...)
	}
	return l
}

// stageOf names the first stage of a pod that is not done.
func (x *inquiry) stageOf(pod *corev1.Pod, claims []allocator.PodClaim) api.Stage {
	switch {
	case pod.DeletionTimestamp != nil, finished(pod):
		return api.StageCleanup
	case pod.Status.Phase == corev1.PodRunning && len(unresolvedContainers(pod)) > 0:
		return api.StageInjection
	case pod.Status.Phase == corev1.PodRunning && sandboxLost(pod) == nil:
		return api.StageRunning
	case len(initializing(pod)) > 0:
		return api.StageRunning
	}
	bound := pod.Spec.NodeName != ""
	allocated, reserved, bindable := true, true, true
	for i := range claims {
		pc := &claims[i]
		switch {
		case bound && errors.Is(pc.Problem, allocator.ErrClaimUnreadable):
			// What the kubelet says may tell.
		case bound && pc.Claim != nil && pc.Claim.Status.Allocation != nil && !errors.Is(pc.Problem, allocator.ErrClaimNotOwned):
			reserved = reserved && x.site.alloc.Reserved(pc.Claim, pod)
		case errors.Is(pc.Problem, allocator.ErrClaimNotCreated), errors.Is(pc.Problem, allocator.ErrTemplateMissing):
			return api.StageClaimGeneration
		case bound && pc.Problem != nil:
			reserved = false
		case pc.Problem != nil:
			return api.StageQueueing
		case pc.Claim == nil || pc.Claim.Status.Allocation == nil:
			allocated = false
		default:
			reserved = reserved && x.site.alloc.Reserved(pc.Claim, pod)
			bindable = bindable && len(x.site.alloc.Awaited(pc.Claim)) == 0
		}
	}
	switch {
	case bound && (!allocated || !reserved):
		return api.StageReservation
	case bound && x.prepared(pod):
		return api.StageInjection
	case bound:
		return api.StagePreparation
	case len(pod.Spec.SchedulingGates) > 0, x.unheard(pod):
		return api.StageQueueing
	case !allocated:
		return api.StageAllocation
	case !bindable:
		return api.StageBinding
	case !reserved:
		return api.StageReservation
	default:
		return api.StageNodeFit
	}
}

// finished reports whether no container of a pod will ever run again.
func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// nextSteps says who can do something that needs no proof by the allocator.
func (x *inquiry) nextSteps() {
	if x.out.Verdict == api.Undetermined {
		var hidden []string
		leftOut := false
		for _, gap := range x.snap.Gaps {
			if gap.LeftOut {
				leftOut = true
			} else if slices.Contains([]string{snapshot.ResourceNodes, snapshot.ResourceSlices, snapshot.ResourceClasses, snapshot.ResourceClaims, snapshot.ResourceTemplates, snapshot.ResourcePods}, gap.Resource) {
				kind, _, _ := strings.Cut(gap.Resource, ".")
				hidden = append(hidden, kind)
			}
		}
		if len(hidden) > 0 {
			x.out.NextSteps = append(x.out.NextSteps, api.NextStep{Actor: api.ActorAdmin, Text: fmt.Sprintf(
				"ask a user who can list %s in all namespaces to run this, or to save a snapshot: kubectl dra snapshot -o cluster.json.gz", english.JoinAnd(hidden))})
		}
		if leftOut {
			x.out.NextSteps = append(x.out.NextSteps, api.NextStep{Actor: api.ActorAdmin, Text: "correct or delete what was left out"})
		}
	}
	for i := range x.subject.claims {
		pc, pod := &x.subject.claims[i], x.subject.pod
		switch {
		case pod == nil || !waits(pod):
		case errors.Is(pc.Problem, allocator.ErrTemplateMissing):
			x.out.NextSteps = append(x.out.NextSteps, api.NextStep{Actor: api.ActorUser, Text: fmt.Sprintf("create ResourceClaimTemplate %s in namespace %s, or name another one", pc.Template, pod.Namespace)})
		case errors.Is(pc.Problem, allocator.ErrClaimMissing) && pc.Template != "":
			x.out.NextSteps = append(x.out.NextSteps, deletedClaim(pod, pc))
		case errors.Is(pc.Problem, allocator.ErrClaimMissing):
			x.out.NextSteps = append(x.out.NextSteps, api.NextStep{Actor: api.ActorUser, Text: fmt.Sprintf("create ResourceClaim %s in namespace %s, or name another one", x.claimName(pc), pod.Namespace)})
		}
	}
	if x.subject.pod == nil && x.subject.target.Kind == api.KindClaim && len(x.claims) > 0 && x.claims[0].claim.UID != "" && x.claims[0].claim.DeletionTimestamp == nil &&
		len(x.subject.users) == 0 && !x.hides(snapshot.ResourcePods, x.subject.target.Namespace) {
		x.out.NextSteps = append(x.out.NextSteps, api.NextStep{Actor: api.ActorUser, Text: "no pod uses the claim: it is allocated when the first one does"})
	}
}

// elapsed says how long ago something was, in the words of kubectl.
func (x *inquiry) elapsed(since time.Time) string {
	return duration.HumanDuration(max(0, x.snap.Now().Sub(since)))
}

// overdue reports whether something that began then takes longer than it should.
func (x *inquiry) overdue(since time.Time) bool {
	return !since.IsZero() && x.snap.Now().Sub(since) > leeway
}

// hides reports whether objects of a namespace may exist that were not read.
func (x *inquiry) hides(resource, namespace string) bool {
	gap := x.snap.Gap(resource)
	return gap != nil && (gap.Namespace == "" || gap.Namespace != namespace)
}

// podCondition returns the condition of that type, nil if there is none.
func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == kind {
			return c
		}
	}
	return nil
}

// deviceName names an allocated device as people see it in a pool.
func deviceName(result *resourceapi.DeviceRequestAllocationResult) string {
	return result.Pool + "/" + result.Device
}

func deviceID(result *resourceapi.DeviceRequestAllocationResult) allocator.DeviceID {
	return allocator.DeviceID{Driver: result.Driver, Pool: result.Pool, Device: result.Device}
}
