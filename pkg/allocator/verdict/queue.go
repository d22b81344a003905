// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
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
	// order has the pods of the queue, the first one first.
	order []*Queued
	pods  map[types.NamespacedName]*Queued
	kinds *podKinds
	gangs *gangs
	// reopened are the nodes where pods have taken the place of others.
	reopened []*corev1.Node
}

// NewQueue returns an empty queue.
func NewQueue(c *cluster.Cluster, opts Options) *Queue {
	return &Queue{
		Options: opts, cluster: c, After: c,
		pods: map[types.NamespacedName]*Queued{}, kinds: newPodKinds(c, opts.Shares, opts.Waiting), gangs: &gangs{cluster: c, byGroup: map[types.NamespacedName]*gang{}},
	}
}

func (q *Queue) add(pod *corev1.Pod, hypothetical bool) *Queued {
	key := podKey(pod)
	if q.pods[key] == nil {
		q.pods[key] = &Queued{Pod: pod, Hypothetical: hypothetical}
		q.order = append(q.order, q.pods[key])
		cluster.SelectedLabels(pod, q.kinds.selected)
	}
	return q.pods[key]
}

// Of returns a pod of the queue, nil if it is not in it.
func (q *Queue) Of(pod *corev1.Pod) *Queued { return q.pods[podKey(pod)] }

// Pods returns the pods of the queue, the first one first.
func (q *Queue) Pods() []*Queued { return q.order }

// Kinds returns the kinds of the pods in the queue, in its order. Callers that know the
// verdict about a kind pass it to [Queue.Know].
func (q *Queue) Kinds() []*Kind {
	slices.SortStableFunc(q.order, compareQueued)
	var kinds []*Kind
	seen := map[*Kind]bool{}
	for _, p := range q.order {
		if q.kinds.sort(p); !seen[p.Kind] {
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

// GangFit is the outcome for a PodGroup in the queue.
type GangFit struct {
	// Existing counts its pods, Fit those that have a node or get one.
	Existing, Fit int
	// Above has the CompositePodGroups that it belongs to, the nearest first, and Fits is set if
	// enough of them fit.
	Above []target.CompositeFit
	Fits  bool
}

// GangOf returns the outcome for a PodGroup, nil if it is no gang that the scheduler tries.
func (q *Queue) GangOf(group *schedulingapi.PodGroup) *GangFit {
	g := q.gangs.byGroup[groupKey(group)]
	if g == nil {
		return nil
	}
	fit := &GangFit{Existing: g.existing(), Fit: max(g.fit, g.placed)}
	if g.parent != nil {
		fit.Above, fit.Fits = g.found().Above, g.top().decided && g.fits()
	}
	return fit
}

// HasDevices reports whether all claims of a pod are allocated.
func (q *Queue) HasDevices(pod *corev1.Pod) bool {
	claims := q.kinds.claimsOf(pod)
	return len(claims) > 0 && !slices.ContainsFunc(claims, func(pc cluster.PodClaim) bool {
		return pc.Claim == nil || pc.Claim.Status.Allocation == nil || errors.Is(pc.Problem, cluster.ErrClaimNotOwned)
	})
}

// placeable reports whether pods of a kind get a node as long as there are available
// devices.
func (q *Queue) placeable(kind *Kind) bool {
	return kind.Verdict.Outcome == api.Fits || q.Planned && kind.Verdict.Outcome == api.Allocated
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
		p.Kind.before = takers(q.order, p.Kind)
	}
	p.Before = p.Kind.before
	return nil
}

// takers returns the pods of a queue that get the devices that pods of a kind could have:
// equal pods, pods that get the very devices that were picked for it or, if there are
// neither, pods that get something else of the nodes where it fits.
func takers(queue []*Queued, kind *Kind) []*Queued {
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
	for _, p := range queue {
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

// memory remembers the verdicts about pods that nobody asks about, in one cluster as it is, for
// all queues that are decided in it. It is safe for concurrent use.
type memory struct {
	mutex sync.Mutex
	// byKind has the verdicts by the signatures of pods, which tell all that a verdict depends
	// on besides the cluster.
	byKind map[string]remembered
}

// remembered is a verdict about pods that are equal to the scheduler.
type remembered struct {
	*Verdict
	// namespace is the namespace of the decided pod.
	namespace string
	// at is the time of the cluster, took is how long it took to decide.
	at   time.Time
	took time.Duration
}

// memoryOf returns the memory of a cluster.
func memoryOf(c *cluster.Cluster) *memory {
	return cluster.Remember(c, func() *memory { return &memory{byKind: map[string]remembered{}} })
}

// Follow returns the memory of the cluster after a change: the verdicts that the change does not
// touch, and that time alone is not expected to change.
func (m *memory) Follow(c *cluster.Cluster, d *cluster.Delta) cluster.Follower {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	after := &memory{byKind: maps.Clone(m.byKind)}
	maps.DeleteFunc(after.byKind, func(_ string, r remembered) bool {
		return d.Touches(r.namespace) || !cluster.Young(r.at, r.took, c.Snapshot.Now())
	})
	return after
}

func (m *memory) get(kind string) *Verdict {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.byKind[kind].Verdict
}

func (m *memory) add(kind string, r remembered) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.byKind[kind] = r
}
