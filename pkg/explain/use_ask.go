// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// useAnswer is the answer for equal pods, or for a claim that no pod uses.
type useAnswer struct {
	// pods are empty for a claim.
	pods []*corev1.Pod
	// explanation is the answer for the first pod, devices are the checks of the devices.
	explanation *api.Explanation
	devices     []*api.DeviceExplanation
	// settled are the answers for the pods after those before them in the queue were
	// decided. It is empty if the pods do not fit anyway.
	settled []*api.Explanation
}

// ask asks about the devices for each kind of pods that wait, and for each claim
// that waits for a pod. If all devices are on one node, only that node is
// asked about.
func (w *deviceUses) ask(ctx context.Context, devices []*cluster.Device) ([]*useAnswer, error) {
	var answers []*useAnswer
	options := func(object api.ObjectRef) Options {
		o := Options{Object: object}
		if len(w.nodes) == 1 {
			o.Node = w.nodes[0].Name
		}
		return o
	}
	add := func(a *useAnswer, o Options) error {
		var err error
		if a.explanation, a.devices, err = w.inspection.Devices(ctx, o, devices); err != nil {
			return fmt.Errorf("explain %s: %w", o.Object.Title(), err)
		}
		for _, text := range a.explanation.Assumptions {
			if !slices.Contains(w.out.Assumptions, text) {
				w.out.Assumptions = append(w.out.Assumptions, text)
			}
		}
		answers = append(answers, a)
		return nil
	}
	kinds, claims := w.waiting(ctx, devices)
	for _, pods := range kinds {
		if err := add(&useAnswer{pods: pods}, options(api.RefTo(api.KindPod, pods[0]))); err != nil {
			return nil, err
		}
	}
	for _, claim := range claims {
		if err := add(&useAnswer{}, options(api.RefTo(api.KindClaim, claim))); err != nil {
			return nil, err
		}
	}
	return answers, w.settle(ctx, answers)
}

// settle decides the pods that fit one after another, as the scheduler does.
func (w *deviceUses) settle(ctx context.Context, answers []*useAnswer) error {
	var waiting []*corev1.Pod
	var targets []Options
	var of []*useAnswer
	for _, a := range answers {
		waiting = append(waiting, a.pods...)
		if a.explanation.Verdict != api.Fits {
			continue
		}
		for _, pod := range a.pods {
			targets, of = append(targets, Options{Object: api.RefTo(api.KindPod, pod)}), append(of, a)
		}
	}
	if len(targets) == 0 {
		return nil
	}
	settled, err := ReasonsOfEach(ctx, w.cluster, targets, waiting)
	if err != nil {
		return err //nolint:wrapcheck // the caller says what was asked
	}
	for i, a := range of {
		if settled[i].Err != nil {
			return settled[i].Err
		}
		a.settled = append(a.settled, settled[i].Explanation)
	}
	return nil
}

// requests returns the requests of the pods, with the checks of the k-th device.
func (a *useAnswer) requests(k int) []api.RequestUse {
	d := a.devices[k]
	list := make([]api.RequestUse, 0, len(d.Requests))
	for i := range d.Requests {
		list = append(list, a.request(d, &d.Requests[i]))
	}
	return list
}

func (a *useAnswer) request(d *api.DeviceExplanation, r *api.DeviceRequest) api.RequestUse {
	out := api.RequestUse{
		PodCount: len(a.pods), Claim: r.Claim, PodClaim: r.PodClaim, Name: r.Name,
		ExtendedResource: r.ExtendedResource, Container: r.Container, DeviceClass: r.DeviceClass,
		Node: r.Node, Outcome: r.Outcome, Verdict: a.explanation.Verdict,
	}
	if len(a.pods) > 0 {
		out.Pod = api.RefTo(api.KindPod, a.pods[0])
	}
	for _, check := range r.Checks {
		if check.Outcome != api.CheckFailed {
			continue
		}
		out.Failed = append(out.Failed, check)
		if check.Code == api.ClassSelectorFalse || check.Code == api.RequestSelectorFalse {
			out.FalseParts += len(check.Evidence)
		}
	}
	if len(out.Failed) > 0 {
		out.Outcome, out.Code, out.Message = api.Rejected, out.Failed[0].Code, checkText(&out.Failed[0])
		return out
	}
	out.Outcome = api.Eligible
	switch taker, node := a.taker(d, r); {
	case len(a.pods) == 0:
		out.Message = "passes every check alone, but no pod uses the claim: the scheduler does not look at it"
	case taker != nil:
		out.Outcome = api.Picked
		out.Message = fmt.Sprintf("the allocator picks it for pod %s/%s", taker.Namespace, taker.Name)
		if others := a.fitsOn(node) - 1; others > 0 {
			out.Message += fmt.Sprintf("; the pod also fits on %d other nodes, and kube-scheduler chooses by score", others)
		}
	case a.explanation.Verdict == api.Fits && len(a.settled) > 0:
		out.Message = "passes every check alone, but " + a.instead(d)
	case a.explanation.Verdict == api.Blocked:
		out.Message = "passes every check alone, but the pod is blocked: " + asClause(a.explanation.Summary)
	default:
		out.Message = r.Message
	}
	return out
}

// taker returns the first of the pods that gets the device for a request, nil if none does,
// and its node.
func (a *useAnswer) taker(d *api.DeviceExplanation, r *api.DeviceRequest) (*api.ObjectRef, string) {
	for _, e := range a.settled {
		if e.Verdict != api.Fits || e.Placement == nil || e.Stage == api.StageQueueing {
			continue
		}
		for _, c := range e.Placement.Claims {
			for _, p := range c.Devices {
				if p.Driver == d.Driver && p.Pool == d.Pool && p.Device == d.Name && p.Request == r.Name {
					return &e.Target, e.Placement.Node
				}
			}
		}
	}
	return nil, ""
}

// fitsOn counts the nodes where the pods fit, if they have the node.
func (a *useAnswer) fitsOn(node string) int {
	count := 0
	for _, e := range a.settled {
		for _, group := range e.Nodes {
			if group.Verdict == api.Fits {
				count += group.Count
			}
		}
		if count > 0 {
			return count
		}
	}
	if node != "" {
		return 1
	}
	return 0
}

// instead says what the first of the pods gets in place of the device, or who is
// before it.
func (a *useAnswer) instead(d *api.DeviceExplanation) string {
	first := a.settled[0]
	name := first.Target.Namespace + "/" + first.Target.Name
	switch {
	case first.Verdict == api.Fits && first.Stage == api.StageQueueing:
		return fmt.Sprintf("pod %s is not in the scheduling queue yet", name)
	case first.Verdict == api.Fits && first.Placement != nil:
		for _, c := range first.Placement.Claims {
			for _, p := range c.Devices {
				if p.Driver == d.Driver && p.Pool == d.Pool && p.Device == d.Name {
					return fmt.Sprintf("the allocator picks it for request %s of the pod", p.Request)
				}
			}
		}
		return fmt.Sprintf("pod %s gets %s", name, placementText(first.Placement))
	default:
		return fmt.Sprintf("not for pod %s: %s", name, asClause(first.Summary))
	}
}

// placementText names the devices that a pod gets, and its node.
func placementText(p *api.Placement) string {
	var names []string
	for _, c := range p.Claims {
		for _, d := range c.Devices {
			names = append(names, d.Device)
		}
	}
	return english.Sample(names, 4) + " on " + p.Node
}

// asClause returns a sentence as a part of another one.
func asClause(sentence string) string {
	text := strings.TrimSuffix(sentence, ".")
	if text == "" {
		return text
	}
	return strings.ToLower(text[:1]) + text[1:]
}

func checkText(c *api.DeviceCheck) string {
	if c.Message == "" {
		return c.Label
	}
	return c.Label + ": " + c.Message
}

// maxUseAsked is for how many kinds of equal pods it is found out why they do not get the
// devices, and for how many claims that no pod uses.
const maxUseAsked = 64

// deviceUses is the work on one explanation.
type deviceUses struct {
	cluster *cluster.Cluster

	// nodes are the nodes for which devices are checked.
	nodes      []*corev1.Node
	inspection *Inspection
	out        *api.UseExplanation
}

func newDeviceUses(c *cluster.Cluster, nodes []*corev1.Node) *deviceUses {
	in := NewInspection(c, nodes)
	return &deviceUses{
		cluster: c, nodes: nodes, inspection: in,
		out: &api.UseExplanation{
			TypeMeta:  metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "UseExplanation"},
			Allocator: in.Allocator(), Assumptions: in.Assumptions,
		},
	}
}

// waiting lists the pods that wait, equal ones together, in the order of the queue, and
// the claims that wait for a pod. Where there are too many of either, those whose class
// selects one of the devices come before all others, and the rest is only counted.
func (w *deviceUses) waiting(ctx context.Context, devices []*cluster.Device) ([][]*corev1.Pod, []*resourceapi.ResourceClaim) {
	concerned := w.concerned(ctx, devices)
	all := verdict.Kinds(w.cluster)
	for _, pods := range all {
		w.out.WaitingPods += len(pods)
	}
	var unused []*resourceapi.ResourceClaim
	for _, claim := range w.cluster.Snapshot.Claims {
		if snapshot.Pending(claim) && !slices.ContainsFunc(lifecycle.PodsUsing(w.cluster.Snapshot, claim), snapshot.Waits) {
			unused = append(unused, claim)
		}
	}
	kinds, cut := limitConcerned(all, func(pods []*corev1.Pod) bool {
		return slices.ContainsFunc(w.cluster.Claims.OfPod(pods[0]), func(pc cluster.PodClaim) bool { return pc.Claim == nil || concerned(pc.Claim) })
	})
	claims, cutClaims := limitConcerned(unused, concerned)
	if len(cut)+len(cutClaims) == 0 {
		return kinds, claims
	}
	left := &api.NotExplained{Kinds: len(cut), Claims: len(cutClaims)}
	for _, c := range cut {
		left.Pods += len(c.item)
		if c.concerned {
			left.SelectingKinds++
		}
	}
	w.out.NotExplained = left
	return kinds, claims
}

// leftOut is something that waits and is only counted.
type leftOut[T any] struct {
	item      T
	concerned bool
}

// limitConcerned cuts a list to [maxAsked], in its order. Those that are concerned stay as long
// as there are others to leave out.
func limitConcerned[T any](list []T, concerned func(T) bool) (kept []T, cut []leftOut[T]) {
	if len(list) <= maxUseAsked {
		return list, nil
	}
	room := maxUseAsked
	is := make([]bool, len(list))
	for i, item := range list {
		if is[i] = concerned(item); is[i] {
			room--
		}
	}
	others := max(room, 0)
	for i, item := range list {
		keep := is[i] && len(kept) < maxUseAsked
		if !is[i] && others > 0 {
			keep, others = true, others-1
		}
		if keep {
			kept = append(kept, item)
		} else {
			cut = append(cut, leftOut[T]{item, is[i]})
		}
	}
	return kept, cut
}

// concerned reports whether a claim has a request for a class that selects one of the
// devices, or may do so: one whose selector fails ends the attempt for all nodes.
func (w *deviceUses) concerned(ctx context.Context, devices []*cluster.Device) func(*resourceapi.ResourceClaim) bool {
	known := map[string]bool{}
	selects := func(name string) bool {
		class := w.cluster.Snapshot.Class(name)
		return class != nil && slices.ContainsFunc(devices, func(d *cluster.Device) bool { return w.inspection.MaySelect(ctx, class, d) })
	}
	return func(claim *resourceapi.ResourceClaim) bool {
		for _, request := range cluster.Requests(claim) {
			for _, alternative := range request {
				name := alternative.Class
				if _, asked := known[name]; !asked {
					known[name] = selects(name)
				}
				if known[name] {
					return true
				}
			}
		}
		return false
	}
}

// notAllText says that the pods that were left out could decide about a device. It is empty
// if they could not.
func notAllText(left *api.NotExplained) string {
	if left == nil || left.SelectingKinds == 0 {
		return ""
	}
	return fmt.Sprintf("%s of pods with a class that selects it, beyond the first %d, are only counted", english.Count(left.SelectingKinds, "more kind"), maxUseAsked)
}
