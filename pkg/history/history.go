// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/diff"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/recording"
)

// maxFollowed limits how many clusters are made from one another: memories, as of expressions, add
// up.
const maxFollowed = 1000

// errNoMoments means that there is nothing to follow.
var errNoMoments = errors.New("follow the answer: there are no states of the cluster")

// Of returns the history of the answer about a target. It fails if reading the moments fails, ctx
// is done, a check fails, or no moment has the target.
func Of(ctx context.Context, moments iter.Seq2[recording.Moment, error], target explain.Options) (*api.History, error) {
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
	switch {
	case h.last == nil:
		return nil, errNoMoments
	case len(h.out.Entries) == 0 || !slices.ContainsFunc(h.out.Entries, func(e api.HistoryEntry) bool { return e.Event != api.HistoryMissed }):
		return nil, h.state.absent
	}
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
	// cluster is the last one that was decided; followed counts the clusters it was made from.
	cluster  *cluster.Cluster
	followed int
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
	if h.concerns(m.Snapshot) {
		if err := h.decide(ctx, &m); err != nil {
			return err
		}
	}
	if before.waits() {
		if m.Missed != nil && !(h.state.waits() && h.state.same(before)) {
			until = m.Missed.Since
		}
		h.out.SecondsWaited += int64(max(until.Sub(h.last.TakenAt), 0) / time.Second)
	}
	h.last = m.Snapshot
	return nil
}

// begin adds the first moment.
func (h *history) begin(ctx context.Context, m recording.Moment) (err error) {
	h.last, h.cluster = m.Snapshot, cluster.New(m.Snapshot)
	if h.state, err = find(ctx, h.cluster, h.target); err != nil {
		return err
	}
	if h.state.exists() {
		h.out.WaitingSince = h.state.since(m.Snapshot)
		h.entry(&m, api.HistoryEntry{Event: api.HistoryExisted, Answer: &h.state.answer})
	}
	return nil
}

// decide finds the answer after a change and adds what became different.
func (h *history) decide(ctx context.Context, m *recording.Moment) error {
	before, after := h.cluster, h.follow(m.Snapshot)
	was := h.state
	is, err := find(ctx, after, h.target)
	if err != nil {
		return err
	}
	if is.waits() && (was == nil || !was.waits() || !is.same(was)) {
		h.out.WaitingSince = is.since(m.Snapshot)
	}
	h.cluster, h.state = after, is
	if was.exists() && !is.same(was) {
		h.entry(m, api.HistoryEntry{Event: api.HistoryDeleted})
	}
	if is.exists() && !is.same(was) {
		h.entry(m, api.HistoryEntry{Event: api.HistoryCreated, Answer: &is.answer})
	}
	if !is.exists() || !is.same(was) {
		return nil
	}
	if was.waits() && is.pod != nil && is.pod.Spec.NodeName != "" {
		h.entry(m, api.HistoryEntry{Event: api.HistoryScheduled, Answer: &is.answer})
		return nil
	}
	if was.waits() && is.waits() {
		taken, err := h.taken(ctx, before.Snapshot)
		if err != nil {
			return err
		}
		if len(taken) > 0 {
			h.entry(m, api.HistoryEntry{Event: api.HistoryTaken, Taken: taken})
		}
	}
	return h.compare(ctx, m, before, was)
}

// compare adds the change of an answer about a target that existed before.
func (h *history) compare(ctx context.Context, m *recording.Moment, before *cluster.Cluster, was *state) error {
	is := h.state
	if was.answer.Verdict == is.answer.Verdict && was.answer.Code == is.answer.Code {
		return nil
	}
	e := api.HistoryEntry{Event: api.HistoryChanged, Was: &was.answer, Answer: &is.answer}
	if was.answer.Verdict != is.answer.Verdict && is.waits() {
		changed, err := diff.AnswerBetween(ctx, before, h.cluster, h.target)
		if err != nil {
			return fmt.Errorf("find what changed the answer: %w", err)
		}
		e.Undo, e.Note = changed.Undo, changed.Note
	}
	h.entry(m, e)
	return nil
}

// follow returns the cluster of a later snapshot.
func (h *history) follow(snap *snapshot.Snapshot) *cluster.Cluster {
	if h.followed++; h.followed%maxFollowed == 0 {
		return cluster.New(snap)
	}
	return h.cluster.With(cluster.Between(h.cluster.Snapshot, snap))
}

// concerns reports whether the answer may be another one in a later snapshot.
func (h *history) concerns(snap *snapshot.Snapshot) bool {
	of := h.target.Object
	if own, ok := objectOf(h.last, of); ok {
		now, _ := objectOf(snap, of)
		if own != now {
			return true
		}
		if own == nil {
			return false
		}
	}
	if !cluster.Between(h.last, snap).Touches(of.Namespace) {
		return false
	}
	changed := diff.Objects(h.last, snap)
	if h.state.waits() || of.Kind != api.KindPod {
		return len(changed) > 0
	}
	// Other pods and their claims do not matter to a pod that has a node.
	return slices.ContainsFunc(changed, func(o api.ObjectRef) bool {
		return o.Kind != api.KindPod && (o.Kind != api.KindClaim || h.state.uses(o))
	})
}

// entry adds an entry, or counts it with an equal one before: also if two alternate.
func (h *history) entry(m *recording.Moment, e api.HistoryEntry) {
	e.Time = metav1.NewTime(m.Snapshot.TakenAt)
	if m.Missed != nil {
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
	if a.Event != api.HistoryChanged || b.Event != api.HistoryChanged || a.After != nil || b.After != nil || a.Note != b.Note {
		return false
	}
	same := func(x, y *api.AnswerState) bool { return x.Verdict == y.Verdict && x.Code == y.Code }
	return same(a.Answer, b.Answer) && same(a.Was, b.Was) &&
		slices.EqualFunc(a.Undo, b.Undo, func(x, y api.Change) bool { return x.Message == y.Message })
}
