// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/nodeanswer"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// conclusion says what the verdicts about nodes mean.
func (x *builder) conclusion(ctx context.Context) (reason, error) {
	if err := x.groupNodes(ctx); err != nil {
		return reason{}, err
	}
	turned := x.Release != nil && x.Release.Outcome != ""
	var said reason
	if turned {
		said = reason{what: x.releaseText()}
	} else {
		said = x.conclude()
	}
	x.out.Placement = placementOf(x.Verdict)
	if text := x.releaseAssumption(); text != "" {
		x.out.Assumptions = append(x.out.Assumptions, text)
	}
	if text := x.byBug(ctx); text != "" {
		x.out.Assumptions = append(x.out.Assumptions, text)
	}
	if text := poolOrder(x.Question); text != "" {
		x.out.Assumptions = append(x.out.Assumptions, text)
	}
	if turned {
		return said, nil
	}
	said = x.heedGaps(said)
	if x.out.Verdict != api.DoesNotFit && x.out.Verdict != api.Error || x.depth != withAdvice {
		return said, nil
	}
	update, bug, err := x.updates(ctx)
	if err != nil {
		return reason{}, err
	}
	if bug != (reason{}) {
		x.out.Remedies = update
		return bug, nil
	}
	x.beginOutlook()
	nearest, err := x.advise(ctx)
	x.out.Remedies = append(update, x.out.Remedies...)
	if said = cmp.Or(nearest, said); err != nil || x.out.Verdict == api.Error {
		return said, err
	}
	rollout, err := x.heedRollout(ctx)
	if said = cmp.Or(rollout, said); err != nil {
		return said, err
	}
	return said, x.retry(ctx)
}

// groupNodes groups the nodes by their answers. Of nodes that look the same to the allocator, the
// first one answers for all; nodes with too few devices are alike if the reason is.
func (x *builder) groupNodes(ctx context.Context) error {
	answers := map[nodeanswer.Answer][]string{}
	known, few := make([]nodeanswer.Answer, len(x.Checked)), map[nodeanswer.Answer]int{}
	x.equivalent = slices.Clone(x.Equivalent)
	var answer nodeanswer.Answer
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
		progress[u.Reason] = max(progress[u.Reason], nodeanswer.ProgressOf(x.Question, u))
	}
	for _, u := range x.Reach.Unsuitable {
		answer := nodeanswer.Answer{Verdict: api.DoesNotFit, Code: u.Code, Message: u.Reason, Progress: progress[u.Reason]}
		answers[answer] = append(append(answers[answer], u.Node.Name), x.Target.LeftOut[u.Node.Name]...)
	}
	x.out.Nodes = nodeanswer.Group(answers)
	nearestFirst(x.out.Nodes, nil, x.Reach.OnlyNode())
	return nil
}

// retry looks ahead: where a claim of the pod is allocated and no node can use
// it, and nobody else has reserved it, the scheduler takes its devices back and
// starts again (PostFilter of its dynamicresources plugin).
func (x *builder) retry(ctx context.Context) error {
	if x.Pod == nil || x.Target.Hypothetical {
		return nil
	}
	whole := target.Options{Object: api.Ref(api.KindPod, x.Pod.Namespace, x.Pod.Name)}
	after, released := released(x.Question)
	if len(released) == 0 {
		return nil
	}
	if x.Target.Only != nil {
		// It does so only if no other node will do.
		now, err := ExplainWith(ctx, x.Cluster, whole)
		if err != nil || now.Verdict != api.DoesNotFit {
			return err
		}
	}
	again, err := ExplainWith(ctx, after, whole)
	if err != nil {
		return err
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
	x.out.NextSteps = append(x.out.NextSteps, api.NextStep{Actor: api.ActorNobody, Text: text})
	return nil
}

// released returns the cluster after the scheduler has taken back what keeps the pod from
// nodes, and the names of the claims. There is none if it may not take back anything.
func released(q *funnel.Question) (after *cluster.Cluster, released []string) {
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
func releasable(q *funnel.Question, claim *resourceapi.ResourceClaim) bool {
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
		return funnel.Misfits(q, node)[0].Code == api.NodeNotReachable
	})
}

// answer translates the allocator's verdict for one candidate.
func (x *builder) answer(ctx context.Context, candidate int) nodeanswer.Answer {
	return x.answerOn(ctx, x.Reach.Candidates[candidate], x.Checked[candidate], func() int64 { return x.Score(candidate) })
}

// answerOn translates the allocator's verdict for one node.
func (x *builder) answerOn(ctx context.Context, node *corev1.Node, checked allocator.Verdict, score func() int64) nodeanswer.Answer {
	switch checked.Outcome {
	case allocator.Fits:
		if x.Cluster.MapsNodeResources(checked.Allocations) {
			return nodeanswer.Answer{
				Verdict: api.Undetermined, Code: api.NodeUnsuitable,
				Message: "its devices stand for resources of the node like cpu (DRANodeAllocatableResources), of which it is not evaluated whether enough are left",
			}
		}
		return nodeanswer.Answer{Verdict: api.Fits, Score: score()}
	case allocator.DoesNotFit, allocator.NodeError:
		if because := x.because(ctx, node, false); because != "" {
			return nodeanswer.SchedulerBug(bugText(x.Question, because))
		}
		answer := x.reasons.WhyNot(ctx, node)
		if checked.Err != nil && answer.Code == api.CountUnsatisfiable {
			answer.Message += "; the allocator adds: " + funnel.WithoutPlannedClaims(x.Question, checked.Err.Error())
		}
		return answer
	case allocator.TimedOut:
		if endless := unending(checked.Err); endless != nil {
			return nodeanswer.Answer{Verdict: api.Undetermined, Code: api.SearchTimeout, Message: english.OneLine(endless)}
		}
		return nodeanswer.Answer{Verdict: api.Undetermined, Code: api.SearchTimeout, Message: "the search takes longer than the scheduler's limit of 10s"}
	default:
		return nodeanswer.Answer{Verdict: api.Error, Code: verdict.ErrorCode(checked.Err), Message: funnel.WithoutPlannedClaims(x.Question, errorText(checked.Err))}
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

// conclude returns the reason of the allocator's verdict.
func (x *builder) conclude() reason {
	if x.Ended >= 0 {
		checked, node := &x.Checked[x.Ended], x.Reach.Candidates[x.Ended].Name
		switch endless := unending(checked.Err); {
		case checked.Outcome == allocator.Failed:
			if verdict.ErrorCode(checked.Err) == api.AllocatorPanic {
				// What our own look at devices finds may be just what the allocator stumbles over.
				for i := range x.out.Claims {
					x.out.Claims[i].Requests = nil
				}
			}
			return reason{what: errorSummary(x.Question, x.out.Claims, checked.Err)}
		case endless != nil:
			return reason{what: fmt.Sprintf("%s; whether the claims fit on node %s is not known", english.OneLine(endless), node)}
		default:
			return reason{what: fmt.Sprintf("the search for devices on node %s takes longer than 10s: the scheduler gives up with \"timed out trying to allocate devices\", and whether the claims fit is not known", node)}
		}
	}
	switch x.Allocator {
	case api.Allocated:
		return reason{what: allocatedSummary(x.Pod, x.out.Claims)}
	case api.Fits:
		if x.Target.Object.Kind == kindDaemonSet && len(x.Target.New) > 0 {
			return reason{what: x.daemons()}
		}
		return reason{what: funnel.PlacementText(placementOf(x.Verdict))}
	default:
		return noFit(x.out, len(x.Claims) == 0)
	}
}

// kindDaemonSet is the kind of the controller that creates a pod for each node.
const kindDaemonSet = "DaemonSet"

// daemons says on how many of the nodes for which a DaemonSet creates a pod it fits. Its
// controller leaves out those with taints that the pod does not tolerate, and those that its
// selector or affinity does not select (NodeShouldRunDaemonPod in
// pkg/controller/daemon/daemon_controller.go).
func (x *builder) daemons() string {
	fits, all := 0, len(x.Reach.Candidates)
	for i := range x.out.Nodes {
		if x.out.Nodes[i].Verdict == api.Fits {
			fits += x.out.Nodes[i].Count
		}
	}
	for _, misfits := range x.Reach.Misfits {
		if !slices.ContainsFunc(misfits, func(u eligibility.UnsuitableNode) bool {
			return u.Misfit.Filter == cluster.FilterTaint || u.Misfit.NotSelected()
		}) {
			all++
		}
	}
	if fits == all {
		return fmt.Sprintf("the DaemonSet creates pods for %s, and fits on each", english.Count(all, "node"))
	}
	return fmt.Sprintf("the DaemonSet creates pods for %s: it fits on %d, the other pods wait", english.Count(all, "node"), fits)
}

// errorSummary returns the allocator's error, with what people need to know beyond.
func errorSummary(q *funnel.Question, claims []api.ClaimExplanation, err error) string {
	text := funnel.WithoutPlannedClaims(q, errorText(err))
	if verdict.ErrorCode(err) != api.SelectorError {
		return text + english.PrecededBy("; ", detailOf(claims, verdict.ErrorCode(err)).text)
	}
	if verdict.IsCompileError(err) {
		return compileSummary(q)
	}
	for _, claim := range claims {
		for _, r := range claim.Requests {
			for _, rejection := range r.Rejected {
				named := func(id string) bool { return strings.Contains(text, " on device "+id+":") }
				if rejection.Code != api.SelectorError || !slices.ContainsFunc(rejection.Devices, named) {
					continue
				}
				among := english.Count(classCount(r), "device") + " of the class"
				if classRejects(&rejection) {
					among = english.Count(r.Considered, "device")
				}
				return fmt.Sprintf("request %s: the %s on %d of %s, and a CEL error on one device makes scheduling fail on every node: %s",
					r.Name, rejection.Label, rejection.Count, among, rejection.Message)
			}
		}
	}
	return text
}

// classRejects reports whether devices were rejected because of their class.
func classRejects(r *api.Rejection) bool {
	return len(r.Evidence) > 0 && r.Evidence[0].Object.Kind == "DeviceClass"
}

// classCount counts the devices that are known to be of the request's class.
func classCount(r api.RequestExplanation) int {
	count := r.Considered
	for _, rejection := range r.Rejected {
		if rejection.Code == api.ClassSelectorFalse || rejection.Code == api.SelectorError && classRejects(&rejection) {
			count -= rejection.Count
		}
	}
	return count
}

// noFit returns the reason of the first nodes, where no node was looked at closely.
func noFit(out *api.Explanation, allocated bool) reason {
	if out.NodeCount == 0 {
		return reason{what: "there are no nodes"}
	}
	dominant := out.Nodes[0]
	text := dominant.Message
	switch {
	case allocated:
		text = "the devices are allocated, but no node is suitable for the pod: " + text
	case dominant.Count == 1 && out.NodeCount > 1:
		text = fmt.Sprintf("node %s: %s", dominant.Names[0], text)
	case dominant.Count < out.NodeCount:
		text = fmt.Sprintf("%s: %s", english.Count(dominant.Count, "node"), text)
	}
	return reason{what: text, detail: detailOf(out.Claims, dominant.Code)}
}

// placementOf describes what the allocator picks, nil if it picks nothing.
func placementOf(v *verdict.Verdict) *api.Placement {
	if v.Placement == nil {
		return nil
	}
	placement := &api.Placement{Node: v.Placement.Node.Name, Score: v.Placement.Score}
	for i, claim := range v.Placement.Claims[:min(len(v.Placement.Claims), len(v.Placement.Allocations))] {
		placement.Claims = append(placement.Claims, funnel.PlacementClaim(claim, funnel.PickedDevices(v.Pod, claim, &v.Placement.Allocations[i])))
	}
	return placement
}

// heedGaps returns the gap that could turn the verdict around as the reason, or else the
// given reason.
func (x *builder) heedGaps(said reason) reason {
	switch {
	case x.NoNode:
		return reason{what: "no node is known, and some devices are not bound to a node of a certain name"}
	case x.Gap == nil:
		return said
	case x.Allocator == api.DoesNotFit:
		return reason{what: x.Gap.Reason}
	default:
		return reason{what: fmt.Sprintf("as far as can be seen %s, but %s", said.text(nil), x.Gap.Reason)}
	}
}
