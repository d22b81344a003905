// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// answer returns the explanation of a target after all of the queue was decided. Targets
// that stand for pods of a workload are explained as deeply as is asked for.
func (a *answers) answer(ctx context.Context, s *target.Target, d depth) (*api.Explanation, error) {
	if s.Workload {
		return a.answerMembers(ctx, s, d)
	}
	p := a.Of(s.Pod)
	switch {
	case p.Member:
		// The answers known for its kind are answers for a pod without its gang.
		of := *s
		of.Gang = p.Gang()
		answer, _, err := explainTarget(ctx, a.cluster, &of, d)
		if err != nil || answer.Verdict != api.Fits {
			return answer, err
		}
		return a.settled(*answer, p, s), nil
	case p.Kind.First == p:
		return a.settled(*a.byKind[p.Kind], p, s), nil
	default:
		return a.settled(*a.shared(p, s), p, s), nil
	}
}

// maxExplained is for how many kinds of members that do not fit the reason is looked for,
// besides the first one.
const maxExplained = 8

// answerMembers returns the explanation of a workload or a PodGroup: of its first pod that
// does not fit, or else of the first waiting one, with the outcome of all.
func (a *answers) answerMembers(ctx context.Context, s *target.Target, d depth) (*api.Explanation, error) {
	waiting := a.Members(s)
	of := *s
	var chosen *verdict.Queued
	for _, p := range waiting {
		if chosen == nil || p.Reservation == nil && chosen.Reservation != nil {
			chosen = p
		}
	}
	if chosen != nil {
		of.UsePod(a.cluster, chosen.Pod)
		of.Hypothetical = chosen.Hypothetical
		of.Gang = chosen.Gang()
	}
	answer, _, err := explainTarget(ctx, a.cluster, &of, d)
	if err != nil {
		return nil, err
	}
	members, err := a.members(ctx, s, waiting, chosen, answer)
	if err != nil {
		return nil, err
	}
	if !s.Sample {
		answer.Members = members
	}
	if chosen == nil || answer.Verdict != api.Fits {
		return answer, nil
	}
	return a.settled(*answer, chosen, s), nil
}

// members counts the pods of a target, and says which of them fit.
func (a *answers) members(ctx context.Context, s *target.Target, waiting []*verdict.Queued, chosen *verdict.Queued, answer *api.Explanation) (*api.Members, error) {
	m := &api.Members{Desired: s.Desired, Existing: len(s.Users), Waiting: len(s.New)}
	kinds := &memberKinds{byKey: map[string]int{}}
	for _, pod := range s.Users {
		switch {
		case a.HasDevices(pod):
			m.WithDevices++
			kinds.add("devices "+whatif.Owner(pod).Argument(), pod, api.MemberKind{Verdict: api.Allocated}, pod.Spec.NodeName)
		case snapshot.Waits(pod):
			m.Waiting++
		case pod.Spec.NodeName != "":
			kinds.add("node "+whatif.Owner(pod).Argument(), pod, api.MemberKind{Verdict: api.Allocated}, pod.Spec.NodeName)
		}
	}
	explained := 0
	for _, p := range waiting {
		switch {
		case a.HasDevices(p.Pod):
		case p.Reservation != nil:
			m.FitNow++
			kinds.add("fits "+kindName(p), p.Pod, api.MemberKind{Verdict: api.Fits}, p.Reservation.Node)
		default:
			key := "not " + kindName(p)
			if _, known := kinds.byKey[key]; known {
				kinds.add(key, p.Pod, api.MemberKind{}, "")
				continue
			}
			why := answer
			if chosen == nil || p.Kind != chosen.Kind {
				var err error
				if explained < maxExplained && p.Kind.Verdict.Outcome != api.Fits {
					explained++
					why, _, err = explainTarget(ctx, a.cluster, a.TargetOf(p), withAdvice)
				} else {
					why, err = a.of(ctx, p.Kind, reasonsOnly)
				}
				if err != nil {
					return nil, err
				}
			}
			kinds.add(key, p.Pod, reasonOf(p, why), "")
		}
	}
	m.Kinds = kinds.sorted()
	m.Group = a.memberGroup(s, m)
	return m, nil
}

// reasonOf returns why a pod does not fit. One that fits as long as the others are left out
// lacks what they get.
func reasonOf(p *verdict.Queued, why *api.Explanation) api.MemberKind {
	if p.Kind.Verdict.Outcome == api.Fits {
		return api.MemberKind{Verdict: api.DoesNotFit, Code: api.PodsCompete, Message: "what is available goes to the pods before them"}
	}
	return api.MemberKind{Verdict: why.Verdict, Code: why.Code, Message: why.Summary}
}

func kindName(p *verdict.Queued) string { return fmt.Sprintf("%p", p.Kind) }

// memberGroup says what becomes of the PodGroup of a target, nil if it has none.
func (a *answers) memberGroup(s *target.Target, m *api.Members) *api.MemberGroup {
	group := s.Group
	if group == nil {
		group = verdict.GroupOf(a.cluster, s.Pod)
	}
	if group == nil {
		return nil
	}
	g := &api.MemberGroup{
		Name: group.Name, Existing: len(s.Users) + len(s.New), Fit: m.FitNow, Fits: true,
	}
	if parent := group.Spec.ParentCompositePodGroupName; parent != nil {
		g.Parent = *parent
	}
	for i := range group.Spec.ResourceClaims {
		g.Claims = append(g.Claims, group.Spec.ResourceClaims[i].Name)
	}
	for _, pod := range s.Users {
		if !snapshot.Waits(pod) {
			g.Fit++
		}
	}
	gang := a.GangOf(group)
	if gang != nil {
		g.Existing, g.Fit = gang.Existing, gang.Fit
	}
	if policy := group.Spec.SchedulingPolicy.Gang; policy != nil {
		g.MinCount = new(policy.MinCount)
		g.Fits = g.Fit >= int(policy.MinCount)
	}
	if gang == nil || len(gang.Above) == 0 {
		return g
	}
	g.Fits = gang.Fits
	for _, above := range gang.Above {
		c := api.CompositeGroup{Name: above.Tree.Name(), Groups: len(above.Tree.Children), Fit: above.Fit, Fits: above.Fit >= above.Tree.MinCount}
		if policy := above.Tree.Composite.Spec.SchedulingPolicy.Gang; policy != nil {
			c.MinGroupCount = new(policy.MinGroupCount)
		}
		g.Composites = append(g.Composites, c)
	}
	return g
}

// memberKinds collects pods with one answer.
type memberKinds struct {
	list  []api.MemberKind
	nodes []map[string]bool
	byKey map[string]int
}

// add counts a pod of a kind, which is described when the first pod of it is added.
func (k *memberKinds) add(key string, pod *corev1.Pod, described api.MemberKind, node string) {
	at, known := k.byKey[key]
	if !known {
		at = len(k.list)
		k.byKey[key] = at
		k.list, k.nodes = append(k.list, described), append(k.nodes, map[string]bool{})
	}
	kind := &k.list[at]
	kind.Count++
	if len(kind.Names) < target.MaxPods {
		kind.Names = append(kind.Names, pod.Name)
	}
	if node == "" || k.nodes[at][node] {
		return
	}
	k.nodes[at][node] = true
	kind.NodeCount++
	if len(kind.Nodes) < target.MaxPods {
		kind.Nodes = append(kind.Nodes, node)
	}
}

// sorted returns the kinds that do not fit first, then the kinds that do, then the kinds
// that have their devices.
func (k *memberKinds) sorted() []api.MemberKind {
	rank := func(kind api.MemberKind) int {
		return slices.Index([]api.Verdict{api.Fits, api.Allocated}, kind.Verdict)
	}
	slices.SortStableFunc(k.list, func(a, b api.MemberKind) int { return cmp.Compare(rank(a), rank(b)) })
	return k.list
}

// fitting is the outcome for the members of a target.
type fitting struct {
	// Total counts them, Fit those that have devices or get them.
	Fit, Total int
	// GroupFits is set if their PodGroup is scheduled, or there is none.
	GroupFits bool
	// First is the placement of the first of them, nil if none has one; Nodes counts the
	// nodes of all.
	First *api.Placement
	Nodes int
}

// all reports whether all of them are scheduled.
func (f fitting) all() bool { return f.Fit == f.Total && f.GroupFits }

// fitting says what became of the members of a target, after all of the queue was
// decided.
func (a *answers) fitting(s *target.Target) fitting {
	m := &api.Members{}
	f := fitting{Total: len(s.Users) + len(s.New), GroupFits: true}
	nodes := map[string]bool{}
	for _, pod := range s.Users {
		if a.HasDevices(pod) || !snapshot.Waits(pod) {
			f.Fit++
		}
	}
	for _, p := range a.Members(s) {
		if p.Reservation == nil || a.HasDevices(p.Pod) {
			continue
		}
		f.Fit++
		m.FitNow++
		nodes[p.Reservation.Node] = true
		if f.First == nil {
			f.First = placed(p)
		}
	}
	f.Nodes = len(nodes)
	if group := a.memberGroup(s, m); group != nil {
		f.GroupFits = group.Fits
	}
	return f
}
