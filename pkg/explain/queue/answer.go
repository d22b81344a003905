// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
)

// Answer is the explanation of a target after all of the queue was decided.
func (q *Queue) Answer(ctx context.Context, s *target.Target) (*api.Explanation, error) {
	if s.Workload {
		return q.answerMembers(ctx, s)
	}
	p := q.pods[podKey(s.Pod)]
	switch {
	case p.member:
		// What is known about its kind is about one without its gang.
		of := *s
		of.Gang = p.gang.known()
		answer, err := q.explainer.Explain(ctx, q.cluster, &of)
		if err != nil || answer.Verdict != api.Fits {
			return answer, err
		}
		return q.settled(*answer, p, s), nil
	case p.kind.first == p:
		return q.settled(*p.kind.answer, p, s), nil
	default:
		return q.settled(*q.shared(p, s), p, s), nil
	}
}

// shared is the answer for a pod that is equal to another one, as far as it is
// its own.
func (q *Queue) shared(p *queuedPod, s *target.Target) *api.Explanation {
	from := p.kind.answer
	out := q.explainer.Describe(q.cluster, s)
	out.Verdict, out.Code, out.Summary, out.Stage = from.Verdict, from.Code, from.Summary, from.Stage
	out.NodeCount, out.Assumptions = from.NodeCount, from.Assumptions
	for i := range out.Pods {
		out.Pods[i].Stage = from.Stage
	}
	if from.Outlook != nil {
		same := *from.Outlook
		same.OneMoreNode = nil
		out.Outlook = &same
	}
	out.SameAs = &from.Target
	return out
}

// settled is an answer for the cluster as it is, with what the pods before this
// one change about it.
func (q *Queue) settled(e api.Explanation, p *queuedPod, s *target.Target) *api.Explanation {
	text := ""
	switch {
	case p.reservation != nil:
		placement := placementOf(p)
		if e.Placement == nil || e.Placement.Node != placement.Node || e.SameAs != nil {
			placement.Score = 0
			e.Placement = placement
			text = funnel.PlacementText(e.Placement)
		}
	case len(p.before) > 0:
		text = q.compete(&e, p, s)
	}
	if text != "" {
		e.Summary = english.Sentence(text)
	}
	return &e
}

// placementOf is what a reservation has, as an answer says it.
func placementOf(p *queuedPod) *api.Placement {
	placement := &api.Placement{Node: p.reservation.Node}
	for i := range p.reservation.Claims {
		r := &p.reservation.Claims[i]
		if r.Allocation == nil {
			continue
		}
		placement.Claims = append(placement.Claims, funnel.PlacementClaim(r.Claim, funnel.PickedDevices(p.pod, r.Claim, r.Allocation)))
	}
	return placement
}

// takers are the pods that get what those of a kind could have: equal ones, those
// that get the very devices that were picked for it or, if there are neither,
// those that get something else of the nodes where it fits.
func (q *Queue) takers(kind *podKind) []*queuedPod {
	answer := kind.answer
	var picked []string
	if answer.Placement != nil {
		for _, claim := range answer.Placement.Claims {
			for _, d := range claim.Devices {
				picked = append(picked, d.Driver+"/"+d.Pool+"/"+d.Device)
			}
		}
	}
	var takers, neighbors []*queuedPod
	for _, p := range q.order {
		if !p.gets() {
			continue
		}
		there := slices.ContainsFunc(answer.Nodes, func(g api.NodeGroup) bool {
			return g.Verdict == api.Fits && slices.Contains(g.Names, p.reservation.Node)
		})
		if there {
			neighbors = append(neighbors, p)
		}
		if there && p.kind == kind || slices.ContainsFunc(devicesOf(p), func(d api.AllocatedDevice) bool { return slices.Contains(picked, d.Driver+"/"+d.Pool+"/"+d.Device) }) {
			takers = append(takers, p)
		}
	}
	if len(takers) > 0 {
		return takers
	}
	return neighbors
}

// devicesOf lists what a pod gets.
func devicesOf(p *queuedPod) []api.AllocatedDevice {
	var devices []api.AllocatedDevice
	for _, claim := range placementOf(p).Claims {
		devices = append(devices, claim.Devices...)
	}
	return devices
}

// compete turns the answer for a pod that fits into that for one whose devices
// others get before it. It returns the summary, as a clause.
func (q *Queue) compete(e *api.Explanation, p *queuedPod, s *target.Target) string {
	e.Outlook = outlookOfQueued(e.Placement)
	e.Verdict, e.Code, e.Placement, e.OnEveryNode = api.DoesNotFit, api.PodsCompete, nil, false
	status := &api.QueueStatus{}
	for _, other := range p.before {
		if s.Workload && isMember(s, other) {
			// That is one of the pods that were asked about.
			continue
		}
		status.BeforeCount++
		if len(status.Before) < target.MaxPods {
			status.Before = append(status.Before, api.QueuedPod{
				Namespace: other.pod.Namespace, Name: other.pod.Name, Priority: ptr.Deref(other.pod.Spec.Priority, 0),
				Node: other.reservation.Node, Devices: devicesOf(other),
			})
		}
	}
	text := "pods before it in the queue get what is available"
	if status.BeforeCount > 0 {
		e.Queue = status
		text = queueText(status)
	} else if e.Members != nil {
		text = fmt.Sprintf("%d of %s fit, and the next one finds no devices left", e.Members.FitNow, english.Count(e.Members.Waiting, memberNoun(s)))
	}
	var nodes []api.NodeGroup
	for _, group := range e.Nodes {
		if group.Verdict == api.Fits {
			group.Verdict, group.Code, group.Score = api.DoesNotFit, api.PodsCompete, 0
			group.Message = "available, but pods before it in the queue get it"
		}
		nodes = append(nodes, group)
	}
	e.Nodes = nodes
	return text
}

// outlookOfQueued is the outlook of a pod that fits as long as those before it are left out.
func outlookOfQueued(placement *api.Placement) *api.Outlook {
	if placement == nil {
		return nil
	}
	fits := api.Prospect{Verdict: api.Fits, Node: placement.Node}
	return &api.Outlook{
		Fits: api.ClaimsReleased, Message: fmt.Sprintf("It fits on %s when the claims of the pods before it in the queue are released.", placement.Node),
		Now: api.Prospect{Verdict: api.DoesNotFit}, ClaimsReleased: fits, HardwareAlone: fits,
	}
}

// queueText says who comes first and what they get.
func queueText(s *api.QueueStatus) string {
	first := &s.Before[0]
	if s.BeforeCount == 1 {
		return fmt.Sprintf("pod %s/%s, which is before it in the queue, gets %s", first.Namespace, first.Name, queuedPodGets(first))
	}
	names := make([]string, 0, len(s.Before))
	for i := range s.Before {
		names = append(names, s.Before[i].Namespace+"/"+s.Before[i].Name)
	}
	const shown = 3
	text := english.JoinAnd(names)
	if s.BeforeCount > shown {
		text = fmt.Sprintf("%s, %s and %s more", names[0], names[1], fmt.Sprint(s.BeforeCount-2))
	}
	return fmt.Sprintf("%s, which are before it in the queue, get what it needs: %s", english.Count(s.BeforeCount, "pod"), text)
}

// queuedPodGets names the devices, or the node if there are none.
func queuedPodGets(p *api.QueuedPod) string {
	switch len(p.Devices) {
	case 0:
		return "a place on " + p.Node
	case 1:
		return fmt.Sprintf("%s on %s", p.Devices[0].Device, p.Node)
	}
	names := make([]string, 0, len(p.Devices))
	for i := range p.Devices {
		names = append(names, p.Devices[i].Device)
	}
	return fmt.Sprintf("%s on %s: %s", english.Count(len(names), "device"), p.Node, english.Sample(names, 4))
}
