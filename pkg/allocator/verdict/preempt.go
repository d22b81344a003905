// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Preemption for devices, as KEP-5690 proposes it; no release up to 1.37 has it. A pod
// that fits nowhere takes the place of pods of lower priority on one node. On each node,
// as many of them stay as can; of the nodes, the one is taken where the highest priority
// of those that leave is the lowest, then where their priorities are the lowest in sum,
// then where they are the fewest (pickOneNodeForPreemption in
// pkg/scheduler/framework/preemption of Kubernetes v1.37.1). Pods of PodGroups neither
// preempt others nor are preempted, and claims are released only if all of their devices
// belong to one node.

// mostCandidates is on how many nodes pods are chosen that could leave, as in the
// scheduler (minCandidateNodesAbsolute of DefaultPreemptionArgs).
const mostCandidates = 100

// compareCandidates orders nodes: first the node whose leaving pods matter the least.
func compareCandidates(a, b *candidate) int {
	return cmp.Or(compareVictims(a.victims, b.victims), cmp.Compare(a.node.Name, b.node.Name))
}

func compareVictims(a, b []*corev1.Pod) int {
	highest := func(pods []*corev1.Pod) int64 {
		most := int64(-1) << 32
		for _, pod := range pods {
			most = max(most, priorityOf(pod))
		}
		return most
	}
	// The scheduler adds this to each, so that two are always more than one.
	sum := func(pods []*corev1.Pod) (total int64) {
		for _, pod := range pods {
			total += priorityOf(pod) + 1<<31
		}
		return total
	}
	// Of the pods with the highest priority, the first that started.
	started := func(pods []*corev1.Pod) time.Time {
		var first time.Time
		for _, pod := range pods {
			if at := pod.Status.StartTime; at != nil && priorityOf(pod) == highest(pods) && (first.IsZero() || at.Time.Before(first)) {
				first = at.Time
			}
		}
		return first
	}
	return cmp.Or(
		cmp.Compare(highest(a), highest(b)), cmp.Compare(sum(a), sum(b)), cmp.Compare(len(a), len(b)), started(b).Compare(started(a)),
	)
}

func priorityOf(pod *corev1.Pod) int64 { return int64(ptr.Deref(pod.Spec.Priority, 0)) }

// preemption is the preemption for a pod that fits nowhere.
type preemption struct {
	*Queue
	p *Queued
}

// preempt finds a node for the pod, and takes the pods away there that are in its way.
func (q *preemption) preempt(ctx context.Context) error {
	kind := q.p.Kind
	if !q.mayPreempt() {
		return nil
	}
	if !kind.searched {
		kind.searched = true
		var err error
		if kind.candidates, err = q.candidates(ctx); err != nil {
			return err
		}
	}
	for len(kind.candidates) > 0 {
		best := kind.candidates[0]
		kind.candidates = kind.candidates[1:]
		// What was reserved since may be in its way, too.
		now, err := q.candidateOn(ctx, q.After, best.node)
		if err != nil {
			return err
		}
		if now == nil {
			continue
		}
		if len(kind.candidates) > 0 && compareCandidates(now, kind.candidates[0]) > 0 {
			kind.propose(now)
			continue
		}
		took, err := q.take(ctx, now)
		if err != nil || took {
			return err
		}
	}
	return nil
}

// propose adds a candidate to the candidates of a kind.
func (k *Kind) propose(c *candidate) {
	at, _ := slices.BinarySearchFunc(k.candidates, c, compareCandidates)
	k.candidates = slices.Insert(k.candidates, at, c)
}

// mayPreempt reports whether the scheduler would look for pods that could leave.
func (q *preemption) mayPreempt() bool {
	p, outcome := q.p, q.p.Kind.Verdict.Outcome
	if !q.Preempts || p.Reservation != nil || p.Pod.Spec.SchedulingGroup != nil || ptr.Deref(p.Pod.Spec.PreemptionPolicy, corev1.PreemptLowerPriority) == corev1.PreemptNever {
		return false
	}
	if name := p.Pod.Spec.SchedulerName; name != "" && name != corev1.DefaultSchedulerName {
		return false
	}
	return outcome == api.Fits || outcome == api.DoesNotFit
}

// candidates returns the nodes where the pod fits once pods of lower priority have left,
// the best one first.
func (q *preemption) candidates(ctx context.Context) ([]*candidate, error) {
	lower := map[string][]*corev1.Pod{}
	var all []*corev1.Pod
	for _, pod := range q.After.Snapshot.Pods {
		if q.mayLeave(pod) {
			lower[pod.Spec.NodeName], all = append(lower[pod.Spec.NodeName], pod), append(all, pod)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	var nodes []*candidate
	known, _ := q.After.Nodes.All()
	for _, node := range known {
		if victims := lower[node.Name]; len(victims) > 0 {
			nodes = append(nodes, &candidate{node, victims})
		}
	}
	slices.SortFunc(nodes, compareCandidates)
	without := q.After.Amended(whatif.Delete(q.After.Snapshot, all))
	attempt := allocator.NewAttempt(without, q.p.Pod)
	var found []*candidate
	// The nodes that are looked at next are taken out of a large cluster together.
	var near *cluster.Cluster
	nearEnd := 0
	for i, c := range nodes {
		if len(found) == mostCandidates {
			break
		}
		r, err := attempt.On(ctx, c.node)
		var undecided *allocator.UndecidedError
		if err != nil && !errors.As(err, &undecided) {
			return nil, err
		}
		if r == nil {
			continue
		}
		if i >= nearEnd {
			nearEnd = min(i+mostCandidates, len(nodes))
			near = q.around(q.After, nodes[i:nearEnd])
		}
		if c, err = q.candidateOn(ctx, near, c.node); err != nil {
			return nil, err
		}
		if c != nil {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, compareCandidates)
	return found, nil
}

// candidateOn chooses the pods on a node of a cluster that have to leave for the pod, nil
// if that does not help.
func (q *preemption) candidateOn(ctx context.Context, s *cluster.Cluster, node *corev1.Node) (*candidate, error) {
	here := q.around(s, []*candidate{{node: node}})
	var lower []*corev1.Pod
	for _, pod := range here.Snapshot.Pods {
		if pod.Spec.NodeName == node.Name && q.mayLeave(pod) {
			lower = append(lower, pod)
		}
	}
	victims, err := allocator.Victims(ctx, here, q.p.Pod, node, lower)
	if err != nil || len(victims) == 0 {
		return nil, err
	}
	return &candidate{node, victims}, nil
}

// around returns a cluster with some of its nodes and what matters to the pod there: all of it, where
// pods on other nodes do.
func (q *preemption) around(s *cluster.Cluster, list []*candidate) *cluster.Cluster {
	if q.dependsOnOthers(q.p.Pod) {
		return s
	}
	nodes := make([]*corev1.Node, 0, len(list))
	for _, c := range list {
		nodes = append(nodes, c.node)
	}
	var own []*resourceapi.ResourceClaim
	for _, pc := range s.Claims.OfPod(q.p.Pod) {
		if pc.Claim != nil && s.Snapshot.Claim(pc.Claim.Namespace, pc.Claim.Name) != nil {
			own = append(own, pc.Claim)
		}
	}
	return s.Amended(whatif.Local(s.Snapshot, nodes).With(&snapshot.Snapshot{Claims: own}))
}

// mayLeave reports whether another pod can be preempted.
func (q *preemption) mayLeave(pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" || pod.Spec.SchedulingGroup != nil || priorityOf(pod) >= priorityOf(q.p.Pod) || snapshot.Finished(pod) {
		return false
	}
	return !slices.ContainsFunc(q.After.Claims.OfPod(pod), func(pc cluster.PodClaim) bool {
		return pc.Claim != nil && pc.Claim.Status.Allocation != nil && slices.ContainsFunc(pc.Claim.Status.Allocation.Devices.Results, func(r resourceapi.DeviceRequestAllocationResult) bool {
			device := q.After.Pools.Device(cluster.DeviceID{Driver: r.Driver, Pool: r.Pool, Device: r.Device})
			return device != nil && ptr.Deref(device.Slice.Spec.NodeName, "") == ""
		})
	})
}

// take gives the pod the place of others, and reports whether it fits there. Those that
// are created again wait from then on.
func (q *preemption) take(ctx context.Context, c *candidate) (bool, error) {
	p := q.p
	var gone, again []*corev1.Pod
	for _, victim := range c.victims {
		if metav1.GetControllerOfNoCopy(victim) == nil {
			gone = append(gone, victim)
		} else {
			again = append(again, victim)
		}
	}
	after := q.After.Amended(whatif.Delete(q.After.Snapshot, gone))
	after = after.Amended(whatif.Evict(after.Snapshot, again))
	r, err := allocator.NewAttempt(after, p.Pod).On(ctx, c.node)
	var undecided *allocator.UndecidedError
	if err != nil && !errors.As(err, &undecided) {
		return false, err
	}
	if r == nil {
		return false, nil
	}
	q.After = after.Amended(whatif.Reserve(after.Snapshot, *r))
	p.Reservation, p.Undecided, p.Before, p.Preempts = r, nil, nil, c.victims
	for _, victim := range again {
		q.requeue(q.After.Snapshot.Pod(victim.Namespace, victim.Name))
	}
	// What those that left had may be more than the pod takes.
	q.reopened = append(q.reopened, c.node)
	for _, kind := range q.kinds.byKey {
		kind.reopen(c.node)
	}
	// An equal pod looks there first.
	p.Kind.propose(&candidate{node: c.node})
	return true, nil
}

// requeue adds a preempted pod, behind the others of its priority.
func (q *preemption) requeue(pod *corev1.Pod) {
	p := &Queued{Pod: pod, Asked: true, PreemptedBy: q.p}
	q.pods[podKey(pod)] = p
	q.kinds.claims[pod] = q.After.Claims.OfPod(pod)
	at, _ := slices.BinarySearchFunc(q.order, p, compareQueued)
	q.order = slices.Insert(q.order, at, p)
}
