// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/recording"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// maxFollowed limits how many clusters are made from one another: memories, as of expressions, add
// up.
const maxFollowed = 1000

// refresh is how old, in the time of the recording, an answer gets whose verdict is known not to have
// changed: its code, which no node alone tells, may have.
const refresh = time.Minute

// errNoMoments means that there is nothing to follow.
var errNoMoments = errors.New("follow the answer: there are no states of the cluster")

// History returns the history of the answer about a target. It fails if reading the moments fails, ctx
// is done, a check fails, or no moment has the target.
func History(ctx context.Context, moments iter.Seq2[recording.Moment, error], target explain.Options) (*api.History, error) {
	h := &history{target: target, out: &api.History{
		TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "History"},
		Object:   target.Object, Entries: []api.HistoryEntry{},
	}}
	for moment, err := range moments {
		if err == nil {
			err = h.add(ctx, moment)
		}
		if err != nil {
			return nil, err
		}
	}
	if h.last == nil {
		return nil, errNoMoments
	}
	if h.stale {
		if err := h.decide(ctx, &recording.Moment{Snapshot: h.last}, h.cluster); err != nil {
			return nil, err
		}
	}
	if len(h.out.Entries) == 0 || !slices.ContainsFunc(h.out.Entries, func(e api.HistoryEntry) bool { return e.Event != api.HistoryMissed }) {
		return nil, h.state.absent
	}
	h.out.SecondsWaited = int64(h.waited / time.Second)
	h.out.To, h.out.Now, h.out.Waits = metav1.NewTime(h.last.TakenAt), h.state.answer, h.state.waits()
	return h.out, nil
}

// history is the work on a history.
type history struct {
	target explain.Options
	out    *api.History
	// last is the last snapshot, state the target in it.
	last  *snapshot.Snapshot
	state *state
	// cluster is the cluster of the last change; followed counts the clusters it was made from.
	cluster  *cluster.Cluster
	followed int
	// decided is when the answer was found. If something changed since then, stale is set: the
	// verdict is still the same.
	decided time.Time
	stale   bool
	// waited is how long the target is known to have waited.
	waited time.Duration
}

// add adds a moment.
func (h *history) add(ctx context.Context, m recording.Moment) error {
	if h.last == nil {
		h.out.From = metav1.NewTime(m.Snapshot.TakenAt)
		return h.begin(ctx, m)
	}
	until := m.Snapshot.TakenAt
	if m.Missed != nil {
		h.entry(&m, api.HistoryEntry{Event: api.HistoryMissed, Note: m.Missed.Reason})
	}
	before := h.state
	r := h.state.reachOf(h.target.Object, h.last, m.Snapshot)
	if !r.none() {
		if err := h.follow(ctx, &m, r); err != nil {
			return err
		}
	}
	if before.waits() {
		if m.Missed != nil && (!h.state.waits() || !h.state.same(before)) {
			until = m.Missed.Since
		}
		h.waited += max(until.Sub(h.last.TakenAt), 0)
	}
	h.last = m.Snapshot
	return nil
}

// begin adds the first moment.
func (h *history) begin(ctx context.Context, m recording.Moment) (err error) {
	h.last, h.decided, h.cluster = m.Snapshot, m.Snapshot.TakenAt, cluster.New(m.Snapshot)
	if h.state, err = stateOf(ctx, h.cluster, h.target); err != nil {
		return err
	}
	if h.state.exists() {
		h.out.WaitingSince = h.state.since(m.Snapshot)
		h.entry(&m, api.HistoryEntry{Event: api.HistoryExisted, Answer: &h.state.answer})
	}
	return nil
}

// follow adds a moment in which the answer may be another one. The answer about a pod that fits
// nowhere is found again only if the pod fits on one of the nodes that changed, or after a while.
func (h *history) follow(ctx context.Context, m *recording.Moment, r reach) error {
	before := h.cluster
	if h.followed++; h.followed%maxFollowed == 0 {
		h.cluster = cluster.New(m.Snapshot)
	} else {
		h.cluster = before.With(cluster.Between(before.Snapshot, m.Snapshot))
	}
	fits := false
	if !r.all && m.Missed == nil && m.Snapshot.TakenAt.Sub(h.decided) < refresh {
		var err error
		if fits, err = h.fitsOn(ctx, r.nodes); err != nil {
			return err
		}
		if !fits {
			h.stale = true
			return h.addTaken(ctx, m, before)
		}
	}
	return h.decide(ctx, m, before)
}

// fitsOn reports whether the target fits on one of some nodes.
func (h *history) fitsOn(ctx context.Context, names []string) (bool, error) {
	for _, name := range names {
		node := h.cluster.Snapshot.Node(name)
		if node == nil {
			continue
		}
		target := h.target
		target.Node = name
		answer, _, err := explain.NewInspection(h.cluster, []*corev1.Node{node}).Devices(ctx, target, nil)
		if err != nil {
			return false, fmt.Errorf("follow the answer: %w", err)
		}
		if answer.Verdict != api.DoesNotFit {
			return true, nil
		}
	}
	return false, nil
}

// decide finds the answer after a change, and adds what became different.
func (h *history) decide(ctx context.Context, m *recording.Moment, before *cluster.Cluster) error {
	was := h.state
	is, err := stateOf(ctx, h.cluster, h.target)
	if err != nil {
		return err
	}
	if is.waits() && (!was.waits() || !is.same(was)) {
		h.out.WaitingSince = is.since(m.Snapshot)
	}
	if was.exists() && !is.same(was) {
		h.entry(m, api.HistoryEntry{Event: api.HistoryDeleted})
	}
	h.state = is
	switch {
	case is.exists() && !is.same(was):
		h.entry(m, api.HistoryEntry{Event: api.HistoryCreated, Answer: &is.answer})
	case is.exists() && was.waits() && is.answer.Node != "":
		h.entry(m, api.HistoryEntry{Event: api.HistoryScheduled, Answer: &is.answer})
	case is.exists():
		if err := h.addTaken(ctx, m, before); err != nil {
			return err
		}
		if err := h.compare(ctx, m, before, was); err != nil {
			return err
		}
	}
	h.decided, h.stale = m.Snapshot.TakenAt, false
	return nil
}

// addTaken adds the claims that got devices since a moment while the target waited.
func (h *history) addTaken(ctx context.Context, m *recording.Moment, before *cluster.Cluster) error {
	if !h.state.waits() {
		return nil
	}
	taken, err := h.taken(ctx, before.Snapshot)
	if err == nil && len(taken) > 0 {
		h.entry(m, api.HistoryEntry{Event: api.HistoryTaken, Taken: taken})
	}
	return err
}

// compare adds the change of an answer about a target that existed before.
func (h *history) compare(ctx context.Context, m *recording.Moment, before *cluster.Cluster, was *state) error {
	is := h.state
	if was.answer.Verdict == is.answer.Verdict && was.answer.Code == is.answer.Code {
		return nil
	}
	e := api.HistoryEntry{Event: api.HistoryChanged, Was: &was.answer, Answer: &is.answer}
	if was.answer.Verdict == is.answer.Verdict && h.stale {
		after := metav1.NewTime(h.decided)
		e.After = &after
	}
	if was.answer.Verdict != is.answer.Verdict && is.waits() {
		changed, err := AnswerBetween(ctx, before, h.cluster, h.target)
		if err != nil {
			return fmt.Errorf("find what changed the answer: %w", err)
		}
		e.Undo, e.Note = changed.Undo, changed.Note
	}
	h.entry(m, e)
	return nil
}

// entry adds an entry, or counts it with an equal one before: also if two alternate.
func (h *history) entry(m *recording.Moment, e api.HistoryEntry) {
	e.Time = metav1.NewTime(m.Snapshot.TakenAt)
	if m.Missed != nil && e.After == nil {
		after := metav1.NewTime(m.Missed.Since)
		e.After = &after
	}
	left := 2
	for i := len(h.out.Entries) - 1; i >= 0 && left > 0; i-- {
		known := &h.out.Entries[i]
		if known.Event == api.HistoryTaken {
			continue
		}
		left--
		if equal(known, &e) {
			known.Count, known.Last = max(known.Count, 1)+1, &e.Time
			return
		}
		if known.Event != api.HistoryChanged {
			break
		}
	}
	h.out.Entries = append(h.out.Entries, e)
}

// equal reports whether two entries tell the same change.
func equal(a, b *api.HistoryEntry) bool {
	if a.Event != api.HistoryChanged || b.Event != api.HistoryChanged || a.Note != b.Note {
		return false
	}
	same := func(x, y *api.AnswerState) bool { return x.Verdict == y.Verdict && x.Code == y.Code }
	return same(a.Answer, b.Answer) && same(a.Was, b.Was) &&
		slices.EqualFunc(a.Undo, b.Undo, func(x, y api.Change) bool { return x.Message == y.Message })
}

// taker is a claim that got devices, and the pod that uses it; nil if none is known.
type taker struct {
	claim *resourceapi.ResourceClaim
	pod   *corev1.Pod
}

// node returns the node of the devices, or of the pod; it is empty if neither is known.
func (t *taker) node() string {
	node := cluster.AllocatedNode(t.claim.Status.Allocation)
	if node == "" && t.pod != nil {
		node = t.pod.Spec.NodeName
	}
	return node
}

// taken returns the claims that got devices since the snapshot before which the target could have
// used: each passes every check of one of its requests where the claim did not get it.
func (h *history) taken(ctx context.Context, before *snapshot.Snapshot) ([]api.TakenDevices, error) {
	takers := h.takers(before)
	if len(takers) == 0 {
		return nil, nil
	}
	var refs []api.ObjectRef
	for _, t := range takers {
		refs = append(refs, api.RefTo(api.KindClaim, t.claim))
		if t.pod != nil {
			refs = append(refs, api.RefTo(api.KindPod, t.pod))
		}
	}
	without := h.cluster.Amended(whatif.Restore(h.cluster.Snapshot, before, refs, false))
	var list []api.TakenDevices
	for _, t := range takers {
		devices, err := h.usable(ctx, without, t)
		if err != nil {
			return nil, err
		}
		if len(devices) > 0 {
			list = append(list, h.describe(t, devices))
		}
	}
	return list, nil
}

// takers returns the claims of others that got devices since a snapshot.
func (h *history) takers(before *snapshot.Snapshot) []taker {
	var list []taker
	now := h.cluster.Snapshot
	for was, is := range snapshot.Changes(before.Claims, now.Claims) {
		had := was != nil && is != nil && was.UID == is.UID && was.Status.Allocation != nil
		if is == nil || is.Status.Allocation == nil || had || h.state.uses(api.RefTo(api.KindClaim, is)) {
			continue
		}
		t := taker{claim: is}
		for _, consumer := range is.Status.ReservedFor {
			if consumer.Resource == "pods" && t.pod == nil {
				t.pod = now.Pod(is.Namespace, consumer.Name)
			}
		}
		if users := lifecycle.PodsUsing(now, is); t.pod == nil && len(users) == 1 {
			t.pod = users[0]
		}
		list = append(list, t)
	}
	return list
}

// usable returns the devices of a claim that the target could use in a cluster.
func (h *history) usable(ctx context.Context, c *cluster.Cluster, t taker) ([]api.AllocatedDevice, error) {
	var results []api.AllocatedDevice
	var devices []*cluster.Device
	for i := range t.claim.Status.Allocation.Devices.Results {
		r := &t.claim.Status.Allocation.Devices.Results[i]
		d := c.Pools.Device(cluster.DeviceID{Driver: r.Driver, Pool: r.Pool, Device: r.Device})
		if d == nil || ptr.Deref(r.AdminAccess, false) {
			continue
		}
		devices = append(devices, d)
		results = append(results, api.AllocatedDevice{
			Request: r.Request, Driver: r.Driver, Pool: r.Pool, Device: r.Device, ShareID: string(ptr.Deref(r.ShareID, "")),
		})
	}
	if len(devices) == 0 {
		return nil, nil
	}
	target, nodes := h.target, c.Snapshot.Nodes
	if node := c.Snapshot.Node(t.node()); node != nil {
		target.Node, nodes = node.Name, []*corev1.Node{node}
	}
	_, checked, err := explain.NewInspection(c, nodes).Devices(ctx, target, devices)
	if absent := new(explain.TargetError); errors.As(err, &absent) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("check devices of claim %s/%s: %w", t.claim.Namespace, t.claim.Name, err)
	}
	var list []api.AllocatedDevice
	for i, d := range checked {
		if slices.ContainsFunc(d.Requests, passes) {
			list = append(list, results[i])
		}
	}
	return list, nil
}

// passes reports whether a device passes every check of a request when looked at alone.
func passes(r api.DeviceRequest) bool {
	return !slices.ContainsFunc(r.Checks, func(check api.DeviceCheck) bool { return check.Outcome == api.CheckFailed })
}

// describe says which devices a claim got, and why before the target.
func (h *history) describe(t taker, devices []api.AllocatedDevice) api.TakenDevices {
	out := api.TakenDevices{Claim: api.RefTo(api.KindClaim, t.claim), Node: t.node(), Devices: devices}
	if t.pod == nil {
		return out
	}
	out.Pod, out.Priority = api.RefTo(api.KindPod, t.pod), ptr.Deref(t.pod.Spec.Priority, 0)
	if h.state.pod == nil {
		return out
	}
	own := h.state.pod
	out.TargetPriority = ptr.Deref(own.Spec.Priority, 0)
	switch {
	case out.Priority > out.TargetPriority:
		out.Reason = api.TakenByPriority
	case out.Priority == out.TargetPriority && t.pod.CreationTimestamp.Before(&own.CreationTimestamp):
		out.Reason = api.TakenByAge
	default:
		out.Reason = api.TakenByScheduler
	}
	return out
}
