// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/recording"
)

// Moments yields the state of a cluster at a time, and each later one.
type Moments func(ctx context.Context, from time.Time) iter.Seq2[recording.Moment, error]

// Past is a source that plays a recording. It stays at a moment until somebody goes on or back. It
// is safe for concurrent use.
type Past struct {
	ctx     context.Context //nolint:containedctx // what is read goes on in the next call
	moments Moments
	// begins is the first moment of the recording.
	begins time.Time

	// going is held while somebody goes on or back.
	going sync.Mutex
	// before and after are the nearest moments that were read already, the nearest one last.
	before, after []recording.Moment
	next          func() (recording.Moment, error, bool)
	stop          func()

	mu  sync.Mutex
	now recording.Moment
	// back is true if a later moment than now was shown.
	back bool
}

const (
	// momentsKept limits how many moments are kept on both sides.
	momentsKept = 500
	// lookBack is how far back is read at a time.
	lookBack = 10 * time.Minute
)

// NewPast begins to play a recording at a time. All ends with ctx.
func NewPast(ctx context.Context, moments Moments, begins, at time.Time) (*Past, error) {
	p := &Past{ctx: ctx, moments: moments, begins: begins}
	p.open(at)
	first, err, ok := p.next()
	if !ok {
		err = ctx.Err()
	}
	p.now = first
	return p, err
}

// open reads on from a time.
func (p *Past) open(from time.Time) {
	if p.stop != nil {
		p.stop()
	}
	p.next, p.stop = iter.Pull2(p.moments(p.ctx, from))
}

// Snapshot returns the cluster at the moment.
func (p *Past) Snapshot() *snapshot.Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now.Snapshot
}

// Target returns the cluster at the moment: a recording has everything.
func (p *Past) Target(context.Context, snapshot.Argument) (*snapshot.Snapshot, error) {
	return p.Snapshot(), nil
}

// Problems returns the cluster at the moment.
func (p *Past) Problems(context.Context) (*snapshot.Snapshot, error) { return p.Snapshot(), nil }

// Changed never gets anything: who goes on knows.
func (*Past) Changed() <-chan struct{} { return nil }

// Trouble returns no error.
func (*Past) Trouble() (time.Time, error) { return time.Time{}, nil }

// Answered returns zero: nobody was asked.
func (*Past) Answered() time.Time { return time.Time{} }

// EndError tells that a recording has no earlier, or no later, moment.
type EndError struct {
	Later bool
	At    time.Time
}

func (e *EndError) Error() string {
	if e.Later {
		return "the recording ends here, at " + e.At.Local().Format(time.TimeOnly)
	}
	return "the recording begins here, at " + e.At.Local().Format(time.TimeOnly)
}

// Step goes to the next moment, or the one before, in which an object changed. It returns what is
// not known from in between, nil for nothing.
func (p *Past) Step(later bool) (*recording.Missed, error) {
	p.going.Lock()
	defer p.going.Unlock()
	return p.step(later)
}

func (p *Past) step(later bool) (*recording.Missed, error) {
	if later {
		return p.later()
	}
	return p.earlier()
}

func (p *Past) later() (*recording.Missed, error) {
	if n := len(p.after); n > 0 {
		next := p.after[n-1]
		p.after = p.after[:n-1]
		p.before = append(p.before, p.now)
		p.turn(next)
		return next.Missed, nil
	}
	for {
		next, err, ok := p.next()
		switch {
		case err != nil:
			return nil, err
		case !ok:
			return nil, &EndError{Later: true, At: p.now.Snapshot.TakenAt}
		case same(p.now.Snapshot, next.Snapshot) && next.Missed == nil:
			// It is known for longer.
			next.Missed = p.now.Missed
			p.turn(next)
			continue
		}
		p.before = append(p.before, p.now)
		if len(p.before) > momentsKept {
			p.before = slices.Clone(p.before[momentsKept/2:])
		}
		p.turn(next)
		return next.Missed, nil
	}
}

func (p *Past) earlier() (*recording.Missed, error) {
	if len(p.before) == 0 {
		if err := p.readBefore(); err != nil {
			return nil, err
		}
	}
	n := len(p.before)
	if n == 0 {
		return nil, &EndError{At: p.now.Snapshot.TakenAt}
	}
	missed := p.now.Missed
	p.after = append(p.after, p.now)
	if len(p.after) > momentsKept {
		// What is later is read again.
		p.after = slices.Clone(p.after[momentsKept/2:])
		p.open(p.after[0].Snapshot.TakenAt.Add(time.Nanosecond))
	}
	p.turn(p.before[n-1])
	p.before = p.before[:n-1]
	return missed, nil
}

// readBefore reads the moments before the present one.
func (p *Past) readBefore() error {
	end := p.now.Snapshot.TakenAt
	for back := lookBack; len(p.before) == 0 && end.After(p.begins); back *= 4 {
		from := end.Add(-back)
		if from.Before(p.begins) {
			from = p.begins
		}
		first := true
		for m, err := range p.moments(p.ctx, from) {
			if err != nil {
				return err
			}
			if first && !from.Equal(p.begins) {
				// It is in the middle of a moment.
				first = false
				continue
			}
			if !m.Snapshot.TakenAt.Before(end) {
				break
			}
			if n := len(p.before); n > 0 && same(p.before[n-1].Snapshot, m.Snapshot) && m.Missed == nil {
				m.Missed = p.before[n-1].Missed
				p.before[n-1] = m
				continue
			}
			p.before = append(p.before, m)
			if len(p.before) > momentsKept {
				p.before = slices.Clone(p.before[momentsKept/2:])
			}
		}
		if n := len(p.before); n > 0 && p.now.Missed == nil && same(p.before[n-1].Snapshot, p.now.Snapshot) {
			p.before = p.before[:n-1]
		}
		if from.Equal(p.begins) {
			return nil
		}
	}
	return nil
}

func (p *Past) turn(to recording.Moment) {
	p.mu.Lock()
	p.now, p.back = to, len(p.after) > 0
	p.mu.Unlock()
}

// WentBack reports whether a later moment was shown.
func (p *Past) WentBack() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.back
}

// same reports whether two snapshots have the same objects.
func same(a, b *snapshot.Snapshot) bool {
	for _, list := range files.Lists() {
		for range list.Changes(a, b) {
			return false
		}
	}
	return true
}

// ToCause goes on, or back, to the moment at which a cause of a namespace, or of all, began or ended.
// If the context is done before, or the recording ends, it stays where it is then.
func (p *Past) ToCause(ctx context.Context, later bool, namespace string) (*recording.Missed, error) {
	p.going.Lock()
	defer p.going.Unlock()
	if !later {
		// What begins at this moment is behind.
		if _, err := p.earlier(); err != nil {
			return nil, err
		}
	}
	c := cluster.New(p.now.Snapshot)
	want, err := causeIDs(ctx, c, namespace)
	if err != nil {
		return nil, err
	}
	for {
		missed, err := p.step(later)
		if err != nil {
			return nil, err
		}
		c = c.With(cluster.Between(c.Snapshot, p.now.Snapshot))
		got, err := causeIDs(ctx, c, namespace)
		if err == nil && slices.Equal(want, got) {
			continue
		}
		if err == nil && !later {
			missed, err = p.later()
		}
		return missed, err
	}
}

// causeIDs returns what tells the causes of a cluster apart, sorted.
func causeIDs(ctx context.Context, c *cluster.Cluster, namespace string) ([]string, error) {
	found, err := cause.Find(ctx, c, cause.Options{Namespace: namespace})
	if err != nil {
		return nil, fmt.Errorf("find causes: %w", err)
	}
	ids := make([]string, 0, len(found.Status.Causes))
	for i := range found.Status.Causes {
		ids = append(ids, found.Status.Causes[i].ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
