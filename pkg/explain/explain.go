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
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/claimspec"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/conflict"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/counting"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/hints"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/nodegroup"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/obstacle"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/queue"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/preview"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// probeTimeout bounds the search for what stands in the way on one node, and
// maxProbed the number of different nodes where it is made.
const (
	probeTimeout = 2 * time.Second
	maxProbed    = 32
)

// Options say what to explain.
type Options = target.Options

// KindDevice is the kind of what [Options.Device] names.
const KindDevice = target.KindDevice

// TargetError means that there is nothing to explain.
type TargetError = target.Error

// Explain reports whether the claims of a target can be allocated, and why. It
// fails with a [*TargetError] if there is no such target, and with the error
// of ctx if that is done before there is an answer.
func Explain(ctx context.Context, snap *snapshot.Snapshot, opts Options) (*api.Explanation, error) {
	alloc, err := allocator.New(ctx, cluster.New(snap))
	if err != nil {
		return nil, fmt.Errorf("set up the allocator: %w", err)
	}
	return ExplainWith(ctx, alloc, snap, opts)
}

// ExplainWith is [Explain] with an allocator for the same snapshot, for those
// who ask about several targets.
func ExplainWith(ctx context.Context, alloc *allocator.Allocator, snap *snapshot.Snapshot, opts Options) (*api.Explanation, error) {
	t, err := target.Find(snap, alloc, opts)
	if err != nil {
		return nil, err
	}
	first, err := explainTarget(ctx, alloc, snap, t)
	if err != nil || first.Verdict == api.Fits {
		return first, err
	}
	// One of the other pods that wait for the same claim may get it allocated.
	for _, pod := range t.Others[:min(len(t.Others), maxOthers)] {
		other := *t
		other.UsePod(alloc, pod)
		answer, err := explainTarget(ctx, alloc, snap, &other)
		if err != nil {
			return nil, err
		}
		if answer.Verdict == api.Fits {
			answer.Summary = fmt.Sprintf("It can be allocated for pod %s, not for others that wait for it. %s", pod.Name, answer.Summary)
			return answer, nil
		}
	}
	return first, nil
}

// explainer is what the queue asks.
func explainer() queue.Explainer {
	return queue.Explainer{
		Explain: explainTarget,
		Describe: func(alloc *allocator.Allocator, snap *snapshot.Snapshot, t *target.Target) *api.Explanation {
			x := newInquiry(alloc, snap, t)
			x.describe()
			return x.out
		},
	}
}

// maxOthers is how many more pods are tried that wait for a claim.
const maxOthers = 4

func explainTarget(ctx context.Context, alloc *allocator.Allocator, snap *snapshot.Snapshot, t *target.Target) (*api.Explanation, error) {
	x := newInquiry(alloc, snap, t)
	if err := x.run(ctx); err != nil {
		return nil, fmt.Errorf("explain %s: %w", target.Text(t.Object), err)
	}
	if err := x.describeNode(ctx); err != nil {
		return nil, err
	}
	if err := x.describeDevice(ctx); err != nil {
		return nil, err
	}
	x.out.Summary = english.Sentence(x.out.Summary)
	x.out.Code = x.code()
	return x.out, nil
}

func newInquiry(alloc *allocator.Allocator, snap *snapshot.Snapshot, t *target.Target) *inquiry {
	q := funnel.NewQuestion(alloc, snap, t.Pod, t.Claims)
	return &inquiry{
		Question:   q,
		target:     t,
		probed:     map[string]nodeAnswer{},
		signatures: nodegroup.NewSignatures(q),
		contents:   &nodegroup.Contents{},
		confirmer:  &counting.Confirmer{},
		out: &api.Explanation{
			TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Explanation"},
			Target:   t.Object,
		},
	}
}

// inquiry is the work on one explanation.
type inquiry struct {
	*funnel.Question
	target *target.Target
	// probed has the answers for nodes where single requests do not explain
	// it, by what the nodes offer.
	probed map[string]nodeAnswer
	// signatures and contents tell which nodes are equivalent.
	signatures *nodegroup.Signatures
	contents   *nodegroup.Contents
	// slowNode is a node that was decided by counting because the allocator
	// takes too long.
	slowNode string
	// confirmer asks about what-if clusters.
	confirmer *counting.Confirmer
	// blockedBy is what else is in the way of a pod for which there are devices,
	// and unevaluated what may be, but could not be read.
	blockedBy   []obstacle.Obstacle
	unevaluated []obstacle.Unevaluated
	out         *api.Explanation
}

func (x *inquiry) run(ctx context.Context) error {
	x.describe()
	defer x.addHints(ctx)
	defer x.describeStage()
	defer x.assume()

	if err := x.allocate(ctx); err != nil {
		return err
	}
	return x.meetObstacles(ctx)
}

// addHints says what is true besides.
func (x *inquiry) addHints(ctx context.Context) {
	if !x.target.VerdictOnly {
		hints.Add(x.Question, x.target.Object, x.out)
	}
	hints.AddOfConfig(ctx, x.Question, x.out)
}

// allocate finds the verdict of the allocator, and of what comes before it.
func (x *inquiry) allocate(ctx context.Context) error {
	if x.beyondScheduling() || x.settled(claimProblem(x.Question)) || x.deletingTarget() || x.unservedPod() {
		return nil
	}
	if len(x.Claims) == 0 && x.Pod == nil && (x.target.Only == nil || len(funnel.Misfits(x.Question, x.target.Only)) == 0) {
		x.out.Verdict = api.Allocated
		x.out.Summary = x.allocatedSummary()
		return nil
	}
	if x.settled(refusal(x.Question)) {
		return x.advise(ctx)
	}
	nodes := x.target.Nodes(x.Cluster.Alloc)
	x.out.Assumptions = append(x.out.Assumptions, survey(x.Question, nodes)...)
	x.out.NodeCount = len(nodes)
	for i := range x.Claims {
		if err := x.account(ctx, &x.Claims[i]); err != nil {
			return err
		}
	}
	if !x.target.VerdictOnly {
		x.trace(ctx)
	}
	return x.decide(ctx)
}

// beyondScheduling deals with pods that the scheduler has done with: those
// that are bound, finished or on their way out. It reports whether that settles
// the matter.
func (x *inquiry) beyondScheduling() bool {
	pod := x.Pod
	if end := x.target.End; end != nil {
		x.finish(endText(end))
		return true
	}
	if pod == nil {
		return false
	}
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		x.finish(fmt.Sprintf("the pod is finished (%s) and no longer needs devices", pod.Status.Phase))
	case pod.Spec.NodeName == "" && pod.DeletionTimestamp != nil:
		x.settle(api.Error, api.ClaimNotReady, "the pod is being deleted and is no longer scheduled")
	case pod.Spec.NodeName == "", x.target.IsElsewhere(pod):
		return false
	default:
		x.bound(pod)
	}
	return true
}

// finish settles a target whose pods have ended.
func (x *inquiry) finish(summary string) {
	x.out.Verdict, x.out.Finished, x.out.Summary = api.Allocated, true, summary
}

// endText says how a Job ended.
func endText(end *snapshot.JobEnd) string {
	switch {
	case !end.Failed():
		return "the Job is complete and creates no more pods"
	case end.Reason != "":
		return "the Job has failed (" + end.Reason + ") and creates no more pods"
	default:
		return "the Job has failed and creates no more pods"
	}
}

// bound deals with a pod on its node: nobody allocates claims for it any more,
// and the kubelet refuses those that are not the pod's.
func (x *inquiry) bound(pod *corev1.Pod) {
	var tolerable []string
	var missing, unreadable error
	for i := range x.PodClaims {
		pc := &x.PodClaims[i]
		switch {
		case pc.ExtendedResources && pc.Generated && lifecycle.Hides(x.Snap, snapshot.ResourceClaims, pod.Namespace):
			unreadable = fmt.Errorf("the claim for the extended resources of the pod %w", cluster.ErrClaimUnreadable)
		case pc.Problem == nil:
		case errors.Is(pc.Problem, cluster.ErrClaimUnreadable):
			unreadable = pc.Problem
		case pc.Claim == nil, errors.Is(pc.Problem, cluster.ErrClaimNotOwned):
			if missing == nil {
				missing = pc.Problem
			}
		default:
			tolerable = append(tolerable, pc.Problem.Error())
		}
	}
	switch {
	case missing != nil:
		x.settle(api.Error, api.ClaimNotReady, missing.Error())
	case unreadable != nil:
		x.settle(api.Undetermined, api.ClaimNotReady, unreadable.Error())
	case len(x.Claims) > 0:
		x.settle(api.Blocked, api.ClaimNotReady, fmt.Sprintf("the pod is bound to node %s, but its claims are not allocated; the scheduler allocates claims only before it binds a pod", pod.Spec.NodeName))
	default:
		x.out.Verdict = api.Allocated
		x.out.Summary = strings.Join(append([]string{x.allocatedSummary()}, tolerable...), "; ")
	}
}

// settlement is an answer that is the same for all nodes.
type settlement struct {
	verdict api.Verdict
	code    api.Code
	message string
}

// claimProblem is about claims that the scheduler does not even look at, nil if
// there are none.
func claimProblem(q *funnel.Question) *settlement {
	for i := range q.PodClaims {
		pc := &q.PodClaims[i]
		if pc.Problem == nil && lifecycle.FullForPod(q.Cluster.Alloc.Facts, q.Pod, pc.Claim) {
			return &settlement{api.Error, api.ClaimNotReady, fmt.Sprintf("claim %s has reached the limit of %d consumers (status.reservedFor)", pc.Claim.Name, resourceapi.ResourceClaimReservedForMaxSize)}
		}
		switch {
		case pc.Problem == nil, pc.Claim != nil && errors.Is(pc.Problem, cluster.ErrClaimNotCreated), obstacle.PodGroupMissing(pc):
			// The answer is that for the claim as it will be made.
			continue
		case errors.Is(pc.Problem, cluster.ErrClaimUnreadable):
			return &settlement{api.Undetermined, api.ClaimNotReady, pc.Problem.Error()}
		case errors.Is(pc.Problem, cluster.ErrClaimDeleting):
			return &settlement{api.Blocked, api.ClaimNotReady, pc.Problem.Error()}
		default:
			return &settlement{api.Error, api.ClaimNotReady, pc.Problem.Error() + nearClaim(q, pc)}
		}
	}
	return nil
}

// nearClaim suggests the claim or template that was probably meant.
func nearClaim(q *funnel.Question, pc *cluster.PodClaim) string {
	var names []string
	switch {
	case errors.Is(pc.Problem, cluster.ErrTemplateMissing) && pc.Template != "":
		for _, t := range q.Snap.Templates {
			if t.Namespace == q.Pod.Namespace {
				names = append(names, t.Name)
			}
		}
		return naming.DidYouMean(pc.Template, names)
	case errors.Is(pc.Problem, cluster.ErrClaimMissing) && pc.Template == "":
		for _, c := range q.Snap.Claims {
			if c.Namespace == q.Pod.Namespace {
				names = append(names, c.Name)
			}
		}
		for _, entry := range q.Pod.Spec.ResourceClaims {
			if entry.Name == pc.Entry && entry.ResourceClaimName != nil {
				return naming.DidYouMean(*entry.ResourceClaimName, names)
			}
		}
	}
	return ""
}

// settled ends the inquiry with a settlement, if there is one.
func (x *inquiry) settled(s *settlement) bool {
	if s != nil {
		x.settle(s.verdict, s.code, s.message)
	}
	return s != nil
}

// settle ends the inquiry with an answer that is the same for all nodes.
func (x *inquiry) settle(verdict api.Verdict, code api.Code, message string) {
	x.out.Verdict, x.out.Code, x.out.Summary = verdict, code, message
	nodes := x.target.Nodes(x.Cluster.Alloc)
	if len(nodes) == 0 {
		return
	}
	answers := map[nodeAnswer][]string{}
	answer := nodeAnswer{verdict: verdict, code: code, message: message}
	for _, node := range nodes {
		answers[answer] = append(answers[answer], node.Name)
	}
	x.out.Nodes, x.out.NodeCount = groupNodes(answers), len(nodes)
}

// code is the dominant reason: the one that settled the matter, or else that of
// the most promising nodes.
func (x *inquiry) code() api.Code {
	switch {
	case x.out.Verdict == api.Fits, x.out.Verdict == api.Allocated:
		return ""
	case x.out.Code == "" && len(x.out.Nodes) > 0:
		return x.out.Nodes[0].Code
	default:
		return x.out.Code
	}
}

// refusal makes the checks that come before any node is tried: those of the
// API server for claims that do not exist yet, and those of the scheduler's
// PreFilter. It is nil if they pass.
func refusal(q *funnel.Question) *settlement {
	for _, c := range q.Claims {
		pc := &q.PodClaims[c.Index]
		if message := adminAccessDenied(q, c.Claim); message != "" && (pc.Generated || c.Claim.UID == "") {
			return &settlement{api.Error, api.AdminAccessDenied, message}
		}
		for i := range c.Claim.Spec.Devices.Requests {
			r := &c.Claim.Spec.Devices.Requests[i]
			switch {
			case len(r.FirstAvailable) > 0 && !q.Cluster.Alloc.Facts.Gates.Enabled("DRAPrioritizedList"):
				return &settlement{api.Error, api.FeatureDisabled, fmt.Sprintf("request %s has alternatives (firstAvailable), which needs the feature gate DRAPrioritizedList", r.Name)}
			case r.Exactly == nil && len(r.FirstAvailable) == 0:
				return &settlement{api.Error, api.FeatureDisabled, fmt.Sprintf("request %s is of an unknown kind: it has neither exactly nor firstAvailable", r.Name)}
			}
		}
		for _, alternatives := range claimspec.Requests(c.Claim) {
			for _, r := range alternatives {
				if missing := classMissing(q, r); missing != nil {
					return missing
				}
			}
		}
	}
	return nil
}

func classMissing(q *funnel.Question, r *claimspec.Request) *settlement {
	if q.Snap.Class(r.Class) != nil {
		return nil
	}
	if gap := q.Snap.Gap(snapshot.ResourceClasses); gap != nil {
		return &settlement{api.Undetermined, api.ClassNotFound, fmt.Sprintf("request %s needs DeviceClass %s, which could not be read: %s", r.Name, r.Class, gap.Reason)}
	}
	names := make([]string, 0, len(q.Snap.Classes))
	for _, class := range q.Snap.Classes {
		names = append(names, class.Name)
	}
	hint := naming.DidYouMean(r.Class, names)
	if hint == "" {
		hint = "; no DeviceClass exists"
		if len(names) > 0 {
			hint = "; existing classes: " + english.Sample(names, 10)
		}
	}
	if driver := preview.InstalledWith(q.Snap, r.Class); driver != "" {
		hint = fmt.Sprintf("; it is installed with the driver %s, and no part of its preview: lay it over the cluster too, with -f", driver)
	}
	return &settlement{api.Error, api.ClassNotFound, fmt.Sprintf("request %s: DeviceClass %s does not exist%s", r.Name, r.Class, hint)}
}

// adminAccessDenied repeats the API server's check (KEP-5018) that a claim
// with admin access is in a namespace for that.
func adminAccessDenied(q *funnel.Question, claim *resourceapi.ResourceClaim) string {
	namespace := q.Snap.Namespace(claim.Namespace)
	if namespace == nil || namespace.Labels[resourceapi.DRAAdminNamespaceLabelKey] == "true" {
		return ""
	}
	for i := range claim.Spec.Devices.Requests {
		r := &claim.Spec.Devices.Requests[i]
		if r.Exactly != nil && r.Exactly.AdminAccess != nil && *r.Exactly.AdminAccess {
			return fmt.Sprintf("request %s asks for admin access, which the API server allows only in a namespace with the label %s=true; namespace %s has %s",
				r.Name, resourceapi.DRAAdminNamespaceLabelKey, claim.Namespace, labelText(namespace.Labels, resourceapi.DRAAdminNamespaceLabelKey))
		}
	}
	return ""
}

func labelText(labels map[string]string, key string) string {
	if value, ok := labels[key]; ok {
		return fmt.Sprintf("%s=%s", key, value)
	}
	return "no such label"
}

// survey sorts nodes into those where the allocator is asked and those that the
// pod cannot use, as the scheduler's earlier filters do. What could not be
// determined is an assumption.
func survey(q *funnel.Question, nodes []*corev1.Node) (assumptions []string) {
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	q.Cluster.Pools = make(map[string][]*cluster.NodePool, len(nodes))
	q.Cluster.Misfits = map[string][]eligibility.UnsuitableNode{}
	for _, node := range nodes {
		pools, err := q.Cluster.Alloc.Facts.Pools.For(node)
		if err != nil {
			assumptions = append(assumptions, fmt.Sprintf("the pools of node %s could not be determined: %v", node.Name, err))
		}
		q.Cluster.Pools[node.Name] = pools
		if misfits := funnel.Misfits(q, node); len(misfits) > 0 {
			q.Cluster.Unsuitable = append(q.Cluster.Unsuitable, misfits[0])
			q.Cluster.Misfits[node.Name] = misfits
			continue
		}
		q.Cluster.Candidates = append(q.Cluster.Candidates, node)
	}
	return assumptions
}

// again asks the question with a change made, up to the point where the
// allocator is asked. It is nil if something else is in the way already.
func (x *inquiry) again(w conflict.WhatIf) (*funnel.Question, error) {
	snap, alloc, t := x.Snap, x.Cluster.Alloc, x.target
	if w.Snap != nil {
		snap, alloc = w.Snap, w.Alloc
	}
	if w.FindAgain {
		var err error
		if t, err = target.Find(snap, alloc, x.target.Options); err != nil {
			return nil, err
		}
		if pod := x.Pod; pod != nil && !x.target.Hypothetical {
			t.UsePod(alloc, snap.Pod(pod.Namespace, pod.Name))
		}
	}
	q := funnel.NewQuestion(alloc, snap, t.Pod, slices.Clone(t.Claims))
	if !w.Features {
		// No change is about what devices publish, so that results and names hold.
		q.Selectors, q.Catalog = x.Selectors, x.Catalog
	}
	for i, edits := range w.Claims {
		pc := &q.PodClaims[i]
		spec, err := whatif.Edited(&pc.Claim.Spec, edits, "")
		if err != nil {
			return nil, err
		}
		claim := *pc.Claim
		claim.Spec = *spec
		pc.Claim = cluster.Defaulted(&claim)
	}
	funnel.ListWaiting(q)
	if claimProblem(q) != nil || refusal(q) != nil {
		return nil, nil
	}
	if w.Snap == nil && x.Cluster.Pools != nil {
		q.Cluster = x.Cluster
		return q, nil
	}
	survey(q, t.Nodes(alloc))
	return q, nil
}

// account makes the funnels of a claim.
func (x *inquiry) account(ctx context.Context, c *funnel.Claim) error {
	pools := len(x.Cluster.Alloc.Facts.Pools.All())
	if x.target.Only != nil {
		pools = len(x.Cluster.Pools[x.target.Only.Name])
	}
	if err := x.AddFunnels(ctx, c, x.target.Only); err != nil {
		return err
	}
	explained := &x.out.Claims[c.Index]
	for _, alternatives := range c.Funnels {
		for _, f := range alternatives {
			request := f.Explanation(pools)
			if place, ok := funnel.ExtendedRequestOf(x.Question, c.Claim, f.Request.Base); ok {
				request.Container = place.Container.Name
			}
			explained.Requests = append(explained.Requests, request)
		}
	}
	for _, constraint := range claimspec.Constraints(c.Claim) {
		explained.Constraints = append(explained.Constraints, constraint.String())
	}
	return nil
}

// Word is an answer in one word, for tables: the code or, if there is none, the
// verdict.
func Word(e *api.Explanation) string {
	return cmp.Or(string(e.Code), string(e.Verdict))
}
