// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Decision is the outcome for one pod of the queue.
type Decision struct {
	Pod *corev1.Pod
	// Answer is for the cluster as it is, before anything was reserved. Equal pods
	// share it: it is about the first one of them.
	Answer *api.Explanation
	// Reservation is the reservation for the pod, nil if it gets nothing.
	Reservation *whatif.Reservation
	// Before are the pods that get what it could have, if it fits without them.
	Before []*corev1.Pod
	// Group is the name of the PodGroup that it is placed with, empty for none. Gang is
	// what becomes of that, nil if there is none, and MinCount is how many pods of it are
	// placed at the same time.
	Group    string
	Gang     *target.Gang
	MinCount int
	// Preempts are the pods whose place it takes, PreemptedBy is the pod that takes its
	// place; see [QueueOptions].
	Preempts    []*corev1.Pod
	PreemptedBy *corev1.Pod
	// Undecided is set if the allocator had no answer after others were placed.
	Undecided error
}

// Why says why a pod gets nothing, with the pods that get what it could have or what it
// lacks.
func (d *Decision) Why() (api.Code, string) {
	switch {
	case d.Gang != nil && d.Gang.Short(d.Group, d.MinCount) != "":
		return api.GangIncomplete, english.Sentence(d.Gang.Short(d.Group, d.MinCount))
	case d.Answer.Verdict == api.Fits && len(d.Before) > 0:
		names := make([]string, 0, len(d.Before))
		for _, pod := range d.Before {
			names = append(names, pod.Namespace+"/"+pod.Name)
		}
		verb := "get"
		if len(names) == 1 {
			verb = "gets"
		}
		return api.PodsCompete, fmt.Sprintf("%s before it in the queue %s what it could have: %s.", english.Count(len(names), "pod"), verb, english.Sample(names, 3))
	default:
		return d.Answer.Code, d.Answer.Summary
	}
}

// QueueOptions select further results of [DecideQueue].
type QueueOptions struct {
	// Preempts has pods take the place of others: see [verdict.Options].
	Preempts bool
	// Outlook is set to find the outlook of pods that do not fit.
	Outlook bool
}

// DecideQueue decides pods that wait one after another, as [ExplainEach] does, and
// returns what becomes of each of them, in the order of the queue, and the cluster after
// that. Of pods that do not fit, neither remedies nor hints are found. The error is from
// ctx.
func DecideQueue(ctx context.Context, c *cluster.Cluster, pods []*corev1.Pod, opts QueueOptions) ([]Decision, *cluster.Cluster, error) {
	q := verdict.NewQueue(c, verdict.Options{Planned: true, Shares: true, Waiting: pods, Preempts: opts.Preempts})
	for _, pod := range pods {
		q.AddPod(target.WithClassPriority(c.Snapshot, pod))
	}
	most := reasonsOnly
	if opts.Outlook {
		most = withOutlook
	}
	a, err := explainQueue(ctx, c, q, most)
	if err != nil {
		return nil, nil, err
	}
	var list []Decision
	for _, p := range q.Pods() {
		if !p.Asked {
			continue
		}
		d := Decision{Pod: p.Pod, Reservation: p.Reservation, Undecided: p.Undecided, Preempts: p.Preempts}
		if d.Answer, err = a.of(ctx, p.Kind, most); err != nil {
			return nil, nil, err
		}
		if p.PreemptedBy != nil {
			d.PreemptedBy = p.PreemptedBy.Pod
		}
		for _, other := range p.Before {
			d.Before = append(d.Before, other.Pod)
		}
		if d.Group, d.MinCount, d.Gang = p.Group(); d.Gang != nil && !p.Gets() {
			d.Reservation = nil
		}
		list = append(list, d)
	}
	return list, q.After, nil
}

// answers explains the pods of a queue.
type answers struct {
	*verdict.Queue
	cluster *cluster.Cluster
	// byKind has the explanation of the first pod of each kind, in the cluster where it is decided.
	byKind map[*verdict.Kind]*api.Explanation
}

// explainQueue decides a queue, and explains the pods in it that are asked about: the targets among
// them with advice, unless less is asked for. Of the others, the verdict is enough.
func explainQueue(ctx context.Context, c *cluster.Cluster, q *verdict.Queue, most depth) (*answers, error) {
	a := &answers{Queue: q, cluster: c, byKind: map[*verdict.Kind]*api.Explanation{}}
	kinds := q.Kinds()
	for i := 0; i < len(kinds); i++ {
		kind := kinds[i]
		d := most
		if most == withAdvice && !kind.First.Target {
			d = reasonsOnly
		}
		if err := a.explainKind(ctx, kind, d); err != nil {
			return nil, err
		}
		if q.Shares && a.namesFirst(kind) {
			// The others have answers of their own.
			kinds = append(kinds, q.Apart(kind)...)
		}
	}
	return a, q.Decide(ctx)
}

// explainKind explains the first pod of a kind.
func (a *answers) explainKind(ctx context.Context, kind *verdict.Kind, d depth) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	answer, v, err := explainTarget(ctx, a.ClusterOf(kind), a.TargetOf(kind.First), d)
	if err != nil {
		return err
	}
	if a.Shares {
		dropDeviceNames(answer)
	}
	a.byKind[kind] = answer
	a.Know(kind, v)
	return nil
}

// dropDeviceNames drops the lists of devices from an explanation that an overview keeps: there
// are as many as the cluster has, for each kind of pods.
func dropDeviceNames(e *api.Explanation) {
	for i := range e.Claims {
		for j := range e.Claims[i].Requests {
			r := &e.Claims[i].Requests[j]
			r.EligibleDevices = nil
			for k := range r.Rejected {
				r.Rejected[k].Devices = nil
			}
		}
	}
}

// of returns the explanation of a kind of pods that was decided.
func (a *answers) of(ctx context.Context, kind *verdict.Kind, d depth) (*api.Explanation, error) {
	if known := a.byKind[kind]; known != nil {
		return known, nil
	}
	answer, _, err := explainTarget(ctx, a.ClusterOf(kind), a.TargetOf(kind.First), d)
	a.byKind[kind] = answer
	return answer, err
}

// shared returns the answer for a pod that is equal to another one, as far as it is its
// own.
func (a *answers) shared(p *verdict.Queued, s *target.Target) *api.Explanation {
	from := a.byKind[p.Kind]
	x := newBuilder(&verdict.Verdict{Question: eligibility.NewQuestion(a.cluster, s.Pod, s.Claims), Target: s}, reasonsOnly)
	eligibility.ListWaiting(x.Question)
	s.Claims = x.PodClaims
	describe(x.Verdict, x.out)
	out := x.out
	out.Verdict, out.Code, out.Stage = from.Verdict, from.Code, from.Stage
	out.Summary, out.Headline = from.Summary, from.Headline
	out.NodeCount, out.Assumptions = from.NodeCount, from.Assumptions
	for i := range out.Pods {
		out.Pods[i].Stage = from.Stage
	}
	if from.Outlook != nil {
		same := *from.Outlook
		same.OneMoreNode = nil
		out.Outlook = &same
	}
	out.SameAs = from.Target
	return out
}

// settled returns an answer for the cluster as it is, with what the pods before this one
// change about it.
func (a *answers) settled(e api.Explanation, p *verdict.Queued, s *target.Target) *api.Explanation {
	text := ""
	switch {
	case p.Reservation != nil:
		placement := placed(p)
		if e.Placement == nil || e.Placement.Node != placement.Node || e.SameAs.Kind != "" {
			placement.Score = 0
			e.Placement = placement
			text = eligibility.PlacementText(e.Placement)
		}
	case len(p.Before) > 0:
		text = a.compete(&e, p, s)
	}
	if text != "" {
		e.Summary, e.Headline = english.Sentence(text), ""
	}
	return &e
}

// placed returns what a reservation has, as an answer says it.
func placed(p *verdict.Queued) *api.Placement {
	placement := &api.Placement{Node: p.Reservation.Node}
	for i := range p.Reservation.Claims {
		r := &p.Reservation.Claims[i]
		if r.Allocation == nil {
			continue
		}
		placement.Claims = append(placement.Claims, eligibility.PlacementClaim(r.Claim, eligibility.PickedDevices(p.Pod, r.Claim, r.Allocation)))
	}
	return placement
}

// devicesOf lists what a pod gets.
func devicesOf(p *verdict.Queued) []api.AllocatedDevice {
	var devices []api.AllocatedDevice
	for _, claim := range placed(p).Claims {
		devices = append(devices, claim.Devices...)
	}
	return devices
}

// compete turns the answer for a pod that fits into the answer for a pod whose devices
// others get before it. It returns the summary, as a clause.
func (a *answers) compete(e *api.Explanation, p *verdict.Queued, s *target.Target) string {
	e.Outlook = outlookOfQueued(e.Placement)
	e.Verdict, e.Code, e.Placement = api.DoesNotFit, api.PodsCompete, nil
	status := &api.QueueStatus{}
	for _, other := range p.Before {
		if s.Workload && isMember(s, other) {
			// That is one of the pods that were asked about.
			continue
		}
		status.BeforeCount++
		if len(status.Before) < target.MaxPods {
			status.Before = append(status.Before, api.QueuedPod{
				Namespace: other.Pod.Namespace, Name: other.Pod.Name, Priority: ptr.Deref(other.Pod.Spec.Priority, 0),
				Node: other.Reservation.Node, Devices: devicesOf(other),
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

// outlookOfQueued returns the outlook of a pod that fits as long as those before it are
// left out.
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

// namesFirst reports whether the answer says something that holds for the first pod of a kind alone:
// errors of the allocator name the claim.
func (a *answers) namesFirst(kind *verdict.Kind) bool {
	answer := a.byKind[kind]
	names := []string{kind.First.Pod.Name}
	for i := range answer.Claims {
		names = append(names, answer.Claims[i].Name)
	}
	words := strings.FieldsFunc(answer.Summary, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '-' && c != '.' })
	return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(names, strings.TrimRight(word, ".")) })
}

// isMember reports whether a target stands for a pod of the queue.
func isMember(s *target.Target, p *verdict.Queued) bool {
	same := func(pod *corev1.Pod) bool { return pod.Name == p.Pod.Name && pod.Namespace == p.Pod.Namespace }
	return slices.ContainsFunc(s.Users, same) || slices.ContainsFunc(s.New, same)
}

// memberNoun returns what the pods of a target are called.
func memberNoun(s *target.Target) string {
	if s.Group != nil {
		return "member"
	}
	switch s.Object.Kind {
	case snapshot.KindJob, "CronJob", "DaemonSet":
		return "pod"
	default:
		return "replica"
	}
}
