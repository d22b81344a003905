// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// ofDevices returns the reason for the verdict about devices, or what settled it before any
// node was tried.
func (x *builder) ofDevices(ctx context.Context) (reason, error) {
	x.out.Verdict = x.Devices
	if x.Settled != nil {
		return x.settle(ctx)
	}
	x.out.Assumptions = append(x.out.Assumptions, unreadTexts(x.Unread)...)
	x.out.NodeCount = len(x.Target.Nodes(x.Cluster))
	for _, further := range x.Target.LeftOut {
		x.out.NodeCount += len(further)
	}
	describeFunnels(x.Verdict, x.out)
	if x.depth == withAdvice {
		trace(ctx, x.Verdict, x.out)
	}
	return x.conclusion(ctx)
}

// describeFunnels says what the funnels of the claims have found.
func describeFunnels(v *verdict.Verdict, out *api.Explanation) {
	pools := len(v.Cluster.Pools.All())
	if only := v.Target.Only; only != nil {
		pools = len(v.Reach.Pools[only.Name])
	}
	var described sync.WaitGroup
	for i := range v.Claims {
		described.Go(func() { describeFunnelsOf(v.Question, &v.Claims[i], pools, &out.Claims[v.Claims[i].Index]) })
	}
	described.Wait()
}

// describeFunnelsOf says what the funnels of a claim have found, in so many pools.
func describeFunnelsOf(q *eligibility.Question, c *eligibility.Claim, pools int, explained *api.ClaimExplanation) {
	for _, alternatives := range c.Funnels {
		for _, f := range alternatives {
			request := f.Explanation(pools)
			if place, ok := eligibility.ExtendedRequestOf(q, c.Claim, f.Request.Base); ok {
				request.Container = place.Container.Name
			}
			explained.Requests = append(explained.Requests, request)
		}
	}
	for _, constraint := range cluster.Constraints(c.Claim) {
		explained.Constraints = append(explained.Constraints, constraint.String())
	}
}

// unreadTexts names the nodes whose pools could not be determined.
func unreadTexts(nodes []verdict.UnreadNode) []string {
	var texts []string
	for _, u := range nodes {
		texts = append(texts, fmt.Sprintf("the pools of node %s could not be determined: %v", u.Node, u.Err))
	}
	return texts
}

// conclusion says what the verdicts about nodes mean.
func (x *builder) conclusion(ctx context.Context) (reason, error) {
	if err := x.groupNodes(ctx); err != nil {
		return reason{}, err
	}
	turned := x.Release != nil && x.Release.Outcome != ""
	var said reason
	if turned {
		said = reason{what: releaseText(x.Verdict)}
	} else {
		said = conclude(x.Verdict, x.out)
	}
	x.out.Placement = placementOf(x.Verdict)
	if text := releaseAssumption(x.Verdict, x.out.Nodes); text != "" {
		x.out.Assumptions = append(x.out.Assumptions, text)
	}
	if text := byBug(ctx, x.Verdict, x.out.Placement); text != "" {
		x.out.Assumptions = append(x.out.Assumptions, text)
	}
	if text := poolOrder(x.Question); text != "" {
		x.out.Assumptions = append(x.out.Assumptions, text)
	}
	if turned {
		return said, nil
	}
	said = heedGaps(x.Verdict, said)
	if x.out.Verdict != api.DoesNotFit && x.out.Verdict != api.Error || x.depth != withAdvice {
		return said, nil
	}
	update, bug, err := updates(ctx, x.Verdict, x.out)
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
	steps, err := retry(ctx, x.Verdict)
	x.out.NextSteps = append(x.out.NextSteps, steps...)
	return said, err
}

// conclude returns the reason of the allocator's verdict.
func conclude(v *verdict.Verdict, out *api.Explanation) reason {
	if v.Ended >= 0 {
		checked, node := &v.Checked[v.Ended], v.Reach.Candidates[v.Ended].Name
		switch endless := unending(checked.Err); {
		case checked.Outcome == allocator.Failed:
			if verdict.ErrorCode(checked.Err) == api.AllocatorPanic {
				// What our own look at devices finds may be just what the allocator stumbles over.
				for i := range out.Claims {
					out.Claims[i].Requests = nil
				}
			}
			return reason{what: errorSummary(v.Question, out.Claims, checked.Err)}
		case endless != nil:
			return reason{what: fmt.Sprintf("%s; whether the claims fit on node %s is not known", english.OneLine(endless), node)}
		default:
			return reason{what: fmt.Sprintf("the search for devices on node %s takes longer than 10s: the scheduler gives up with \"timed out trying to allocate devices\", and whether the claims fit is not known", node)}
		}
	}
	switch v.Allocator {
	case api.Allocated:
		return reason{what: allocatedSummary(v.Pod, out.Claims)}
	case api.Fits:
		if v.Target.Object.Kind == kindDaemonSet && len(v.Target.New) > 0 {
			return reason{what: daemons(v.Question, out.Nodes)}
		}
		return reason{what: eligibility.PlacementText(placementOf(v))}
	default:
		return noFit(out, len(v.Claims) == 0)
	}
}

// kindDaemonSet is the kind of the controller that creates a pod for each node.
const kindDaemonSet = "DaemonSet"

// daemons says on how many of the nodes for which a DaemonSet creates a pod it fits. Its
// controller leaves out those with taints that the pod does not tolerate, and those that its
// selector or affinity does not select (NodeShouldRunDaemonPod in
// pkg/controller/daemon/daemon_controller.go).
func daemons(q *eligibility.Question, nodes []api.NodeGroup) string {
	fits, all := 0, len(q.Reach.Candidates)
	for i := range nodes {
		if nodes[i].Verdict == api.Fits {
			fits += nodes[i].Count
		}
	}
	for _, misfits := range q.Reach.Misfits {
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
func errorSummary(q *eligibility.Question, claims []api.ClaimExplanation, err error) string {
	text := eligibility.WithoutPlannedClaims(q, errorText(err))
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

// heedGaps returns the gap that could turn the verdict around as the reason, or else the
// given reason.
func heedGaps(v *verdict.Verdict, said reason) reason {
	switch {
	case v.NoNode:
		return reason{what: "no node is known, and some devices are not bound to a node of a certain name"}
	case v.Gap == nil:
		return said
	case v.Allocator == api.DoesNotFit:
		return reason{what: v.Gap.Reason}
	default:
		return reason{what: fmt.Sprintf("as far as can be seen %s, but %s", said.text(nil), v.Gap.Reason)}
	}
}

// releaseText returns the reason of a verdict that the release of the cluster turns around.
func releaseText(v *verdict.Verdict) string {
	r := v.Release
	if r.Outcome == api.Error {
		release := schedulerText(v.Cluster)
		if proof := v.Cluster.Proof(cluster.MixedClaimsFailScore); proof != nil {
			release = "as its message about pod " + proof.Name + " proves, kube-scheduler"
		}
		return release + " fails to score the nodes for a pod with claims that are allocated and others that are not, where more than one node is suitable (kubernetes/kubernetes#139017, fixed in 1.35.6 and 1.36.2)"
	}
	text := "it depends on the Kubernetes version, which is not known: "
	switch r.Behavior {
	case cluster.MixedClaimsFailScore:
		return text + "the claims fit, but kube-scheduler 1.35.0 to 1.35.5, 1.36.0 and 1.36.1 fail to score the nodes for a pod with claims that are allocated and others that are not"
	case cluster.AllWithCountersPanics:
		return text + "the claims fit, but kube-scheduler 1.35.0 to 1.35.5, 1.36.0 and 1.36.1 panics when a request for all devices takes one that consumes counters"
	case cluster.OpenRuleTaintsAll:
		return text + "the claims fit, but " + v.Cluster.Taints.OpenRuleText(verdict.OpenRule(v.Question))
	default:
		return text + fmt.Sprintf("up to 1.37 the attempt ends for all nodes (%s), from 1.38 on the pod can go to node %s", errorText(r.Err), r.Node)
	}
}

// schedulerText names the scheduler by its version, as far as that is known.
func schedulerText(c *cluster.Cluster) string {
	switch version, from := c.Snapshot.BinaryVersion(), c.Snapshot.Skew.From; {
	case version != "":
		return "kube-scheduler " + version
	case from > 0:
		return fmt.Sprintf("kube-scheduler of 1.%d", from)
	default:
		return "kube-scheduler"
	}
}

// releaseAssumption says what depends on the release of the cluster, empty if nothing does.
func releaseAssumption(v *verdict.Verdict, nodes []api.NodeGroup) string {
	if r := v.Release; r != nil {
		return unknownRelease(r)
	}
	c, release := v.Cluster, schedulerText(v.Cluster)
	switch v.Allocator {
	case api.DoesNotFit:
		if c.Snapshot.BinaryVersion() == "" && c.Varies(cluster.DistinctPerRequest) && constraintFails(v.Question, nodes, func(c *resourceapi.DeviceConstraint) bool { return c.DistinctAttribute != nil }) {
			return "the Kubernetes version is not known: up to 1.36, distinctAttribute does not apply to the devices of one request, and the claim may fit (kubernetes/kubernetes#140600)"
		}
		if c.Behaves(cluster.ListsNotCompared) && c.Gates.Enabled(cluster.GateListTypeAttributes) && constraintFails(v.Question, nodes, verdict.ComparesLists(v.Question)) {
			return release + " does not compare lists in constraints, even with DRAListTypeAttributes on: devices with lists never match (kubernetes/kubernetes#139332, fixed in 1.37)"
		}
	case api.Fits:
		if len(v.Claims) > 0 && c.Behaves(cluster.UnsortedPools) {
			return release + " tries the pools of a node in random order: the pod can get other devices than these (kubernetes/kubernetes#136641)"
		}
	default:
	}
	return ""
}

// unknownRelease describes the assumption about an unknown release, empty if the release is
// known or does not matter.
func unknownRelease(r *verdict.Release) string {
	const unknown = "the Kubernetes version is not known"
	fixes := map[cluster.Behavior]int{cluster.MixedClaimsFailScore: 139017, cluster.AllWithCountersPanics: 138885, cluster.OpenRuleTaintsAll: 141620, cluster.AllPoolErrorEndsAttempt: 141898}
	switch {
	case r.Outcome == api.Error:
		return ""
	case r.Outcome == api.Undetermined:
		return fmt.Sprintf("%s, and the verdict depends on it (kubernetes/kubernetes#%d): set --kubernetes-version", unknown, fixes[r.Behavior])
	case r.Behavior == cluster.TimeoutEndsAttempt:
		return unknown + ": up to 1.35, a search that times out ends the attempt for that node only; from 1.36 on, for all nodes (kubernetes/kubernetes#137607)"
	case r.Behavior == cluster.ListsNotCompared:
		return unknown + ": constraints compare lists from 1.37 on; in 1.36, devices with lists never match, and the claim may not fit (kubernetes/kubernetes#139332)"
	default:
		return unknown + ": up to 1.37, the error ends the attempt for all nodes; from 1.38 on, only for that node, and no other node fits (kubernetes/kubernetes#141898)"
	}
}

// poolOrder says what depends on the order of pools, which is random in the stable
// implementation (GatherPools in structured/internal/stable/pools_stable.go): whether a
// request for all devices meets first a device that a constraint does not allow, which ends
// the attempt, or a device that is in use.
func poolOrder(q *eligibility.Question) string {
	if q.Cluster.Gates.Channel() != cluster.ChannelStable || !slices.ContainsFunc(q.Claims, func(c eligibility.Claim) bool {
		return verdict.WantsAll(c.Claim) && len(c.Claim.Spec.Devices.Constraints) > 0
	}) {
		return ""
	}
	return "with these feature gates the scheduler tries the pools of a node in random order: if a constraint or a device in use keeps a request from all devices, it depends on that order whether an attempt ends for all nodes or for that node only"
}

// constraintFails reports whether a certain constraint may be why nothing fits.
func constraintFails(q *eligibility.Question, nodes []api.NodeGroup, is func(*resourceapi.DeviceConstraint) bool) bool {
	return verdict.Constrains(q, is) && slices.ContainsFunc(nodes, func(group api.NodeGroup) bool { return group.Code == api.ConstraintUnsatisfiable })
}

// trace adds to each request what its selectors do.
func trace(ctx context.Context, v *verdict.Verdict, out *api.Explanation) {
	for i := range v.Claims {
		explained := &out.Claims[v.Claims[i].Index]
		at := 0
		for _, alternatives := range v.Claims[i].Funnels {
			for _, f := range alternatives {
				explained.Requests[at].Selectors = f.Traces(ctx)
				out.NextSteps = append(out.NextSteps, costSteps(v.Question, &v.Claims[i], f.Request, explained.Requests[at].Selectors)...)
				at++
			}
		}
	}
}

// costSteps warn users who create a claim that the API server will not take it.
func costSteps(q *eligibility.Question, c *eligibility.Claim, r *cluster.Request, traces []api.SelectorTrace) (steps []api.NextStep) {
	if c.Claim.UID != "" && !q.PodClaims[c.Index].Generated {
		return nil
	}
	for i := range traces {
		trace := &traces[i]
		if trace.Source != eligibility.SourceRequest || trace.Cost <= trace.CostLimit {
			continue
		}
		steps = append(steps, api.NextStep{Actor: api.ActorUser, Text: fmt.Sprintf(
			"make the selector of request %s at %s cheaper: %s", r.Name, trace.Path, eligibility.CostWarning(trace))})
	}
	return steps
}
