// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// settle takes pods away, and lets those that wait and the replacements find places, in
// the order of the queue: of equal priorities, who has waited longer comes first.
func (a *assessment) settle(ctx context.Context, leaving []fate) error {
	pods, replacements := make([]*corev1.Pod, 0, len(leaving)), map[types.NamespacedName]*corev1.Pod{}
	var created []*corev1.Pod
	for i := range leaving {
		pod := leaving[i].pod
		pods = append(pods, pod)
		replacement := replacementOf(pod)
		replacements[key(pod)] = replacement
		if metav1.GetControllerOfNoCopy(pod) != nil {
			created = append(created, replacement)
		}
	}
	state := a.state.Amended(whatif.Delete(a.state.Snapshot, pods))
	state = state.Amended(state.Snapshot.With(&snapshot.Snapshot{Pods: created}))
	var err error
	if a.decided, a.state, err = explain.DecideQueue(ctx, state, waiting(state), explain.QueueOptions{}); err != nil {
		return fmt.Errorf("decide the queue: %w", err)
	}
	found, place := map[types.NamespacedName]*explain.Decision{}, map[types.NamespacedName]int{}
	for i := range a.decided {
		d := &a.decided[i]
		place[key(d.Pod)] = i
		switch name := key(d.Pod); {
		case replacements[name] != nil:
			found[name] = d
		case d.Reservation != nil:
			a.placed[name] = d
		}
	}
	// They are listed in the order in which they are decided. Those that nothing creates
	// again come last: they take nothing from the others.
	bare := func(f fate) bool { return metav1.GetControllerOfNoCopy(f.pod) == nil }
	turn := func(f fate) int {
		at, queued := place[key(f.pod)]
		switch {
		case bare(f):
			return len(a.decided) + 1
		case !queued:
			return len(a.decided)
		default:
			return at
		}
	}
	leaving = slices.SortedStableFunc(slices.Values(leaving), func(x, y fate) int { return cmp.Compare(turn(x), turn(y)) })
	others := &plainPods{state: a.state, emptied: a.emptied}
	for i := range leaving {
		out := described(&leaving[i])
		pod := replacements[key(leaving[i].pod)]
		if gap := a.state.Snapshot.PlacementGap(snapshot.ResourceTemplates); gap != nil {
			out.Outcome, out.Reason = api.OutcomeUndetermined, english.Sentence(gap.Reason)
		} else if d := found[key(pod)]; d != nil {
			judge(&out, d)
			if out.Outcome == api.OutcomeNoPlace && a.isNearest(d.Answer) && out.Reason == d.Answer.Summary {
				if out.Code, out.Reason, err = others.reason(ctx, pod); err != nil {
					return err
				}
			}
		} else if err := a.placePlain(ctx, others, pod, &out); err != nil {
			return err
		}
		if !a.explainDeleted(&out, pod) {
			if out.UnfitNow, err = a.unfitNow(ctx, leaving[i].pod, &out); err != nil {
				return err
			}
		}
		a.out.Pods = append(a.out.Pods, out)
		if !bare(leaving[i]) {
			a.state = others.state
		}
	}
	return nil
}

// replacementOf returns a pod as its controller creates it again: with new claims where
// they are made from templates.
func replacementOf(pod *corev1.Pod) *corev1.Pod {
	after := *pod
	after.UID, after.ResourceVersion, after.DeletionTimestamp, after.CreationTimestamp = "", "", nil, metav1.Time{}
	after.Spec.NodeName = ""
	after.Status = corev1.PodStatus{Phase: corev1.PodPending}
	return &after
}

// judge says what a decision means for a pod.
func judge(out *api.ImpactPod, d *explain.Decision) {
	answer := d.Answer
	switch {
	case answer.OtherScheduler != nil:
		out.Outcome, out.Reason = api.OutcomeUndetermined, fmt.Sprintf("Scheduler %s decides.", answer.OtherScheduler.Name)
	case d.Reservation != nil:
		out.Outcome, out.Placement = api.OutcomePlaced, placed(d.Reservation)
	case d.Undecided != nil:
		out.Outcome, out.Reason = api.OutcomeUndetermined, english.Sentence(english.OneLine(d.Undecided))
	case answer.Verdict == api.Undetermined:
		out.Outcome, out.Reason = api.OutcomeUndetermined, answer.Summary
	default:
		out.Outcome = api.OutcomeNoPlace
		out.Code, out.Reason = d.Why()
	}
}

// explainDeleted says of a pod without a place that a claim which it names is deleted together with
// its last owner, a pod that leaves, and reports whether there is one. Garbage collection deletes it,
// and nothing creates it again; claims from a template are another matter, as the replacement gets
// new ones.
func (a *assessment) explainDeleted(out *api.ImpactPod, pod *corev1.Pod) bool {
	for i := range pod.Spec.ResourceClaims {
		name := ptr.Deref(pod.Spec.ResourceClaims[i].ResourceClaimName, "")
		claim := a.before.Snapshot.Claim(pod.Namespace, name)
		if out.Placement != nil || claim == nil || a.state.Snapshot.Claim(pod.Namespace, name) != nil {
			continue
		}
		for _, owner := range claim.OwnerReferences {
			if a.before.Snapshot.Pod(pod.Namespace, owner.Name) != nil && owner.Kind == api.KindPod {
				out.Reason = fmt.Sprintf("ResourceClaim %s/%s is deleted with pod %s, which owns it.", pod.Namespace, name, owner.Name)
				return true
			}
		}
	}
	return false
}

// unfitNow reports whether a pod without a place would find none without the change either, if it
// alone were deleted and created again: what it loses is no effect of the change.
func (a *assessment) unfitNow(ctx context.Context, pod *corev1.Pod, out *api.ImpactPod) (bool, error) {
	if out.Placement != nil || out.Outcome != api.OutcomeNoPlace && out.Outcome != api.OutcomeNotRecreated {
		return false, nil
	}
	state, replacement := a.before.Amended(whatif.Delete(a.before.Snapshot, []*corev1.Pod{pod})), replacementOf(pod)
	if allocator.NewAttempt(state, replacement).Problem() != nil {
		return true, nil
	}
	node := state.Snapshot.Node(pod.Spec.NodeName)
	if node == nil || node.Spec.Unschedulable {
		// It is on its way out already: that is a part of the change.
		return false, nil
	}
	for _, nodes := range [][]*corev1.Node{{node}, nil} {
		r, err := allocator.Place(ctx, state, replacement, nodes)
		var undecided *allocator.UndecidedError
		switch {
		case r != nil || errors.As(err, &undecided):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("place pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return true, nil
}

// plainPods are pods that are placed after the queue.
type plainPods struct {
	state *cluster.Cluster
	// emptied is the node that pods leave, empty for none.
	emptied string
	// nowhere has the pods of a controller that found no place: an equal pod finds none
	// either.
	nowhere map[string]bool
	// explained counts the pods whose reason was looked for.
	explained int
}

// placePlain finds a place for a pod that is not in the queue: a pod that nothing creates
// again, or a pod without devices.
func (a *assessment) placePlain(ctx context.Context, others *plainPods, pod *corev1.Pod, out *api.ImpactPod) error {
	r, err := others.place(ctx, pod)
	var undecided *allocator.UndecidedError
	if err != nil && !errors.As(err, &undecided) {
		return fmt.Errorf("place pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if r != nil {
		out.Placement = placed(r)
	}
	bare := metav1.GetControllerOfNoCopy(pod) == nil
	if r != nil {
		others.state = others.state.Amended(whatif.Reserve(others.state.Snapshot, *r))
	}
	switch {
	case bare:
		out.Outcome = api.OutcomeNotRecreated
	case r != nil:
		out.Outcome, a.withoutDevices = api.OutcomePlaced, true
	case undecided != nil:
		out.Outcome, out.Reason = api.OutcomeUndetermined, english.Sentence(english.OneLine(undecided))
	default:
		out.Outcome = api.OutcomeNoPlace
	}
	if r != nil || undecided != nil {
		return nil
	}
	out.Code, out.Reason, err = others.reason(ctx, pod)
	return err
}

// isNearest reports whether an answer says why the node is not suitable that pods leave.
func (a *assessment) isNearest(answer *api.Explanation) bool {
	return a.emptied != "" && (len(answer.Nodes) > 0 && slices.Contains(answer.Nodes[0].Names, a.emptied) || answer.Conflict != nil && answer.Conflict.Node == a.emptied)
}

// maxExplained is of how many pods the reason is looked for.
const maxExplained = 20

// reason says why a pod fits nowhere, as far as the remaining nodes explain that.
func (p *plainPods) reason(ctx context.Context, pod *corev1.Pod) (api.Code, string, error) {
	if problem := allocator.NewAttempt(p.state, pod).Problem(); problem != nil {
		return api.ClaimNotReady, english.Sentence(problem.Error()), nil
	}
	if p.explained++; p.explained > maxExplained {
		return "", "", nil
	}
	snap := p.state.Snapshot.With(&snapshot.Snapshot{Pods: []*corev1.Pod{pod}})
	// What drivers publish for the node stays: they do.
	others := *snap
	others.Nodes = slices.DeleteFunc(slices.Clone(snap.Nodes), func(node *corev1.Node) bool { return node.Name == p.emptied })
	answer, err := p.explain(ctx, &others, pod)
	if err == nil && answer.Verdict == api.Fits {
		// The node matters, though it takes no pod, as where pods are spread.
		answer, err = p.explain(ctx, snap, pod)
	}
	var nothing *explain.TargetError
	switch {
	case errors.As(err, &nothing):
		// It has no claims: the nodes themselves are the reason.
		return api.NodeUnsuitable, "No node is suitable for the pod.", nil
	case err != nil:
		return "", "", fmt.Errorf("explain pod %s/%s: %w", pod.Namespace, pod.Name, err)
	default:
		return answer.Code, answer.Summary, nil
	}
}

func (p *plainPods) explain(ctx context.Context, snap *snapshot.Snapshot, pod *corev1.Pod) (*api.Explanation, error) {
	s := p.state.Amended(snap)
	return explain.ExplainWith(ctx, s, explain.Options{Object: api.RefTo(api.KindPod, pod)})
}

func (p *plainPods) place(ctx context.Context, pod *corev1.Pod) (*whatif.Reservation, error) {
	kind := ""
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		kind = pod.Namespace + "/" + owner.Kind + "/" + owner.Name
	}
	if p.nowhere[kind] || allocator.NewAttempt(p.state, pod).Problem() != nil {
		return nil, nil
	}
	r, err := allocator.Place(ctx, p.state, pod, nil)
	if r == nil && err == nil && kind != "" {
		if p.nowhere == nil {
			p.nowhere = map[string]bool{}
		}
		p.nowhere[kind] = true
	}
	return r, err
}

// placed returns a reservation as other answers have it.
func placed(r *whatif.Reservation) *api.Placement {
	out := &api.Placement{Node: r.Node, Claims: []api.PlacementClaim{}}
	for i := range r.Claims {
		claim := r.Claims[i].Claim
		allocation := cmp.Or(r.Claims[i].Allocation, claim.Status.Allocation)
		devices := []api.AllocatedDevice{}
		for k := range allocation.Devices.Results {
			result := &allocation.Devices.Results[k]
			devices = append(devices, api.AllocatedDevice{Request: result.Request, Driver: result.Driver, Pool: result.Pool, Device: result.Device})
		}
		out.Claims = append(out.Claims, eligibility.PlacementClaim(claim, devices))
	}
	return out
}
