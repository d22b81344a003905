// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
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
