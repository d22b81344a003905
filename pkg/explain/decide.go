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
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/nodeanswer"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// decide asks the allocator about every candidate and draws the conclusion.
// Where the allocator takes its time, what counting says is concluded from
// meanwhile; that the allocator says something else in the end is not expected.
func (x *builder) decide(ctx context.Context) (reason, error) {
	equivalent := x.reasons.Equivalent(ctx)
	x.equivalent = equivalent
	verdicts, hard := check(ctx, x.Question, equivalent, x.isHard)
	if err := ctx.Err(); err != nil {
		return reason{}, fmt.Errorf("check the nodes: %w", err)
	}
	search := startSearch(ctx, x.Question, hard)
	defer search.stop()
	fits := anyFits(verdicts)
	if fits {
		// It matters whether the scheduler gives up.
		if _, err := x.await(ctx, search, equivalent, verdicts); err != nil {
			return reason{}, err
		}
	}
	before := *x.out
	said, err := x.conclusion(ctx, equivalent, verdicts)
	if err != nil || fits {
		return said, err
	}
	changed, err := x.await(ctx, search, equivalent, verdicts)
	if err != nil || !changed {
		return said, err
	}
	*x.out = before
	return x.conclusion(ctx, equivalent, verdicts)
}

// conclusion says what the verdicts mean. Of equivalent nodes, the first
// one answers for all.
func (x *builder) conclusion(ctx context.Context, equivalent []int, verdicts []allocator.Verdict) (reason, error) {
	candidates := x.Reach.Candidates
	answers := map[nodeanswer.Answer][]string{}
	known := make([]nodeanswer.Answer, len(verdicts))
	var best *fitting
	var answer nodeanswer.Answer
	for i, verdict := range verdicts {
		switch {
		case verdict.Outcome == allocator.NotTried:
			// The node before, where the attempt ended, says why.
			answer.Message = "not evaluated (scheduling aborted by the error on another node)"
		case equivalent[i] != i:
			answer = known[equivalent[i]]
		default:
			var err error
			if answer, err = x.answer(ctx, candidates[i], verdict); err != nil {
				return reason{}, err
			}
		}
		known[i] = answer
		answers[answer] = append(append(answers[answer], candidates[i].Name), x.target.LeftOut[candidates[i].Name]...)
		if answer.Verdict == api.Fits && (best == nil || answer.Score > best.score) {
			best = &fitting{node: candidates[i], score: answer.Score, allocations: verdict.Allocations}
		}
	}
	progress := map[string]int{}
	for _, u := range x.Reach.Unsuitable {
		progress[u.Reason] = max(progress[u.Reason], nodeanswer.ProgressOf(x.Question, u))
	}
	for _, u := range x.Reach.Unsuitable {
		answer := nodeanswer.Answer{Verdict: api.DoesNotFit, Code: u.Code, Message: u.Reason, Progress: progress[u.Reason]}
		answers[answer] = append(append(answers[answer], u.Node.Name), x.target.LeftOut[u.Node.Name]...)
	}
	x.out.Nodes = nodeanswer.Group(answers)
	nearestFirst(x.out.Nodes, nil, x.Reach.OnlyNode())
	verdict, said := x.conclude(verdicts, best)
	release, err := heedRelease(ctx, x.Question, x.out, verdicts, verdict)
	if err != nil {
		return reason{}, err
	}
	if release.assumption != "" {
		x.out.Assumptions = append(x.out.Assumptions, release.assumption)
	}
	if text := x.byBug(ctx, verdict); text != "" {
		x.out.Assumptions = append(x.out.Assumptions, text)
	}
	if text := poolOrder(x.Question); text != "" {
		x.out.Assumptions = append(x.out.Assumptions, text)
	}
	if release.verdict != "" {
		x.out.Verdict, x.out.Placement = release.verdict, nil
		return reason{what: release.summary}, nil
	}
	x.out.Verdict, said = heedGaps(x.Question, x.out.Nodes, verdict, said)
	if x.out.Verdict != api.DoesNotFit && x.out.Verdict != api.Error || x.target.VerdictOnly {
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

// retry looks ahead: where a claim of the pod is allocated and no node can use
// it, and nobody else has reserved it, the scheduler takes its devices back and
// starts again (PostFilter of its dynamicresources plugin).
func (x *builder) retry(ctx context.Context) error {
	if x.Pod == nil || x.target.Hypothetical {
		return nil
	}
	whole := target.Options{Kind: api.KindPod, Namespace: x.Pod.Namespace, Name: x.Pod.Name}
	after, released := released(x.Question)
	if len(released) == 0 {
		return nil
	}
	if x.target.Only != nil {
		// It does so only if no other node will do.
		now, err := x.explain(ctx, x.Cluster, whole)
		if err != nil || now.Verdict != api.DoesNotFit {
			return err
		}
	}
	again, err := x.explain(ctx, after, whole)
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

// released is the cluster after the scheduler has taken back what keeps the
// pod from nodes, and the names of the claims. There is none if it may not
// take back anything.
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

// fitting is a node where everything fits.
type fitting struct {
	node        *corev1.Node
	score       int64
	allocations []resourceapi.AllocationResult
}

// answer translates the allocator's verdict for one node.
func (x *builder) answer(ctx context.Context, node *corev1.Node, verdict allocator.Verdict) (nodeanswer.Answer, error) {
	switch verdict.Outcome {
	case allocator.Fits:
		claims := make([]*resourceapi.ResourceClaim, 0, len(x.PodClaims))
		for i := range x.PodClaims {
			claims = append(claims, x.PodClaims[i].Claim)
		}
		score := int64(0)
		if x.Cluster.Gates.Enabled("DRAPrioritizedList") {
			score = allocator.Score(claims, verdict.Allocations)
		}
		if x.Cluster.MapsNodeResources(verdict.Allocations) {
			return nodeanswer.Answer{
				Verdict: api.Undetermined, Code: api.NodeUnsuitable,
				Message: "its devices stand for resources of the node like cpu (DRANodeAllocatableResources), of which it is not evaluated whether enough are left",
			}, nil
		}
		return nodeanswer.Answer{Verdict: api.Fits, Score: score}, nil
	case allocator.DoesNotFit, allocator.NodeError:
		if because := x.because(ctx, node, false); because != "" {
			return nodeanswer.SchedulerBug(bugText(x.Question, because)), ctx.Err()
		}
		answer := x.reasons.WhyNot(ctx, node)
		if verdict.Err != nil && answer.Code == api.CountUnsatisfiable {
			answer.Message += "; the allocator adds: " + funnel.WithoutPlannedClaims(x.Question, verdict.Err.Error())
		}
		return answer, ctx.Err()
	case allocator.Failed:
		return nodeanswer.Answer{Verdict: api.Error, Code: errorCode(verdict.Err), Message: funnel.WithoutPlannedClaims(x.Question, errorText(verdict.Err))}, nil
	case allocator.TimedOut:
		if endless := unending(verdict.Err); endless != nil {
			return nodeanswer.Answer{Verdict: api.Undetermined, Code: api.SearchTimeout, Message: english.OneLine(endless)}, nil
		}
		return nodeanswer.Answer{Verdict: api.Undetermined, Code: api.SearchTimeout, Message: "the search takes longer than the scheduler's limit of 10s"}, nil
	default:
		return nodeanswer.Answer{}, fmt.Errorf("check node %s: %w", node.Name, verdict.Err)
	}
}

// unending is why a search does not end, if that is an expression.
func unending(err error) error {
	var endless *selector.UnendingError
	if errors.As(err, &endless) {
		return endless
	}
	return nil
}

// errorCode finds the code for an error of the allocator. Upstream has no
// error types, only texts (structured/internal/*/allocator_*.go).
func errorCode(err error) api.Code {
	if isPanic(err) {
		return api.AllocatorPanic
	}
	if allocator.Panics(err) {
		return api.SchedulerBug
	}
	text := err.Error()
	for _, known := range []struct {
		part string
		code api.Code
	}{
		{"could not retrieve device class", api.ClassNotFound},
		{"feature is disabled", api.FeatureDisabled},
		{selectorCompileError, api.SelectorError},
		{"CEL runtime error", api.SelectorError},
		{"derived attribute", api.SelectorError},
		{"is currently being updated", api.PoolIncomplete},
		{"is currently invalid", api.PoolInvalid},
		{"exceeds the claim limit", api.ClaimLimitExceeded},
		{"constraint would not be satisfied", api.ConstraintUnsatisfiable},
		{"checking capacity for device", api.CapacityInsufficient},
	} {
		if strings.Contains(text, known.part) {
			return known.code
		}
	}
	return api.AllocatorError
}

// isPanic reports whether the allocator panicked. Then nothing else is said: what our own
// look at devices finds may be just what it stumbles over.
func isPanic(err error) bool {
	var panicked *allocator.PanicError
	return errors.As(err, &panicked)
}

// errorText is an error of the allocator on one line. What it says of the limit
// of a claim is said in other words.
func errorText(err error) string {
	text := english.OneLine(err)
	if isCompileError(err) {
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

// conclude draws the verdict and the reason from the nodes.
func (x *builder) conclude(verdicts []allocator.Verdict, best *fitting) (api.Verdict, reason) {
	for i, verdict := range verdicts {
		node := x.Reach.Candidates[i].Name
		switch verdict.Outcome {
		case allocator.Failed:
			if isPanic(verdict.Err) {
				for i := range x.out.Claims {
					x.out.Claims[i].Requests = nil
				}
			}
			return api.Error, reason{what: errorSummary(x.Question, x.out.Claims, verdict.Err)}
		case allocator.TimedOut:
			if best != nil && !verdict.EndsAttempt {
				// The scheduler goes on to other nodes, in releases before 1.36.
				continue
			}
			if endless := unending(verdict.Err); endless != nil {
				return api.Undetermined, reason{what: fmt.Sprintf("%s; whether the claims fit on node %s is not known", english.OneLine(endless), node)}
			}
			return api.Undetermined, reason{what: fmt.Sprintf("the search for devices on node %s takes longer than 10s: the scheduler gives up with \"timed out trying to allocate devices\", and whether the claims fit is not known", node)}
		default:
		}
	}
	switch {
	case best == nil && len(x.out.Nodes) > 0 && x.out.Nodes[0].Verdict == api.Undetermined:
		return api.Undetermined, noFit(x.out, len(x.Claims) == 0)
	case best == nil:
		return api.DoesNotFit, noFit(x.out, len(x.Claims) == 0)
	case len(x.Claims) == 0:
		return api.Allocated, reason{what: allocatedSummary(x.Pod, x.out.Claims)}
	default:
		x.out.Placement = placementOn(x.Question, best)
		if x.target.Object.Kind == kindDaemonSet && len(x.target.New) > 0 {
			return api.Fits, reason{what: x.daemons()}
		}
		return api.Fits, reason{what: funnel.PlacementText(x.out.Placement)}
	}
}

// kindDaemonSet is that of what creates a pod for each node.
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

// errorSummary is the allocator's error, with what people need to know beyond.
func errorSummary(q *funnel.Question, claims []api.ClaimExplanation, err error) string {
	text := funnel.WithoutPlannedClaims(q, errorText(err))
	if errorCode(err) != api.SelectorError {
		return text + english.PrecededBy("; ", detailOf(claims, errorCode(err)).text)
	}
	if isCompileError(err) {
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
	if len(r.Evidence) == 0 {
		return false
	}
	kind, _, _ := whatif.ParseObject(r.Evidence[0].Object)
	return kind == "DeviceClass"
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

// noFit is the reason of the first nodes, where no node was looked at closely.
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

// placementOn describes what the allocator picks on the best node.
func placementOn(q *funnel.Question, best *fitting) *api.Placement {
	placement := &api.Placement{Node: best.node.Name, Score: best.score}
	claims, err := q.ClaimsFor(best.node)
	if err != nil {
		return nil
	}
	for i, claim := range claims {
		if i >= len(best.allocations) {
			break
		}
		placement.Claims = append(placement.Claims, funnel.PlacementClaim(claim, funnel.PickedDevices(q.Pod, claim, &best.allocations[i])))
	}
	return placement
}

// heedGaps turns a verdict into Undetermined if something was hidden that could
// turn it around. More allocated devices never make a claim fit, so that
// hidden claims leave DoesNotFit as it is; but they can hide devices on which
// a selector fails.
func heedGaps(q *funnel.Question, nodes []api.NodeGroup, verdict api.Verdict, said reason) (api.Verdict, reason) {
	var decisive []string
	switch verdict {
	case api.Fits:
		decisive = []string{snapshot.ResourceClaims, snapshot.ResourceSlices}
	case api.DoesNotFit:
		decisive = []string{snapshot.ResourceSlices, snapshot.ResourceNodes}
		if len(q.Claims) == 0 {
			decisive = []string{snapshot.ResourceNodes}
		}
		if q.Pod != nil && len(q.Pod.Spec.Containers) > 0 && extendedMisfit(q) {
			decisive = append(decisive, snapshot.ResourceClasses)
		}
	case api.Error:
		if len(nodes) > 0 && slices.Contains([]api.Code{api.SelectorError, api.PoolIncomplete, api.PoolInvalid, api.ConstraintUnsatisfiable}, nodes[0].Code) {
			if _, problem, _ := compileProblem(q); problem != nil {
				// That does not depend on devices.
				break
			}
			decisive = []string{snapshot.ResourceClaims, snapshot.ResourceSlices}
		}
	case api.Allocated, api.Blocked, api.Undetermined:
	}
	for _, resource := range decisive {
		gap := q.Cluster.Snapshot.Gap(resource)
		if gap == nil {
			continue
		}
		if verdict == api.DoesNotFit {
			return api.Undetermined, reason{what: gap.Reason}
		}
		return api.Undetermined, reason{what: fmt.Sprintf("as far as can be seen %s, but %s", said.text(nil), gap.Reason)}
	}
	if _, known := q.Cluster.Nodes.All(); !known && verdict == api.DoesNotFit && !nodesDoNotMatter(q) {
		return api.Undetermined, reason{what: "no node is known, and some devices are not bound to a node of a certain name"}
	}
	return verdict, said
}

// nodesDoNotMatter reports whether all devices name their node, so that made-up
// nodes are as good as real ones.
func nodesDoNotMatter(q *funnel.Question) bool {
	for _, slice := range q.Cluster.Snapshot.Slices {
		if slice.Spec.NodeName == nil {
			return false
		}
	}
	return true
}

// extendedMisfit reports whether a node was ruled out for an extended resource.
func extendedMisfit(q *funnel.Question) bool {
	return slices.ContainsFunc(q.Reach.Unsuitable, func(u eligibility.UnsuitableNode) bool {
		return u.Misfit.Filter == cluster.FilterResources && strings.Contains(string(u.Misfit.Resource), "/")
	})
}
