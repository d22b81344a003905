// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/advice"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// groupNodes groups the nodes by their answers. Of nodes that look the same to the allocator, the
// first one answers for all; nodes with too few devices are alike if the reason is.
func (x *builder) groupNodes(ctx context.Context) error {
	answers := map[advice.Answer][]string{}
	known, few := make([]advice.Answer, len(x.Checked)), map[advice.Answer]int{}
	x.equivalent = slices.Clone(x.Equivalent)
	var answer advice.Answer
	for i := range x.Checked {
		node := x.Reach.Candidates[i]
		switch {
		case x.Checked[i].Outcome == allocator.NotTried:
			// The node before, where the attempt ended, says why.
			answer.Message = "not evaluated (scheduling aborted by the error on another node)"
		case x.Equivalent[i] != i && !x.TooFew[i]:
			answer = known[x.Equivalent[i]]
		default:
			answer = x.answer(ctx, i)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if x.TooFew[i] {
			first, found := few[answer]
			if !found {
				first = i
				few[answer] = i
			}
			x.equivalent[i] = first
		}
		known[i] = answer
		answers[answer] = append(append(answers[answer], node.Name), x.Target.LeftOut[node.Name]...)
	}
	progress := map[string]int{}
	for _, u := range x.Reach.Unsuitable {
		progress[u.Reason] = max(progress[u.Reason], advice.ProgressOf(x.Question, u))
	}
	for _, u := range x.Reach.Unsuitable {
		answer := advice.Answer{Verdict: api.DoesNotFit, Code: u.Code, Message: u.Reason, Progress: progress[u.Reason]}
		answers[answer] = append(append(answers[answer], u.Node.Name), x.Target.LeftOut[u.Node.Name]...)
	}
	x.out.Nodes = advice.Group(answers)
	nearestFirst(x.out.Nodes, nil, x.Reach.OnlyNode())
	return nil
}

// retry looks ahead: where a claim of the pod is allocated and no node can use
// it, and nobody else has reserved it, the scheduler takes its devices back and
// starts again (PostFilter of its dynamicresources plugin).
func retry(ctx context.Context, v *verdict.Verdict) ([]api.NextStep, error) {
	if v.Pod == nil || v.Target.Hypothetical {
		return nil, nil
	}
	whole := target.Options{Object: api.Ref(api.KindPod, v.Pod.Namespace, v.Pod.Name)}
	after, released := released(v.Question)
	if len(released) == 0 {
		return nil, nil
	}
	if v.Target.Only != nil {
		// It does so only if no other node will do.
		now, err := ExplainWith(ctx, v.Cluster, whole)
		if err != nil || now.Verdict != api.DoesNotFit {
			return nil, err
		}
	}
	again, err := ExplainWith(ctx, after, whole)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("the scheduler deallocates claim %s, which is reserved for no other pod, and tries again", english.JoinOr(released))
	switch again.Verdict {
	case api.Fits:
		text += ": then it fits, on " + again.Placement.Node
	case api.DoesNotFit, api.Error:
		text += "; then, too, it does not fit. " + again.Summary
	case api.Blocked:
		text += "; then there are devices, but the pod is blocked. " + again.Summary
	case api.Undetermined, api.Allocated:
		text += "; whether it fits then is not known. " + again.Summary
	}
	return []api.NextStep{{Actor: api.ActorNobody, Text: text}}, nil
}

// answer translates the allocator's verdict for one candidate.
func (x *builder) answer(ctx context.Context, candidate int) advice.Answer {
	return x.answerOn(ctx, x.Reach.Candidates[candidate], x.Checked[candidate], func() int64 { return x.Score(candidate) })
}

// answerOn translates the allocator's verdict for one node.
func (x *builder) answerOn(ctx context.Context, node *corev1.Node, checked allocator.NodeVerdict, score func() int64) advice.Answer {
	switch checked.Outcome {
	case allocator.Fits:
		if x.Cluster.MapsNodeResources(checked.Allocations) {
			return advice.Answer{
				Verdict: api.Undetermined, Code: api.NodeUnsuitable,
				Message: "its devices stand for resources of the node like cpu (DRANodeAllocatableResources), of which it is not evaluated whether enough are left",
			}
		}
		return advice.Answer{Verdict: api.Fits, Score: score()}
	case allocator.DoesNotFit, allocator.NodeError:
		if bug := because(ctx, x.Question, node, false); bug != "" {
			return advice.SchedulerBug(bugText(x.Question, bug))
		}
		answer := x.reasons.WhyNot(ctx, node)
		if checked.Err != nil && answer.Code == api.CountUnsatisfiable {
			answer.Message += "; the allocator adds: " + eligibility.WithoutPlannedClaims(x.Question, checked.Err.Error())
		}
		return answer
	case allocator.TimedOut:
		if endless := unending(checked.Err); endless != nil {
			return advice.Answer{Verdict: api.Undetermined, Code: api.SearchTimeout, Message: english.OneLine(endless)}
		}
		return advice.Answer{Verdict: api.Undetermined, Code: api.SearchTimeout, Message: "the search takes longer than the scheduler's limit of 10s"}
	default:
		return advice.Answer{Verdict: api.Error, Code: verdict.ErrorCode(checked.Err), Message: eligibility.WithoutPlannedClaims(x.Question, errorText(checked.Err))}
	}
}

// unending returns why a search does not end, if that is an expression.
func unending(err error) error {
	var endless *selector.UnendingError
	if errors.As(err, &endless) {
		return endless
	}
	return nil
}

// errorText returns an error of the allocator on one line. What it says of the limit of a
// claim is said in other words.
func errorText(err error) string {
	text := english.OneLine(err)
	if verdict.IsCompileError(err) {
		return "a selector does not compile"
	}
	var adds, limit, before int
	about, said, _ := strings.Cut(text, "adding ")
	if n, _ := fmt.Sscanf(said, "%d devices exceeds the claim limit of %d, with %d already accounted for", &adds, &limit, &before); n < 3 {
		return text
	}
	text = fmt.Sprintf("%sa claim can have at most %d devices, this request asks for %d", about, limit, adds)
	if before > 0 {
		text += fmt.Sprintf(", and those before it for %d", before)
	}
	return text
}

// released returns the cluster after the scheduler has taken back what keeps the pod from
// nodes, and the names of the claims. There is none if it may not take back anything.
func released(q *eligibility.Question) (after *cluster.Cluster, released []string) {
	amended := *q.Cluster.Snapshot
	amended.Claims = slices.Clone(q.Cluster.Snapshot.Claims)
	for i := range q.PodClaims {
		claim := q.PodClaims[i].Claim
		if claim == nil || claim.Status.Allocation == nil || !releasable(q, claim) {
			continue
		}
		at := slices.IndexFunc(amended.Claims, func(c *resourceapi.ResourceClaim) bool { return c.Namespace == claim.Namespace && c.Name == claim.Name })
		if at < 0 {
			continue
		}
		amended.Claims[at] = whatif.Unallocated(amended.Claims[at])
		released = append(released, claim.Name)
	}
	if len(released) == 0 {
		return nil, nil
	}
	return q.Cluster.Amended(&amended), released
}

// releasable reports whether the scheduler may take back an allocation that keeps
// the pod from every node.
func releasable(q *eligibility.Question, claim *resourceapi.ResourceClaim) bool {
	for _, consumer := range claim.Status.ReservedFor {
		if consumer.UID != q.Pod.UID || len(claim.Status.ReservedFor) > 1 {
			return false
		}
	}
	nodes, _ := q.Cluster.Nodes.All()
	return slices.ContainsFunc(nodes, func(node *corev1.Node) bool {
		if ok, _ := q.Cluster.Claims.AvailableOn(claim, node); ok {
			return false
		}
		return eligibility.Misfits(q, node)[0].Code == api.NodeNotReachable
	})
}

// because finds the bug of the cluster's release that decides about a node.
func because(ctx context.Context, q *eligibility.Question, node *corev1.Node, fits bool) cluster.Behavior {
	claims, err := q.ClaimsFor(node)
	if err != nil {
		return ""
	}
	return allocator.Of(q.Cluster).Because(ctx, node, claims, fits)
}

// bugText names a bug of the cluster's release, and the release that mends it.
func bugText(q *eligibility.Question, because cluster.Behavior) string {
	upstream, fixed := q.Cluster.Fixed(because)
	return fmt.Sprintf("a bug of %s: %s (kubernetes/kubernetes#%d, fixed in %s)", q.Cluster.Scheduler(), because.Text(), upstream, fixed)
}

// byBug says that claims fit because of a bug alone, if so.
func byBug(ctx context.Context, v *verdict.Verdict, placement *api.Placement) string {
	if v.Allocator != api.Fits || placement == nil {
		return ""
	}
	bug := because(ctx, v.Question, v.Cluster.Snapshot.Node(placement.Node), true)
	if bug == "" {
		return ""
	}
	return fmt.Sprintf("the claims fit on node %s only because of %s", placement.Node, bugText(v.Question, bug))
}

// updates proposes the first release without the bugs that keep the claims from devices. The
// reason is for the nodes where a bug decides; both are empty where there is none.
func updates(ctx context.Context, v *verdict.Verdict, out *api.Explanation) ([]api.Remedy, reason, error) {
	var said reason
	at := slices.IndexFunc(out.Nodes, func(g api.NodeGroup) bool { return g.Code == api.SchedulerBug })
	if at < 0 {
		return nil, said, nil
	}
	group := out.Nodes[at]
	out.Nodes = slices.Insert(slices.Delete(out.Nodes, at, at+1), 0, group)
	if group.Verdict == api.DoesNotFit {
		said = reason{what: fmt.Sprintf("%s. Node %s has the devices, but does not get them because of %s", asks(v.Question), group.Names[0], group.Message)}
	}
	node := v.Cluster.Snapshot.Node(group.Names[0])
	for _, fixed := range fixes(v.Cluster) {
		amended := *v.Cluster.Snapshot
		amended.ServerVersion, amended.Emulator = "v"+fixed, ""
		after := v.Cluster.Amended(&amended)
		claims, err := v.ClaimsFor(node)
		if err != nil {
			return nil, said, err
		}
		checked := allocator.Of(after).Check(ctx, node, claims)
		if checked.Outcome != allocator.Fits {
			continue
		}
		remedy := api.Remedy{Actor: api.ActorAdmin, Change: fmt.Sprintf("update kube-scheduler to %s or newer", fixed), Node: node.Name, Nodes: group.Count, Devices: []api.AllocatedDevice{}}
		for i := range checked.Allocations {
			remedy.Devices = append(remedy.Devices, eligibility.PickedDevices(v.Pod, claims[i], &checked.Allocations[i])...)
		}
		return []api.Remedy{remedy}, said, nil
	}
	return nil, said, ctx.Err()
}

// fixes returns the releases that end a behavior of the cluster's scheduler, the first one
// first.
func fixes(facts *cluster.Cluster) []string {
	var list []*version.Version
	for _, change := range cluster.BehaviorChanges() {
		if _, fixed := facts.Fixed(change.Behavior); facts.Behaves(change.Behavior) && fixed != "" {
			list = append(list, version.MustParseGeneric(fixed))
		}
	}
	slices.SortFunc(list, func(a, b *version.Version) int {
		if a.LessThan(b) {
			return -1
		}
		return 1
	})
	names := make([]string, 0, len(list))
	for _, v := range list {
		names = append(names, v.String())
	}
	return slices.Compact(names)
}
