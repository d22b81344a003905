// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// maxExplained is of how many kinds of members that do not fit the reason is looked
// for, besides that of the first one.
const maxExplained = 8

// answerMembers is the explanation of a workload or a PodGroup: that of its first pod
// that does not fit, or else of the first one that waits, with what becomes of all.
func (q *Queue) answerMembers(ctx context.Context, s *target.Target) (*api.Explanation, error) {
	waiting := q.waitingMembers(s)
	of := *s
	var chosen *queuedPod
	for _, p := range waiting {
		if chosen == nil || p.reservation == nil && chosen.reservation != nil {
			chosen = p
		}
	}
	if chosen != nil {
		of.UsePod(q.cluster, chosen.pod)
		of.Hypothetical = chosen.hypothetical
		of.Gang = chosen.gang.known()
	}
	answer, err := q.explainer.Explain(ctx, q.cluster, &of)
	if err != nil {
		return nil, err
	}
	members, err := q.members(ctx, s, waiting, chosen, answer)
	if err != nil {
		return nil, err
	}
	if !s.Sample {
		answer.Members = members
	}
	if chosen == nil || answer.Verdict != api.Fits {
		return answer, nil
	}
	return q.settled(*answer, chosen, s), nil
}

// waitingMembers are the pods of a target that wait, in the order of the queue.
func (q *Queue) waitingMembers(s *target.Target) []*queuedPod {
	var pods []*queuedPod
	for _, pod := range slices.Concat(s.Users, s.New) {
		if p := q.pods[podKey(pod)]; p != nil && snapshot.Waits(pod) {
			pods = append(pods, p)
		}
	}
	slices.SortStableFunc(pods, func(a, b *queuedPod) int { return compareQueued(a.pod, b.pod) })
	return pods
}

// isMember reports whether a pod of the queue is one of those that a target stands for.
func isMember(s *target.Target, p *queuedPod) bool {
	same := func(pod *corev1.Pod) bool { return pod.Name == p.pod.Name && pod.Namespace == p.pod.Namespace }
	return slices.ContainsFunc(s.Users, same) || slices.ContainsFunc(s.New, same)
}

// members counts the pods of a target, and says which of them fit.
func (q *Queue) members(ctx context.Context, s *target.Target, waiting []*queuedPod, chosen *queuedPod, answer *api.Explanation) (*api.Members, error) {
	m := &api.Members{Desired: s.Desired, Existing: len(s.Users), Waiting: len(s.New)}
	kinds := &memberKinds{byKey: map[string]int{}}
	for _, pod := range s.Users {
		switch {
		case q.hasDevices(pod):
			m.WithDevices++
			kinds.add("devices "+lifecycle.WorkloadName(pod), pod, api.MemberKind{Verdict: api.Allocated}, pod.Spec.NodeName)
		case snapshot.Waits(pod):
			m.Waiting++
		case pod.Spec.NodeName != "":
			kinds.add("node "+lifecycle.WorkloadName(pod), pod, api.MemberKind{Verdict: api.Allocated}, pod.Spec.NodeName)
		}
	}
	explained := 0
	for _, p := range waiting {
		switch {
		case q.hasDevices(p.pod):
		case p.reservation != nil:
			m.FitNow++
			kinds.add("fits "+p.kindName(), p.pod, api.MemberKind{Verdict: api.Fits}, p.reservation.Node)
		default:
			key := "not " + p.kindName()
			if _, known := kinds.byKey[key]; known {
				kinds.add(key, p.pod, api.MemberKind{}, "")
				continue
			}
			why := answer
			if chosen == nil || p.kind != chosen.kind {
				if why = p.kind.answer; explained < maxExplained && why.Verdict != api.Fits {
					explained++
					full := q.target(p)
					var err error
					if why, err = q.explainer.Explain(ctx, q.cluster, full); err != nil {
						return nil, err
					}
				}
			}
			kinds.add(key, p.pod, reasonOf(p, why), "")
		}
	}
	m.Kinds = kinds.sorted()
	m.Group = q.memberGroup(s, m)
	return m, nil
}

// reasonOf is why a pod does not fit. One that fits as long as the others are left
// out lacks what they get.
func reasonOf(p *queuedPod, why *api.Explanation) api.MemberKind {
	if p.kind.answer.Verdict == api.Fits {
		return api.MemberKind{Verdict: api.DoesNotFit, Code: api.PodsCompete, Message: "what is available goes to the pods before them"}
	}
	return api.MemberKind{Verdict: why.Verdict, Code: why.Code, Message: why.Summary}
}

func (p *queuedPod) kindName() string { return fmt.Sprintf("%p", p.kind) }

// memberGroup says what becomes of the PodGroup of a target, nil if it has none.
func (q *Queue) memberGroup(s *target.Target, m *api.Members) *api.MemberGroup {
	group := s.Group
	if group == nil {
		group = q.groupOf(s.Pod)
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
	gang := q.gangs[groupKey(group)]
	if gang != nil {
		g.Existing, g.Fit = gang.existing(), max(gang.fit, gang.placed)
	}
	if policy := group.Spec.SchedulingPolicy.Gang; policy != nil {
		g.MinCount = new(policy.MinCount)
		g.Fits = g.Fit >= int(policy.MinCount)
	}
	if gang == nil || gang.parent == nil {
		return g
	}
	g.Fits = gang.top().decided && gang.fits()
	for _, above := range gang.found().Above {
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

// sorted has those that do not fit first, then those that do, then those that have
// their devices.
func (k *memberKinds) sorted() []api.MemberKind {
	rank := func(kind api.MemberKind) int {
		return slices.Index([]api.Verdict{api.Fits, api.Allocated}, kind.Verdict)
	}
	slices.SortStableFunc(k.list, func(a, b api.MemberKind) int { return cmp.Compare(rank(a), rank(b)) })
	return k.list
}

// Fitting is what becomes of the members of a target.
type Fitting struct {
	// Total counts them, Fit those that have devices or get them.
	Fit, Total int
	// GroupFits is set if their PodGroup is scheduled, or there is none.
	GroupFits bool
	// First is what the first of them gets, nil if none does; Nodes counts the nodes
	// of all.
	First *api.Placement
	Nodes int
}

// All reports whether all of them are scheduled.
func (f Fitting) All() bool { return f.Fit == f.Total && f.GroupFits }

// Fitting says what became of the members of a target, after all of the queue was
// decided.
func (q *Queue) Fitting(s *target.Target) Fitting {
	m := &api.Members{}
	f := Fitting{Total: len(s.Users) + len(s.New), GroupFits: true}
	nodes := map[string]bool{}
	for _, pod := range s.Users {
		if q.hasDevices(pod) || !snapshot.Waits(pod) {
			f.Fit++
		}
	}
	for _, p := range q.waitingMembers(s) {
		if p.reservation == nil || q.hasDevices(p.pod) {
			continue
		}
		f.Fit++
		m.FitNow++
		nodes[p.reservation.Node] = true
		if f.First == nil {
			f.First = placementOf(p)
		}
	}
	f.Nodes = len(nodes)
	if group := q.memberGroup(s, m); group != nil {
		f.GroupFits = group.Fits
	}
	return f
}

// memberNoun is what the pods of a target are called.
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

// hasDevices reports whether all claims of a pod are allocated.
func (q *Queue) hasDevices(pod *corev1.Pod) bool {
	claims := q.claimsOf(pod)
	return len(claims) > 0 && !slices.ContainsFunc(claims, func(pc cluster.PodClaim) bool {
		return pc.Claim == nil || pc.Claim.Status.Allocation == nil || errors.Is(pc.Problem, cluster.ErrClaimNotOwned)
	})
}
