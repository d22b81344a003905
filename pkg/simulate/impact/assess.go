// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package impact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/simulate"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Assess says what a change does. It fails with a [*NotFoundError] if there is nothing to
// change, and with the error of ctx.
func Assess(ctx context.Context, snap *snapshot.Snapshot, c Change) (*api.Impact, error) {
	changed, err := c.apply(snap)
	if err != nil {
		return nil, err
	}
	before, err := simulate.New(ctx, snap)
	if err != nil {
		return nil, err
	}
	after, err := simulate.New(ctx, changed)
	if err != nil {
		return nil, err
	}
	out := &api.Impact{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Impact"},
		Change:   c.text, Source: snap.Source, Pods: []api.ImpactPod{},
	}
	a := &assessment{out: out, before: before, state: after, explained: map[string]verdict{}}
	if err := a.decide(ctx, fates(&c, before, after)); err != nil {
		return nil, err
	}
	out.Claims = unmatched(ctx, before, after)
	if c.steps != nil {
		out.Steps = c.steps(snap, out)
	}
	if c.notes != nil {
		out.Notes = append(out.Notes, c.notes(before.Alloc.Facts, after.Alloc.Facts)...)
	}
	a.assume()
	for i := range out.Pods {
		count(&out.Counts, &out.Pods[i])
	}
	return out, nil
}

func count(counts *api.ImpactCounts, pod *api.ImpactPod) {
	switch pod.Effect {
	case api.EffectEvicted:
		counts.Evicted++
	case api.EffectDevicesLost:
		counts.DevicesLost++
	case api.EffectFitLost:
		counts.FitLost++
		return
	case api.EffectFitGained:
		counts.FitGained++
		return
	case api.EffectStays, api.EffectRemoved:
		return
	}
	switch pod.Outcome {
	case api.OutcomePlaced:
		counts.Placed++
	case api.OutcomeNoPlace:
		counts.NoPlace++
	case api.OutcomeNotRecreated:
		counts.NotRecreated++
	case api.OutcomeUndetermined:
		counts.Undetermined++
	}
}

// assessment goes through what follows from a change.
type assessment struct {
	out *api.Impact
	// before is the cluster as it is, state the one with the change and with what has
	// happened since.
	before, state *simulate.State
	// waiting are the pods that wait now, in the order of the queue; placed has those
	// that found a place since the change.
	waiting []*corev1.Pod
	placed  map[types.NamespacedName]*whatif.Reservation
	// grouped counts the pods of gangs, which are decided one by one.
	grouped int
	// explained has reasons by what the pods have in common.
	explained map[string]verdict
}

type verdict struct {
	code   api.Code
	reason string
}

// decide evicts pods at their times, and decides after each of them who finds a place.
func (a *assessment) decide(ctx context.Context, list []fate) error {
	a.placed = map[types.NamespacedName]*whatif.Reservation{}
	a.waiting = a.waitingPods()
	fitBefore, err := a.placeWaiting(ctx, a.before)
	if err != nil {
		return err
	}
	if err := a.settle(ctx, nil); err != nil {
		return err
	}
	leaving := of(list, api.EffectEvicted)
	for len(leaving) > 0 {
		at := leaving[0].at
		n := slices.IndexFunc(leaving, func(f fate) bool { return !f.at.Equal(at) })
		if n < 0 {
			n = len(leaving)
		}
		if err := a.settle(ctx, leaving[:n]); err != nil {
			return err
		}
		leaving = leaving[n:]
	}
	a.compareWaiting(fitBefore)
	if err := a.settleLost(ctx, of(list, api.EffectDevicesLost)); err != nil {
		return err
	}
	for _, f := range slices.Concat(of(list, api.EffectStays), of(list, api.EffectRemoved)) {
		a.out.Pods = append(a.out.Pods, described(&f))
	}
	slices.SortStableFunc(a.out.Pods, func(x, y api.ImpactPod) int { return cmp.Compare(rank(x.Effect), rank(y.Effect)) })
	return nil
}

// rank is the order in which effects are listed.
func rank(effect api.ImpactEffect) int {
	return slices.Index([]api.ImpactEffect{api.EffectEvicted, api.EffectDevicesLost, api.EffectFitLost, api.EffectFitGained, api.EffectRemoved, api.EffectStays}, effect)
}

func of(list []fate, effect api.ImpactEffect) []fate {
	return slices.DeleteFunc(slices.Clone(list), func(f fate) bool { return f.effect != effect })
}

// described is what is known of a pod without asking where it fits.
func described(f *fate) api.ImpactPod {
	out := api.ImpactPod{
		Namespace: f.pod.Namespace, Name: f.pod.Name, Effect: f.effect, Node: f.pod.Spec.NodeName,
		Owner: lifecycle.OwnerText(f.pod), Devices: f.devices, Drivers: f.drivers,
	}
	if !f.at.IsZero() {
		out.EvictionAt = &metav1.Time{Time: f.at}
	}
	return out
}

// waitingPods lists the pods that wait for devices, in the order of the queue.
func (a *assessment) waitingPods() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range a.before.Snap.Pods {
		if !lifecycle.Waits(pod) || len(pod.Spec.SchedulingGates) > 0 || len(a.before.Alloc.Facts.Claims.OfPod(pod)) == 0 {
			continue
		}
		if pod.Spec.SchedulingGroup != nil {
			a.grouped++
		}
		pods = append(pods, pod)
	}
	slices.SortStableFunc(pods, compareQueued)
	return pods
}

// compareQueued is the order of the scheduling queue: by priority, then by age.
func compareQueued(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(ptr.Deref(b.Spec.Priority, 0), ptr.Deref(a.Spec.Priority, 0)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
}

// placeWaiting finds the waiting pods that fit, one after another.
func (a *assessment) placeWaiting(ctx context.Context, state *simulate.State) (map[types.NamespacedName]bool, error) {
	fit := map[types.NamespacedName]bool{}
	tries := attempts{}
	for _, pod := range a.waiting {
		r, err := tries.place(ctx, state, pod)
		if err != nil {
			return nil, err
		}
		if r == nil {
			continue
		}
		fit[key(pod)] = true
		if state, err = state.Reserve(ctx, r); err != nil {
			return nil, err
		}
	}
	return fit, nil
}

func key(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// attempts remembers which pods found no place: while devices are only taken, an equal
// one finds none either.
type attempts map[string]bool

// place is nil without an error also where the allocator has no answer.
func (t attempts) place(ctx context.Context, state *simulate.State, pod *corev1.Pod) (*whatif.Reservation, error) {
	equal := kindOf(pod)
	if equal != "" && t[equal] || state.Attempt(pod).Problem() != nil {
		return nil, nil
	}
	r, err := state.Place(ctx, pod, nil)
	var undecided *simulate.UndecidedError
	if err != nil && !errors.As(err, &undecided) {
		return nil, fmt.Errorf("place pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if r == nil && equal != "" {
		t[equal] = true
	}
	return r, nil
}

// kindOf is the same for pods of one controller whose claims are all made from
// templates; empty for others.
func kindOf(pod *corev1.Pod) string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind == snapshot.KindDaemonSet || slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool { return c.ResourceClaimName != nil }) {
		return ""
	}
	return fmt.Sprintf("%s/%s/%s/%d", pod.Namespace, owner.Kind, owner.Name, ptr.Deref(pod.Spec.Priority, 0))
}

// settle takes pods away, and lets those that wait and the replacements find places, in
// the order of the queue: of equal priorities, who has waited longer comes first.
func (a *assessment) settle(ctx context.Context, leaving []fate) error {
	entries, err := a.takeAway(ctx, leaving)
	if err != nil {
		return err
	}
	for _, pod := range a.waiting {
		if a.placed[key(pod)] == nil {
			entries = append(entries, entry{pod: pod})
		}
	}
	slices.SortStableFunc(entries, func(x, y entry) int {
		return cmp.Or(compareBare(x.fate, y.fate), cmp.Compare(ptr.Deref(y.pod.Spec.Priority, 0), ptr.Deref(x.pod.Spec.Priority, 0)), x.created().Compare(y.created()))
	})
	tries := attempts{}
	for _, e := range entries {
		if e.fate != nil {
			if err := a.replace(ctx, e); err != nil {
				return err
			}
			continue
		}
		r, err := tries.place(ctx, a.state, e.pod)
		if err != nil {
			return err
		}
		if r == nil {
			continue
		}
		a.placed[key(e.pod)] = r
		if a.state, err = a.state.Reserve(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// entry is a pod of the queue: one that waits, or the replacement of one that left.
type entry struct {
	pod  *corev1.Pod
	fate *fate
}

// created orders by age: replacements are younger than all pods that wait.
func (e *entry) created() time.Time {
	if e.fate != nil {
		return e.pod.CreationTimestamp.AddDate(1000, 0, 0)
	}
	return e.pod.CreationTimestamp.Time
}

// compareBare puts pods that nothing creates again last: they take nothing from others.
func compareBare(a, b *fate) int {
	bare := func(f *fate) int {
		if f != nil && metav1.GetControllerOfNoCopy(f.pod) == nil {
			return 1
		}
		return 0
	}
	return cmp.Compare(bare(a), bare(b))
}

// takeAway deletes pods, and has their replacements wait.
func (a *assessment) takeAway(ctx context.Context, leaving []fate) ([]entry, error) {
	if len(leaving) == 0 {
		return nil, nil
	}
	var pods, replacements []*corev1.Pod
	var entries []entry
	for i := range leaving {
		f := &leaving[i]
		if f.pod.Spec.SchedulingGroup != nil {
			a.grouped++
		}
		replacement := replacementOf(f.pod)
		pods, replacements, entries = append(pods, f.pod), append(replacements, replacement), append(entries, entry{replacement, f})
	}
	state, err := a.state.Delete(ctx, pods...)
	if err != nil {
		return nil, err
	}
	a.state, err = state.After(ctx, state.Snap.With(&snapshot.Snapshot{Pods: replacements}))
	return entries, err
}

// replacementOf is a pod as its controller creates it again: with new claims where they
// are made from templates.
func replacementOf(pod *corev1.Pod) *corev1.Pod {
	after := *pod
	after.UID, after.ResourceVersion, after.DeletionTimestamp = "", "", nil
	after.Spec.NodeName = ""
	after.Status = corev1.PodStatus{Phase: corev1.PodPending}
	return &after
}

// replace says what becomes of a pod that left.
func (a *assessment) replace(ctx context.Context, e entry) error {
	out := described(e.fate)
	r, err := a.placement(ctx, e.pod, &out)
	if err != nil {
		return err
	}
	bare := metav1.GetControllerOfNoCopy(e.fate.pod) == nil
	if bare {
		out.Outcome = api.OutcomeNotRecreated
	}
	a.out.Pods = append(a.out.Pods, out)
	if r == nil || bare {
		return nil
	}
	a.state, err = a.state.Reserve(ctx, r)
	return err
}

// placement finds a place for a pod, or says why there is none.
func (a *assessment) placement(ctx context.Context, pod *corev1.Pod, out *api.ImpactPod) (*whatif.Reservation, error) {
	if gap := unseen(a.state.Snap); gap != "" {
		out.Outcome, out.Reason = api.OutcomeUndetermined, gap
		return nil, nil
	}
	if problem := a.state.Attempt(pod).Problem(); problem != nil {
		out.Outcome, out.Reason = api.OutcomeNoPlace, problem.Error()
		return nil, nil
	}
	r, err := a.state.Place(ctx, pod, nil)
	var undecided *simulate.UndecidedError
	switch {
	case errors.As(err, &undecided):
		out.Outcome, out.Reason = api.OutcomeUndetermined, english.OneLine(err)
		if undecided.EndsAttempt {
			out.Outcome, out.Code = api.OutcomeNoPlace, api.SelectorError
			out.Code, out.Reason, err = a.reason(ctx, pod)
			out.Reason = cmp.Or(out.Reason, english.OneLine(undecided))
			return nil, err
		}
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("place pod %s/%s: %w", pod.Namespace, pod.Name, err)
	case r == nil:
		out.Outcome = api.OutcomeNoPlace
		out.Code, out.Reason, err = a.reason(ctx, pod)
		return nil, err
	}
	out.Outcome, out.Placement = api.OutcomePlaced, placed(r)
	return r, nil
}

// unseen is what has to be known to decide where pods fit and could not be read.
func unseen(snap *snapshot.Snapshot) string {
	for _, resource := range []string{snapshot.ResourceSlices, snapshot.ResourceNodes, snapshot.ResourceClaims, snapshot.ResourcePods, snapshot.ResourceTaintRules, snapshot.ResourceClasses, snapshot.ResourceTemplates} {
		if gap := snap.Gap(resource); gap != nil {
			return gap.Reason
		}
	}
	return ""
}

// placed is a reservation as other answers have it.
func placed(r *whatif.Reservation) *api.Placement {
	out := &api.Placement{Node: r.Node, Claims: []api.PlacementClaim{}}
	for i := range r.Claims {
		claim := r.Claims[i].Claim
		allocation := cmp.Or(r.Claims[i].Allocation, claim.Status.Allocation)
		pc := api.PlacementClaim{Namespace: claim.Namespace, Name: claim.Name, Devices: []api.AllocatedDevice{}}
		for k := range allocation.Devices.Results {
			result := &allocation.Devices.Results[k]
			pc.Devices = append(pc.Devices, api.AllocatedDevice{Request: result.Request, Driver: result.Driver, Pool: result.Pool, Device: result.Device})
		}
		out.Claims = append(out.Claims, pc)
	}
	return out
}

// maxExplained is for how many kinds of pods a reason is found.
const maxExplained = 20

// reason asks why a pod fits nowhere, once for pods that are equal.
func (a *assessment) reason(ctx context.Context, pod *corev1.Pod) (api.Code, string, error) {
	equal := cmp.Or(kindOf(pod), pod.Namespace+"/"+pod.Name)
	if v, known := a.explained[equal]; known || len(a.explained) >= maxExplained {
		return v.code, v.reason, nil
	}
	answer, err := explain.ExplainWith(ctx, a.state.Alloc, a.state.Snap, explain.Options{Kind: api.KindPod, Namespace: pod.Namespace, Name: pod.Name})
	var nothing *explain.TargetError
	switch {
	case errors.As(err, &nothing):
		// It has no claims: the nodes themselves are the reason.
		a.explained[equal] = verdict{api.NodeUnsuitable, "no node is suitable for the pod"}
	case err != nil:
		return "", "", err
	case answer.Verdict == api.Fits || answer.Verdict == api.Allocated:
		a.explained[equal] = verdict{}
	default:
		a.explained[equal] = verdict{answer.Code, answer.Summary}
	}
	v := a.explained[equal]
	return v.code, v.reason, nil
}

// settleLost says of pods that stay without devices whether replacements would fit, each
// for itself: nobody evicts them.
func (a *assessment) settleLost(ctx context.Context, lost []fate) error {
	state := a.state
	for i := range lost {
		a.state = state
		entries, err := a.takeAway(ctx, lost[i:i+1])
		if err != nil {
			return err
		}
		if err := a.replace(ctx, entries[0]); err != nil {
			return err
		}
	}
	a.state = state
	return nil
}

// compareWaiting lists the waiting pods for which the change makes a difference.
func (a *assessment) compareWaiting(fitBefore map[types.NamespacedName]bool) {
	for _, pod := range a.waiting {
		r := a.placed[key(pod)]
		if fitBefore[key(pod)] == (r != nil) {
			continue
		}
		out := api.ImpactPod{Namespace: pod.Namespace, Name: pod.Name, Owner: lifecycle.OwnerText(pod), Effect: api.EffectFitLost, Outcome: api.OutcomeNoPlace}
		if r != nil {
			out.Effect, out.Outcome, out.Placement = api.EffectFitGained, api.OutcomePlaced, placed(r)
		}
		a.out.Pods = append(a.out.Pods, out)
	}
}

// assume says what was not looked at.
func (a *assessment) assume() {
	say := func(format string, args ...any) {
		a.out.Assumptions = append(a.out.Assumptions, fmt.Sprintf(format, args...))
	}
	if slices.ContainsFunc(a.out.Pods, func(pod api.ImpactPod) bool { return pod.Placement != nil }) {
		say("of several nodes that fit, the scheduler may choose another one")
	}
	if a.grouped > 0 {
		say("%s of gangs decided one by one, not as a whole", english.Count(a.grouped, "pod"))
	}
	if gap := unseen(a.before.Snap); gap != "" {
		say("there may be more: %s", strings.TrimSuffix(gap, "."))
	}
}
