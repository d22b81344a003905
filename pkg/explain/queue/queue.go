// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Explainer is what the queue asks about a target.
type Explainer struct {
	// Explain answers, in a cluster as it is.
	Explain func(context.Context, *cluster.Cluster, *target.Target) (*api.Explanation, error)
	// Describe says what the question is about, without an answer.
	Describe func(*cluster.Cluster, *target.Target) *api.Explanation
}

// Queue decides pods one after another.
type Queue struct {
	explainer Explainer
	// verdicts has answers for pods that nobody asks about, also those of other queues.
	verdicts *Verdicts
	// snap and alloc are the cluster as it is; after has what was reserved since.
	cluster *cluster.Cluster

	after *cluster.Cluster
	// planned is set if what becomes of all pods is asked for, see [Queue.AddWaiting].
	planned bool
	// outlook is set if the outlook of pods that do not fit is asked for.
	outlook bool
	// shares is set if pods share an answer that differ in names, see [Queue.ShareAnswers]. Those
	// that nobody asks about always do. claimUsers counts those that use a claim by its name.
	shares     bool
	claimUsers map[types.NamespacedName]int
	// order has the pods of the queue, the first one first.
	order []*queuedPod
	pods  map[types.NamespacedName]*queuedPod
	kinds map[string]*podKind
	// claims has those of pods in the cluster as it is, as far as they were asked for.
	claims map[*corev1.Pod][]cluster.PodClaim
	// gangs are those that members of targets belong to, nil for one that the scheduler
	// does not try.
	gangs map[types.NamespacedName]*gang
	// selected has the keys of the labels by which pods select other pods.
	selected map[string]bool
	// preempts is set if pods take the place of others of lower priority; reopened are
	// the nodes where some have.
	preempts bool
	reopened []*corev1.Node
}

// queuedPod is a pod of the queue and what becomes of it.
type queuedPod struct {
	pod          *corev1.Pod
	hypothetical bool
	kind         *podKind
	// decided is set if it has to be decided, target if it has to be explained.
	decided, target bool
	opts            target.Options
	// member is set if it is decided without the rest of its gang; gang is that which it
	// is decided with, nil for none.
	member bool
	gang   *gang
	// reservation is what it gets, nil if it does not fit.
	reservation *whatif.Reservation
	// before are those that get what it could have, if it fits without them.
	before []*queuedPod
	// undecided is why it is not known whether it fits after others were placed.
	undecided error
	// victims are those whose place it takes; preemptedBy is who takes that of this one.
	victims     []*corev1.Pod
	preemptedBy *queuedPod
}

// gets reports whether a pod gets a node: in a gang, only if enough of it do.
func (p *queuedPod) gets() bool {
	return p.reservation != nil && (p.gang == nil || p.gang.fits())
}

// podKind is what pods have in common that are equal to the scheduler.
type podKind struct {
	// key is the signature of the pods.
	key string
	// first is the pod for which answer was found.
	first  *queuedPod
	answer *api.Explanation
	// nodes are those where a pod of the kind may fit after what was reserved.
	nodes []*corev1.Node
	// before are those who took the last of them.
	before []*queuedPod
	// candidates are nodes where others can be preempted, the best one first, once
	// searched is set.
	candidates []*candidate
	searched   bool
}

// New is a queue that no pod is in yet.
func New(explainer Explainer, c *cluster.Cluster) *Queue {
	q := &Queue{
		explainer: explainer, verdicts: &Verdicts{}, cluster: c, after: c,
		kinds: map[string]*podKind{}, claims: map[*corev1.Pod][]cluster.PodClaim{}, pods: map[types.NamespacedName]*queuedPod{}, gangs: map[types.NamespacedName]*gang{},
		selected: map[string]bool{},
	}
	var waiting []*corev1.Pod
	for _, pod := range c.Snapshot.Pods {
		cluster.SelectedLabels(pod, q.selected)
		if snapshot.Waits(pod) {
			waiting = append(waiting, pod)
		}
	}
	q.claimUsers = claimUsers(waiting)
	return q
}

// Remember has the queue take verdicts from other queues of the same cluster, and leave its own
// there.
func (q *Queue) Remember(verdicts *Verdicts) { q.verdicts = verdicts }

// Any reports whether there is a pod in the queue.
func (q *Queue) Any() bool { return len(q.pods) > 0 }

// Add puts the pods of a target into the queue.
func (q *Queue) Add(s *target.Target) {
	if !s.Workload {
		p := q.add(s.Pod, s.Hypothetical)
		p.decided, p.target, p.opts = true, true, s.Options
		return
	}
	for _, pod := range s.New {
		q.addMember(pod)
	}
	for _, pod := range s.Users {
		if snapshot.Waits(pod) {
			q.addMember(target.WithClassPriority(q.cluster.Snapshot, pod))
		}
	}
}

// addMember adds a pod of a workload or a PodGroup. If that is a gang, all of its pods
// are decided at the same time.
func (q *Queue) addMember(pod *corev1.Pod) {
	p := q.add(pod, target.Hypothetical(pod))
	p.decided = true
	q.joinGang(p)
}

func (q *Queue) add(pod *corev1.Pod, hypothetical bool) *queuedPod {
	key := podKey(pod)
	if q.pods[key] == nil {
		q.pods[key] = &queuedPod{pod: pod, hypothetical: hypothetical}
		q.order = append(q.order, q.pods[key])
		cluster.SelectedLabels(pod, q.selected)
	}
	return q.pods[key]
}

// claimsOf are the claims of a pod in the cluster as it is, which nobody may change.
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

// Decide goes through the queue. As long as nothing that was asked about fits,
// nobody can take anything from it, and the others are left out.
func (q *Queue) Decide(ctx context.Context) error {
	slices.SortStableFunc(q.order, func(a, b *queuedPod) int { return compareQueued(a.pod, b.pod) })
	fits := false
	for _, p := range q.order {
		if err := q.sortKind(ctx, p); err != nil {
			return err
		}
		fits = fits || q.placeable(p.kind)
	}
	if !fits && !q.preempts {
		return nil
	}
	for _, pod := range q.cluster.Snapshot.Pods {
		if snapshot.Waits(pod) && len(pod.Spec.SchedulingGates) == 0 && len(q.claimsOf(pod)) > 0 {
			q.add(target.WithClassPriority(q.cluster.Snapshot, pod), false)
		}
	}
	slices.SortStableFunc(q.order, func(a, b *queuedPod) int { return compareQueued(a.pod, b.pod) })
	// Pods that are preempted are added behind the one that is decided.
	for at := 0; at <= q.last(); at++ {
		if err := q.decide(ctx, q.order[at]); err != nil {
			return err
		}
	}
	return nil
}

// last is the place in the queue of the last pod that has to be decided.
func (q *Queue) last() int {
	for at := len(q.order) - 1; at > 0; at-- {
		if q.order[at].decided {
			return at
		}
	}
	return 0
}

// decide finds out what the next pod of the queue gets.
func (q *Queue) decide(ctx context.Context, p *queuedPod) error {
	if err := q.sortKind(ctx, p); err != nil {
		return err
	}
	if p.kind.answer.Stage == api.StageQueueing || len(p.pod.Spec.SchedulingGates) > 0 {
		return nil
	}
	fits := q.placeable(p.kind)
	switch {
	case p.gang != nil && fits:
		return q.decideGang(ctx, p.gang.top())
	case p.gang == nil && (fits || p.kind.answer.Verdict == api.DoesNotFit && len(p.kind.nodes) > 0):
		if err := q.reserve(ctx, p); err != nil {
			return err
		}
	}
	return (&preemption{q, p}).preempt(ctx)
}

// compareQueued is the order of the scheduling queue (Less of the plugin
// PrioritySort): the higher priority first, then who was added to the queue
// first. When that was is known to the scheduler alone; here it is when the pod
// was created. What does not exist yet comes last.
func compareQueued(a, b *corev1.Pod) int {
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
		naming.Compare(a.Name, b.Name),
	)
}

// sortKind finds the pods that a pod is equal to, and the answer for them in the
// cluster as it is.
func (q *Queue) sortKind(ctx context.Context, p *queuedPod) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	if p.kind == nil {
		key := q.signature(p)
		if p.member {
			key = "member " + key
		}
		if p.preemptedBy != nil {
			// It is asked about in another cluster.
			key = "preempted " + key
		}
		if q.kinds[key] == nil {
			q.kinds[key] = &podKind{first: p, key: key}
		}
		p.kind = q.kinds[key]
	}
	if kind := p.kind; kind.answer != nil && q.shares && kind.first != p && kind.namesFirst() {
		// It has an answer of its own.
		p.kind = &podKind{first: p}
	}
	if kind := p.kind; kind.answer == nil || p.target && !kind.first.target {
		// Of pods that are no targets, only the verdict was asked for.
		kind.first = p
		return q.explainKind(ctx, p)
	}
	return nil
}

// explainKind answers for the first pod of a kind, in the cluster as it is. For
// one that is not a target, the verdict is enough.
func (q *Queue) explainKind(ctx context.Context, p *queuedPod) error {
	asked := q.cluster
	if p.preemptedBy != nil {
		// It has left a node since.
		asked = q.after
	}
	s := q.target(p)
	s.UsePod(asked, p.pod)
	s.VerdictOnly, s.WithOutlook = !p.target, q.outlook
	answer, err := q.ask(ctx, p, asked, s)
	if err != nil {
		return err
	}
	p.kind.answer, p.kind.nodes = answer, nil
	defer func() {
		for _, node := range q.reopened {
			p.kind.reopen(node)
		}
	}()
	if !q.placeable(p.kind) {
		return nil
	}
	nodes, _ := q.cluster.Nodes.All()
	byName := make(map[string]*corev1.Node, len(nodes))
	for _, node := range nodes {
		byName[node.Name] = node
	}
	add := func(name string) {
		if node := byName[name]; node != nil {
			p.kind.nodes = append(p.kind.nodes, node)
			delete(byName, name)
		}
	}
	// What the allocator picks comes first.
	if answer.Placement != nil {
		add(answer.Placement.Node)
	}
	for _, group := range answer.Nodes {
		if group.Verdict == api.Fits {
			for _, name := range group.Names {
				add(name)
			}
		}
	}
	return nil
}

// ask asks about a pod, unless nobody asks about it and the verdict is known.
func (q *Queue) ask(ctx context.Context, p *queuedPod, state *cluster.Cluster, s *target.Target) (*api.Explanation, error) {
	besides := !p.decided && p.preemptedBy == nil && !q.shares
	if besides {
		if answer := q.verdicts.get(p.kind.key); answer != nil {
			return answer, nil
		}
	}
	start := time.Now()
	answer, err := q.explainer.Explain(ctx, state, s)
	if err == nil && besides {
		q.verdicts.add(p.kind.key, Verdict{Namespace: p.pod.Namespace, At: q.cluster.Snapshot.Now(), Took: time.Since(start), answer: answer})
	}
	return answer, err
}

// placeable reports whether pods of a kind get a node as long as what is available
// lasts. One whose claims are allocated takes no devices from others: it matters only
// if everything that becomes of pods does.
func (q *Queue) placeable(kind *podKind) bool {
	return kind.answer.Verdict == api.Fits || q.planned && kind.answer.Verdict == api.Allocated
}

// target is the pod as the target of a question.
func (q *Queue) target(p *queuedPod) *target.Target {
	s := &target.Target{Object: api.Target{Kind: api.KindPod, Namespace: p.pod.Namespace, Name: p.pod.Name}, Hypothetical: p.hypothetical}
	s.Member = p.member
	s.Options = target.Options{Kind: s.Object.Kind, Namespace: s.Object.Namespace, Name: s.Object.Name, AllRemedies: p.opts.AllRemedies}
	if !p.hypothetical {
		s.Users = []*corev1.Pod{p.pod}
	}
	s.UsePod(q.cluster, p.pod)
	return s
}

// reserve gives the pod the first node of its kind where it still fits. A node
// where an equal pod did not fit is left out from then on: what is reserved only
// grows.
func (q *Queue) reserve(ctx context.Context, p *queuedPod) error {
	attempt := allocator.NewAttempt(q.after, p.pod)
	for len(p.kind.nodes) > 0 {
		reservation, err := attempt.On(ctx, p.kind.nodes[0])
		var undecided *allocator.UndecidedError
		if err != nil && !errors.As(err, &undecided) {
			return err
		}
		if undecided != nil && p.undecided == nil {
			p.undecided = err
		}
		if reservation != nil {
			p.reservation, p.undecided = reservation, nil
			q.after = q.after.Amended(whatif.Reserve(q.after.Snapshot, *reservation))
			return nil
		}
		p.kind.nodes = p.kind.nodes[1:]
	}
	if p.kind.before == nil && q.placeable(p.kind) {
		p.kind.before = q.takers(p.kind)
	}
	p.before = p.kind.before
	return nil
}
