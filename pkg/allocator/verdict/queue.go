// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Options say how a queue is decided.
type Options struct {
	// Planned asks for everything that becomes of pods: also of those whose claims are allocated.
	Planned bool
	// Preempts has pods that fit nowhere take the place of pods of lower priority, as KEP-5690
	// proposes it. Pods that are created again wait from then on.
	Preempts bool
	// Shares lets pods share a kind if they differ only in names: of their namespaces, of
	// their owners, and of claims that no other pod of Waiting uses. Pods that nobody asks
	// about always do. If Waiting is nil, it is the waiting pods of the cluster.
	Shares  bool
	Waiting []*corev1.Pod
}

// Queue decides pods one after another.
type Queue struct {
	Options
	cluster *cluster.Cluster
	// After is the cluster with the reservations.
	After *cluster.Cluster
	// claimUsers counts the pods that use a claim by its name.
	claimUsers map[types.NamespacedName]int
	// order has the pods of the queue, the first one first.
	order []*Queued
	pods  map[types.NamespacedName]*Queued
	kinds map[string]*Kind
	// claims has the claims of pods in the cluster as it is, as far as they were asked for.
	claims map[*corev1.Pod][]cluster.PodClaim
	// gangs are the gangs of members of targets, nil for a gang that the scheduler does not
	// try.
	gangs map[types.NamespacedName]*gang
	// selected has the keys of the labels by which pods select other pods.
	selected map[string]bool
	// reopened are the nodes where pods have taken the place of others.
	reopened []*corev1.Node
}

// Queued is a pod of the queue and what becomes of it.
type Queued struct {
	Pod          *corev1.Pod
	Hypothetical bool
	// Kind is the kind that equal pods share, nil until it is known.
	Kind *Kind
	// Asked is set if the pod has to be decided, Target if it is a target by itself; opts
	// are the options of the target.
	Asked, Target bool
	opts          target.Options
	// Member is set if it is decided without the rest of its gang; gang is that which it
	// is decided with, nil for none.
	Member bool
	gang   *gang
	// Reservation is its reservation, nil if it does not fit.
	Reservation *whatif.Reservation
	// Before are the pods that get the devices that it could have, if it fits without them.
	Before []*Queued
	// Undecided is why it is not known whether it fits after others were placed.
	Undecided error
	// Preempts are the pods whose place it takes; PreemptedBy takes the place of this one.
	Preempts    []*corev1.Pod
	PreemptedBy *Queued
}

// Gets reports whether a pod gets a node: in a gang, only if enough of it do.
func (p *Queued) Gets() bool {
	return p.Reservation != nil && (p.gang == nil || p.gang.fits())
}

// Kind has the common facts of pods that are equal to the scheduler.
type Kind struct {
	// First is the pod that was decided for all of them, and Verdict its verdict in the cluster as
	// it is, nil until it is known: without the devices of the question.
	First   *Queued
	Verdict *Verdict
	// key is the signature of the pods.
	key string
	// nodes are the nodes where a pod of the kind may fit after the reservations.
	nodes []*corev1.Node
	// before are the pods that took the last of them.
	before []*Queued
	// candidates are nodes where others can be preempted, the best one first, once
	// searched is set.
	candidates []*candidate
	searched   bool
}

// NewQueue returns an empty queue.
func NewQueue(c *cluster.Cluster, opts Options) *Queue {
	q := &Queue{
		Options: opts, cluster: c, After: c,
		kinds: map[string]*Kind{}, claims: map[*corev1.Pod][]cluster.PodClaim{}, pods: map[types.NamespacedName]*Queued{}, gangs: map[types.NamespacedName]*gang{},
		selected: map[string]bool{},
	}
	waiting := opts.Waiting
	for _, pod := range c.Snapshot.Pods {
		cluster.SelectedLabels(pod, q.selected)
		if opts.Waiting == nil && snapshot.Waits(pod) {
			waiting = append(waiting, pod)
		}
	}
	q.claimUsers = claimUsers(waiting)
	return q
}

// Any reports whether there is a pod in the queue.
func (q *Queue) Any() bool { return len(q.pods) > 0 }

// Add puts the pods of a target into the queue.
func (q *Queue) Add(s *target.Target) {
	if !s.Workload {
		p := q.add(s.Pod, s.Hypothetical)
		p.Asked, p.Target, p.opts = true, true, s.Options
		return
	}
	for _, pod := range s.New {
		q.AddPod(pod)
	}
	for _, pod := range s.Users {
		if snapshot.Waits(pod) {
			q.AddPod(target.WithClassPriority(q.cluster.Snapshot, pod))
		}
	}
}

// AddPod adds a pod of a workload or a PodGroup. If that is a gang, all of its pods are decided at
// the same time.
func (q *Queue) AddPod(pod *corev1.Pod) {
	p := q.add(pod, target.Hypothetical(pod))
	p.Asked = true
	q.joinGang(p)
}

func (q *Queue) add(pod *corev1.Pod, hypothetical bool) *Queued {
	key := podKey(pod)
	if q.pods[key] == nil {
		q.pods[key] = &Queued{Pod: pod, Hypothetical: hypothetical}
		q.order = append(q.order, q.pods[key])
		cluster.SelectedLabels(pod, q.selected)
	}
	return q.pods[key]
}

// Of returns a pod of the queue, nil if it is not in it.
func (q *Queue) Of(pod *corev1.Pod) *Queued { return q.pods[podKey(pod)] }

// Pods returns the pods of the queue, the first one first.
func (q *Queue) Pods() []*Queued { return q.order }

// claimsOf returns the claims of a pod in the cluster as it is, which nobody may change.
func (q *Queue) claimsOf(pod *corev1.Pod) []cluster.PodClaim {
	claims, known := q.claims[pod]
	if !known {
		claims = q.cluster.Claims.OfPod(pod)
		q.claims[pod] = claims
	}
	return claims
}

func podKey(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// Kinds returns the kinds of the pods in the queue, in its order. Callers that know the
// verdict about a kind pass it to [Queue.Know].
func (q *Queue) Kinds() []*Kind {
	slices.SortStableFunc(q.order, compareQueued)
	var kinds []*Kind
	seen := map[*Kind]bool{}
	for _, p := range q.order {
		if q.sortKind(p); !seen[p.Kind] {
			seen[p.Kind] = true
			kinds = append(kinds, p.Kind)
		}
	}
	return kinds
}

// Apart gives each pod of a kind but the first one a kind of its own, and returns these.
func (q *Queue) Apart(kind *Kind) []*Kind {
	var own []*Kind
	for _, p := range q.order {
		if p.Kind == kind && p != kind.First {
			p.Kind = &Kind{First: p}
			own = append(own, p.Kind)
		}
	}
	return own
}

// Decide goes through the queue. As long as nothing that was asked about fits, nobody can take
// anything from it, and the others are left out. If Planned is set, pods that others may have made
// room for are tried again: a pod that keeps near to other pods, or that shares a claim with one.
func (q *Queue) Decide(ctx context.Context) error {
	fits := false
	for _, kind := range q.Kinds() {
		if err := q.decideKind(ctx, kind); err != nil {
			return err
		}
		fits = fits || q.placeable(kind)
	}
	if !fits && !q.Preempts {
		return nil
	}
	for _, pod := range q.cluster.Snapshot.Pods {
		if snapshot.Waits(pod) && len(pod.Spec.SchedulingGates) == 0 && len(q.claimsOf(pod)) > 0 {
			q.add(target.WithClassPriority(q.cluster.Snapshot, pod), false)
		}
	}
	slices.SortStableFunc(q.order, compareQueued)
	// Pods that are preempted are added behind the decided pod.
	for at := 0; at <= q.last(); at++ {
		if err := q.decide(ctx, q.order[at]); err != nil {
			return err
		}
	}
	if !q.Planned {
		return nil
	}
	return q.retry(ctx)
}

// retry tries pods again until none of them fits that others have made room for.
func (q *Queue) retry(ctx context.Context) error {
	for placed := true; placed; {
		placed = false
		for _, p := range q.order {
			if p.Reservation != nil || p.gang != nil || len(p.Pod.Spec.SchedulingGates) > 0 || !q.dependsOnOthers(p.Pod) || p.Kind.Verdict.Outcome != api.Fits && p.Kind.Verdict.Outcome != api.DoesNotFit {
				continue
			}
			r, err := allocator.Place(ctx, q.After, p.Pod, nil)
			if err != nil && ctx.Err() != nil {
				return err
			}
			if r == nil {
				continue
			}
			q.After = q.After.Amended(whatif.Reserve(q.After.Snapshot, *r))
			p.Reservation, p.Before, placed = r, nil, true
		}
	}
	return nil
}

// dependsOnOthers reports whether one of the pods that were placed can have made room
// for this one.
func (q *Queue) dependsOnOthers(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	return a != nil && a.PodAffinity != nil || len(pod.Spec.TopologySpreadConstraints) > 0 ||
		slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool {
			if c.ResourceClaimName == nil {
				return false
			}
			before, after := q.cluster.Snapshot.Claim(pod.Namespace, *c.ResourceClaimName), q.After.Snapshot.Claim(pod.Namespace, *c.ResourceClaimName)
			return before != after && after != nil && after.Status.Allocation != nil
		})
}

// last returns the place in the queue of the last pod that has to be decided.
func (q *Queue) last() int {
	for at := len(q.order) - 1; at > 0; at-- {
		if q.order[at].Asked {
			return at
		}
	}
	return 0
}

// decide finds out what the next pod of the queue gets.
func (q *Queue) decide(ctx context.Context, p *Queued) error {
	q.sortKind(p)
	if err := q.decideKind(ctx, p.Kind); err != nil {
		return err
	}
	if p.Kind.Verdict.Life.Stage == api.StageQueueing || len(p.Pod.Spec.SchedulingGates) > 0 {
		return nil
	}
	fits := q.placeable(p.Kind)
	switch {
	case p.gang != nil && fits:
		return q.decideGang(ctx, p.gang.top())
	case p.gang == nil && (fits || p.Kind.Verdict.Outcome == api.DoesNotFit && len(p.Kind.nodes) > 0):
		if err := q.reserve(ctx, p); err != nil {
			return err
		}
	}
	return (&preemption{q, p}).preempt(ctx)
}

// compareQueued returns the order of the scheduling queue (Less of the plugin
// PrioritySort): the higher priority first, then who was added to the queue first. When
// that was is known to the scheduler alone; here it is when the pod was created. What does
// not exist yet comes last.
func compareQueued(a, b *Queued) int { return comparePods(a.Pod, b.Pod) }

func comparePods(a, b *corev1.Pod) int {
	created := func(pod *corev1.Pod) time.Time {
		if pod.CreationTimestamp.IsZero() {
			return time.Unix(1<<40, 0)
		}
		return pod.CreationTimestamp.Time
	}
	return cmp.Or(
		cmp.Compare(ptr.Deref(b.Spec.Priority, 0), ptr.Deref(a.Spec.Priority, 0)),
		created(a).Compare(created(b)),
		cmp.Compare(a.Namespace, b.Namespace),
		english.CompareNames(a.Name, b.Name),
	)
}

// sortKind finds the pods that a pod is equal to. A target comes before others as the first of its
// kind.
func (q *Queue) sortKind(p *Queued) {
	if p.Kind == nil {
		key := q.signature(p)
		if p.Member {
			key = "member " + key
		}
		if p.PreemptedBy != nil {
			// It is decided in another cluster.
			key = "preempted " + key
		}
		if q.kinds[key] == nil {
			q.kinds[key] = &Kind{First: p, key: key}
		}
		p.Kind = q.kinds[key]
	}
	if kind := p.Kind; kind.Verdict == nil && p.Target && !kind.First.Target {
		kind.First = p
	}
}

// decideKind decides the first pod of a kind, in the cluster as it is, unless that is known.
func (q *Queue) decideKind(ctx context.Context, kind *Kind) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	if kind.Verdict != nil {
		return nil
	}
	p := kind.First
	besides := !p.Asked && p.PreemptedBy == nil && !q.Shares
	if besides {
		if known := memoryOf(q.cluster).get(kind.key); known != nil {
			q.Know(kind, known)
			return nil
		}
	}
	asked := q.ClusterOf(kind)
	start := time.Now()
	selectors, back := asked.Evaluators.Lend()
	defer back()
	v, err := Decide(ctx, asked, q.TargetOf(p), selectors)
	if err != nil {
		return fmt.Errorf("explain pod %s/%s: %w", p.Pod.Namespace, p.Pod.Name, err)
	}
	q.Know(kind, v)
	if besides {
		memoryOf(q.cluster).add(kind.key, remembered{kind.Verdict, p.Pod.Namespace, q.cluster.Snapshot.Now(), time.Since(start)})
	}
	return nil
}

// ClusterOf returns the cluster in which the pods of a kind are decided: the one as it is,
// but for pods that have left a node since.
func (q *Queue) ClusterOf(kind *Kind) *cluster.Cluster {
	if kind.First.PreemptedBy != nil {
		return q.After
	}
	return q.cluster
}

// Know takes the verdict about the first pod of a kind, in its cluster.
func (q *Queue) Know(kind *Kind, v *Verdict) {
	kind.Verdict, kind.nodes = v.brief(), nil
	defer func() {
		for _, node := range q.reopened {
			kind.reopen(node)
		}
	}()
	if !q.placeable(kind) {
		return
	}
	nodes, _ := q.cluster.Nodes.All()
	byName := make(map[string]*corev1.Node, len(nodes))
	for _, node := range nodes {
		byName[node.Name] = node
	}
	add := func(name string) {
		if node := byName[name]; node != nil {
			kind.nodes = append(kind.nodes, node)
			delete(byName, name)
		}
	}
	// What the allocator picks comes first.
	if v.Placement != nil {
		add(v.Placement.Node.Name)
	}
	for _, name := range v.fits {
		add(name)
	}
}

// placeable reports whether pods of a kind get a node as long as there are available
// devices.
func (q *Queue) placeable(kind *Kind) bool {
	return kind.Verdict.Outcome == api.Fits || q.Planned && kind.Verdict.Outcome == api.Allocated
}

// TargetOf returns a pod of the queue as the target of a question in the cluster where it
// is decided.
func (q *Queue) TargetOf(p *Queued) *target.Target {
	s := &target.Target{
		Options: target.Options{Object: api.RefTo(api.KindPod, p.Pod), AllRemedies: p.opts.AllRemedies}, Hypothetical: p.Hypothetical, Member: p.Member,
	}
	if !p.Hypothetical {
		s.Users = []*corev1.Pod{p.Pod}
	}
	c := q.cluster
	if p.PreemptedBy != nil {
		c = q.After
	}
	s.UsePod(c, p.Pod)
	return s
}

// reserve gives the pod the first node of its kind where it still fits. A node where an
// equal pod did not fit is left out from then on: what is reserved only grows.
func (q *Queue) reserve(ctx context.Context, p *Queued) error {
	attempt := allocator.NewAttempt(q.After, p.Pod)
	for len(p.Kind.nodes) > 0 {
		reservation, err := attempt.On(ctx, p.Kind.nodes[0])
		var undecided *allocator.UndecidedError
		if err != nil && !errors.As(err, &undecided) {
			return err
		}
		if undecided != nil && p.Undecided == nil {
			p.Undecided = err
		}
		if reservation != nil {
			p.Reservation, p.Undecided = reservation, nil
			q.After = q.After.Amended(whatif.Reserve(q.After.Snapshot, *reservation))
			return nil
		}
		p.Kind.nodes = p.Kind.nodes[1:]
	}
	if p.Kind.before == nil && q.placeable(p.Kind) {
		p.Kind.before = q.takers(p.Kind)
	}
	p.Before = p.Kind.before
	return nil
}

// takers returns the pods that get the devices that pods of a kind could have: equal pods,
// pods that get the very devices that were picked for it or, if there are neither, pods
// that get something else of the nodes where it fits.
func (q *Queue) takers(kind *Kind) []*Queued {
	picked := map[string]bool{}
	if placement := kind.Verdict.Placement; placement != nil {
		for i := range placement.Allocations {
			addDevices(picked, &placement.Allocations[i])
		}
	}
	fits := map[string]bool{}
	for _, name := range kind.Verdict.fits {
		fits[name] = true
	}
	var takers, neighbors []*Queued
	for _, p := range q.order {
		if !p.Gets() {
			continue
		}
		there := fits[p.Reservation.Node]
		if there {
			neighbors = append(neighbors, p)
		}
		got := map[string]bool{}
		for i := range p.Reservation.Claims {
			if allocation := p.Reservation.Claims[i].Allocation; allocation != nil {
				addDevices(got, allocation)
			}
		}
		taken := false
		for id := range got {
			taken = taken || picked[id]
		}
		if there && p.Kind == kind || taken {
			takers = append(takers, p)
		}
	}
	if len(takers) > 0 {
		return takers
	}
	return neighbors
}

// addDevices adds the devices of an allocation to a set.
func addDevices(set map[string]bool, allocation *resourceapi.AllocationResult) {
	for _, r := range allocation.Devices.Results {
		set[r.Driver+"/"+r.Pool+"/"+r.Device] = true
	}
}

// Members lists the pods of a target that wait, in the order of the queue.
func (q *Queue) Members(s *target.Target) []*Queued {
	var pods []*Queued
	for _, pod := range slices.Concat(s.Users, s.New) {
		if p := q.Of(pod); p != nil && snapshot.Waits(pod) {
			pods = append(pods, p)
		}
	}
	slices.SortStableFunc(pods, compareQueued)
	return pods
}

// HasDevices reports whether all claims of a pod are allocated.
func (q *Queue) HasDevices(pod *corev1.Pod) bool {
	claims := q.claimsOf(pod)
	return len(claims) > 0 && !slices.ContainsFunc(claims, func(pc cluster.PodClaim) bool {
		return pc.Claim == nil || pc.Claim.Status.Allocation == nil || errors.Is(pc.Problem, cluster.ErrClaimNotOwned)
	})
}
