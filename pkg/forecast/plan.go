// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// notModeled lists the conditions that every plan leaves out.
const notModeled = "scores between nodes (which of several nodes a pod gets), back-off after failed attempts, pods without devices, other schedulers"

// MakePlan decides all pods that wait in a cluster. With preempts, pods take the place of others
// of lower priority, as KEP-5690 proposes it. The error is from ctx.
func MakePlan(ctx context.Context, state *cluster.Cluster, preempts bool) (*api.Plan, error) {
	var pods, gated []*corev1.Pod
	for _, pod := range state.Waiting() {
		if len(pod.Spec.SchedulingGates) > 0 {
			gated = append(gated, pod)
		} else {
			pods = append(pods, pod)
		}
	}
	decisions, after, err := explain.DecideQueue(ctx, state, pods, explain.QueueOptions{Preempts: preempts, Outlook: true})
	if err != nil {
		return nil, fmt.Errorf("decide the queue: %w", err)
	}
	m := &maker{state: state, blockers: newBlockers(after), queued: map[podName]*explain.Decision{}, jobs: limitedJobs(state.Snapshot), waiting: map[string]int{}}
	for i := range decisions {
		m.queued[nameOf(decisions[i].Pod)] = &decisions[i]
	}
	out := &api.Plan{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "Plan"},
		Source:   state.Snapshot.Source, NotModeled: notModeled, Pods: []api.PlannedPod{}, Assumptions: assumptions(state.Snapshot, decisions),
	}
	for i := range decisions {
		pod, err := m.planned(ctx, &decisions[i])
		if err != nil {
			return nil, err
		}
		pod.Position = i + 1
		pod.BehindWith = m.waitWith(pod)
		out.Pods = append(out.Pods, *pod)
	}
	for _, pod := range gated {
		p := m.about(pod)
		p.Outcome, p.Code, p.Reason = api.PlanGated, "", "scheduling gates: "+gateNames(pod)
		out.Pods = append(out.Pods, *p)
	}
	out.Counts = counts(out.Pods)
	return out, nil
}

// podName tells pods apart.
type podName struct{ namespace, name string }

func nameOf(pod *corev1.Pod) podName { return podName{pod.Namespace, pod.Name} }

// maker turns decisions into a plan.
type maker struct {
	state    *cluster.Cluster
	blockers *blockers
	queued   map[podName]*explain.Decision
	// jobs are the jobs that run for a limited time.
	jobs map[jobID]*snapshot.JobLimit
	// waiting counts the pods of the queue so far by the pods that they wait behind.
	waiting map[string]int
}

// jobID tells Jobs apart.
type jobID struct {
	namespace string
	uid       types.UID
}

func limitedJobs(snap *snapshot.Snapshot) map[jobID]*snapshot.JobLimit {
	jobs := map[jobID]*snapshot.JobLimit{}
	for _, w := range snap.Workloads {
		if w.Limit != nil {
			jobs[jobID{w.Namespace, w.UID}] = w.Limit
		}
	}
	return jobs
}

// about returns the known facts about a pod before its decision.
func (m *maker) about(pod *corev1.Pod) *api.PlannedPod {
	p := &api.PlannedPod{
		Namespace: pod.Namespace, Name: pod.Name, Owner: whatif.Owner(pod), Priority: ptr.Deref(pod.Spec.Priority, 0),
	}
	if taken := m.state.Snapshot.TakenAt; !taken.IsZero() && !pod.CreationTimestamp.IsZero() {
		p.AgeSeconds = max(0, int64(taken.Sub(pod.CreationTimestamp.Time).Seconds()))
	}
	return p
}

// planned says what becomes of a pod, and why.
func (m *maker) planned(ctx context.Context, d *explain.Decision) (*api.PlannedPod, error) {
	p, answer := m.about(d.Pod), d.Answer
	p.PodGroup = d.Group
	p.Code, p.Reason = answer.Code, answer.Summary
	other := answer.OtherScheduler
	switch {
	case d.Reservation != nil && other == nil:
		p.Outcome, p.Code, p.Reason = api.PlanPlaced, "", ""
		p.Node, p.Devices = d.Reservation.Node, allocatedDevices(d.Reservation)
		for _, victim := range d.Preempts {
			p.Preempts = append(p.Preempts, m.preempted(victim))
		}
		return p, nil
	case other != nil:
		p.Outcome, p.Reason = api.PlanUndetermined, fmt.Sprintf("Scheduler %s decides.", other.Name)
		return p, nil
	case d.Undecided != nil || answer.Verdict == api.Undetermined:
		p.Outcome = api.PlanUndetermined
		if d.Undecided != nil {
			p.Reason = english.Sentence(english.OneLine(d.Undecided))
		}
		return p, nil
	case d.Gang != nil && d.Gang.Short(d.Group, d.MinCount) != "":
		p.Outcome = api.PlanWaiting
		p.Code, p.Reason = d.Why()
	case answer.Verdict == api.Error && answer.Code != api.PoolIncomplete, answer.Code == api.PodGroupMismatch:
		// A pool that is being updated is complete again soon. Priorities are immutable.
		p.Outcome = api.PlanNever
	case answer.Verdict == api.DoesNotFit && answer.Outlook != nil:
		p.Outcome, p.Outlook = outcomeOf(answer.Outlook), answer.Outlook.Fits
		if p.Outcome != api.PlanWaiting {
			p.Reason = answer.Outlook.Message
		}
	default:
		p.Outcome = api.PlanWaiting
	}
	if p.Outcome != api.PlanWaiting {
		return p, nil
	}
	if by := d.PreemptedBy; by != nil {
		p.Behind = []api.BlockingPod{m.queuedBefore(m.queued[nameOf(by)])}
		p.Code, p.Reason = api.PodsCompete, fmt.Sprintf("Pod %s/%s takes its place.", by.Namespace, by.Name)
		return p, nil
	}
	return p, m.findBehind(ctx, d, p)
}

// preempted describes a pod that leaves for another one.
func (m *maker) preempted(pod *corev1.Pod) api.BlockingPod {
	b := m.blocking(pod)
	// It does not run for so long.
	b.Node, b.EndsWithinSeconds = pod.Spec.NodeName, nil
	for _, pc := range m.state.Claims.OfPod(pod) {
		if pc.Claim != nil && pc.Claim.Status.Allocation != nil {
			b.Devices = append(b.Devices, eligibility.PickedDevices(pod, pc.Claim, pc.Claim.Status.Allocation)...)
		}
	}
	return b
}

// queuedBefore describes a pod of the queue that gets something.
func (m *maker) queuedBefore(d *explain.Decision) api.BlockingPod {
	b := m.blocking(d.Pod)
	b.Queued, b.Node, b.Devices = true, d.Reservation.Node, allocatedDevices(d.Reservation)
	return b
}

// outcomeOf returns what becomes of a pod that does not fit now.
func outcomeOf(o *api.Outlook) api.PlanOutcome {
	switch {
	case o.ClaimsReleased.Verdict == api.Fits, o.HardwareAlone.Verdict == api.Fits:
		return api.PlanWaiting
	case o.HardwareAlone.Verdict == api.DoesNotFit:
		return api.PlanNever
	case o.ClaimsReleased.Verdict == api.DoesNotFit:
		return api.PlanNotByWaiting
	default:
		return api.PlanUndetermined
	}
}

// maxBehind limits how many pods are named that another one waits behind.
const maxBehind = 10

// findBehind names the pods behind which a pod waits: pods of the queue that get the
// devices that it could have, or else the pods that have them.
func (m *maker) findBehind(ctx context.Context, d *explain.Decision, p *api.PlannedPod) error {
	var list []api.BlockingPod
	for _, pod := range d.Before {
		before := m.queued[nameOf(pod)]
		if before == nil || before.Reservation == nil {
			continue
		}
		list = append(list, m.queuedBefore(before))
	}
	if len(list) > 0 {
		verb := "get"
		if len(list) == 1 {
			verb = "gets"
		}
		p.Code, p.Reason = api.PodsCompete, fmt.Sprintf("%s before it in the queue %s what it could have.", english.Count(len(list), "pod"), verb)
	} else if answer := d.Answer; answer.Outlook != nil {
		pods, err := m.blockers.of(ctx, d)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			b := m.blocking(pod)
			b.Queued, b.Node, b.Devices = m.queued[nameOf(pod)] != nil, pod.Spec.NodeName, m.blockers.devices(pod)
			list = append(list, b)
		}
	}
	if len(list) > maxBehind {
		p.BehindCount, list = len(list), list[:maxBehind]
	}
	p.Behind = list
	return nil
}

// waitWith counts the pods before a pod that wait behind the same pods.
func (m *maker) waitWith(p *api.PlannedPod) int {
	if len(p.Behind) == 0 {
		return 0
	}
	var names strings.Builder
	for i := range p.Behind {
		names.WriteString(p.Behind[i].Namespace + "/" + p.Behind[i].Name + " ")
	}
	m.waiting[names.String()]++
	return m.waiting[names.String()] - 1
}

// blocking describes a pod that others wait behind.
func (m *maker) blocking(pod *corev1.Pod) api.BlockingPod {
	snap := m.state.Snapshot
	b := api.BlockingPod{Namespace: pod.Namespace, Name: pod.Name, Priority: ptr.Deref(pod.Spec.Priority, 0)}
	limit := func(seconds int64, started metav1.Time) {
		left := max(0, seconds-int64(snap.TakenAt.Sub(started.Time).Seconds()))
		if b.EndsWithinSeconds == nil || left < *b.EndsWithinSeconds {
			b.EndsWithinSeconds = &left
		}
	}
	if snap.TakenAt.IsZero() {
		return b
	}
	if pod.Spec.ActiveDeadlineSeconds != nil && pod.Status.StartTime != nil {
		limit(*pod.Spec.ActiveDeadlineSeconds, *pod.Status.StartTime)
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		if job := m.jobs[jobID{pod.Namespace, owner.UID}]; job != nil {
			limit(job.ActiveDeadlineSeconds, job.StartTime)
		}
	}
	return b
}

// allocatedDevices returns the devices that a reservation gives a pod.
func allocatedDevices(r *whatif.Reservation) []api.AllocatedDevice {
	var devices []api.AllocatedDevice
	for i := range r.Claims {
		part := &r.Claims[i]
		if allocation := cmp.Or(part.Allocation, part.Claim.Status.Allocation); allocation != nil {
			devices = append(devices, eligibility.PickedDevices(r.Pod, part.Claim, allocation)...)
		}
	}
	return devices
}

func gateNames(pod *corev1.Pod) string {
	names := make([]string, 0, len(pod.Spec.SchedulingGates))
	for _, gate := range pod.Spec.SchedulingGates {
		names = append(names, gate.Name)
	}
	return strings.Join(names, ", ")
}

func counts(pods []api.PlannedPod) api.PlanCounts {
	var c api.PlanCounts
	for i := range pods {
		switch pods[i].Outcome {
		case api.PlanPlaced:
			c.Placed++
		case api.PlanWaiting:
			c.Waiting++
		case api.PlanNever:
			c.Never++
		case api.PlanNotByWaiting:
			c.NotByWaiting++
		case api.PlanGated:
			c.Gated++
		case api.PlanUndetermined:
			c.Undetermined++
		}
	}
	return c
}

// assumptions returns the assumptions of all answers, each once, and further gaps.
func assumptions(snap *snapshot.Snapshot, decisions []explain.Decision) []string {
	var list []string
	seen := map[string]bool{}
	add := func(text string) {
		if !seen[text] {
			seen[text] = true
			list = append(list, text)
		}
	}
	known := map[*api.Explanation]bool{}
	for i := range decisions {
		if known[decisions[i].Answer] {
			continue
		}
		known[decisions[i].Answer] = true
		for _, text := range decisions[i].Answer.Assumptions {
			add(text)
		}
	}
	for _, gap := range snap.Gaps {
		if !slices.ContainsFunc(list, func(text string) bool { return strings.HasPrefix(text, gap.Reason) }) {
			add(gap.Reason)
		}
	}
	return list
}

// blockers finds the pods on a node that have what another pod needs. Equal pods share
// what was found.
type blockers struct {
	state *cluster.Cluster
	// claims are the claims of pods with devices; users are the pods on each node that have
	// such claims.
	claims map[*corev1.Pod][]*resourceapi.ResourceClaim
	users  map[string][]*corev1.Pod
	found  map[*api.Explanation][]*corev1.Pod
}

// newBlockers looks at a state in which all of the queue was decided.
func newBlockers(state *cluster.Cluster) *blockers {
	b := &blockers{state: state, claims: map[*corev1.Pod][]*resourceapi.ResourceClaim{}, users: map[string][]*corev1.Pod{}, found: map[*api.Explanation][]*corev1.Pod{}}
	for _, claim := range state.Snapshot.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, consumer := range claim.Status.ReservedFor {
			pod := state.Snapshot.Pod(claim.Namespace, consumer.Name)
			if consumer.Resource != "pods" || consumer.APIGroup != "" || pod == nil || pod.UID != consumer.UID || pod.Spec.NodeName == "" {
				continue
			}
			if b.claims[pod] == nil {
				b.users[pod.Spec.NodeName] = append(b.users[pod.Spec.NodeName], pod)
			}
			b.claims[pod] = append(b.claims[pod], claim)
		}
	}
	return b
}

// devices returns the devices of a pod.
func (b *blockers) devices(pod *corev1.Pod) []api.AllocatedDevice {
	var list []api.AllocatedDevice
	for _, claim := range b.claims[pod] {
		list = append(list, eligibility.PickedDevices(pod, claim, claim.Status.Allocation)...)
	}
	return list
}

// of returns pods on one node, the one where it fits with all claims released, that would
// have to go for a pod to fit there; none of them can stay. There may be none, as where the
// devices are used from another node.
func (b *blockers) of(ctx context.Context, d *explain.Decision) ([]*corev1.Pod, error) {
	if pods, known := b.found[d.Answer]; known {
		return pods, nil
	}
	outlook := d.Answer.Outlook
	var pods []*corev1.Pod
	for _, prospect := range []*api.Prospect{outlook.LowerPrioritiesGone, &outlook.ClaimsReleased} {
		if prospect == nil || prospect.Verdict != api.Fits || len(pods) > 0 {
			continue
		}
		node := b.state.Snapshot.Node(prospect.Node)
		if node == nil {
			continue
		}
		var err error
		if pods, err = allocator.Victims(ctx, b.state, d.Pod, node, b.users[node.Name]); err != nil {
			return nil, err
		}
	}
	b.found[d.Answer] = pods
	return pods, nil
}
