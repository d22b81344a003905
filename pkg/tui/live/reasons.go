// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// Reasons are why claims are pending and pods wait, as far as that was worked out.
// It is safe for concurrent use.
type Reasons struct {
	mu    sync.Mutex
	known map[api.ObjectRef]Reason
	// found counts the reasons that were ever found.
	found int
}

// Reason is why a claim is pending, or a pod waits.
type Reason struct {
	api.StuckReason
	// Remedies are the changes that would help.
	Remedies []string
	// Answer is drawn in the pane of a row; nil if there was an error.
	Answer *api.Explanation
	// of is the change of a picture up to which nothing is known that could have made it
	// wrong, at and took when it was worked out, and how long that took.
	of   int
	At   time.Time
	took time.Duration
}

// Word returns the code or, if there is none, the verdict.
func (r *Reason) Word() string { return inventory.ReasonWord(&r.StuckReason) }

// current reports whether a picture that is looked at now has nothing new about it.
func (r *Reason) current(p *Picture, now time.Time) bool {
	return r.of == p.change && cluster.Young(r.At, r.took, now)
}

// NewReasons knows none yet.
func NewReasons() *Reasons { return &Reasons{known: map[api.ObjectRef]Reason{}} }

// Get returns a reason; the zero value where it is not known.
func (r *Reasons) Get(of api.ObjectRef) Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[of]
}

// All returns the reasons that are known now.
func (r *Reasons) All() map[api.ObjectRef]Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.known)
}

// Follow takes over to a picture the reasons of the picture before that the change does not
// touch.
func (r *Reasons) Follow(p, before *Picture, d *cluster.Delta) {
	if !d.Any() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for of, found := range r.known {
		if found.of == before.change && !d.Touches(of.Namespace) {
			found.of = p.change
			r.known[of] = found
		}
	}
}

// Version changes with every reason that is found.
func (r *Reasons) Version() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found
}

// Next returns the pending claim or the waiting pod whose reason is most wanted: one
// without any first, then the one whose reason is the oldest. It is false if the picture
// has nothing new about any. Reasons of what does not wait any more are dropped.
func (r *Reasons) Next(p *Picture, now time.Time) (api.ObjectRef, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted := map[api.ObjectRef]bool{}
	var oldest api.ObjectRef
	var since time.Time
	want := func(of api.ObjectRef) {
		wanted[of] = true
		known, ok := r.known[of]
		switch {
		case ok && known.current(p, now):
		case !ok && (oldest == api.ObjectRef{} || !since.IsZero()):
			oldest, since = of, time.Time{}
		case ok && (oldest == api.ObjectRef{} || known.At.Before(since)):
			oldest, since = of, known.At
		}
	}
	for _, claim := range p.Cluster.Snapshot.Claims {
		if snapshot.Pending(claim) {
			want(api.RefTo(api.KindClaim, claim))
		}
	}
	for _, pod := range p.Cluster.Waiting() {
		if of := p.waitsFor[pod]; of.Kind == api.KindPod {
			want(of)
		}
	}
	maps.DeleteFunc(r.known, func(of api.ObjectRef, _ Reason) bool { return !wanted[of] })
	return oldest, oldest != api.ObjectRef{}
}

// Work works out one reason, and reports whether it could finish before the context was
// done.
func (r *Reasons) Work(ctx context.Context, p *Picture, of api.ObjectRef, now time.Time) bool {
	start := time.Now()
	answer, err := answerIn(ctx, p.Cluster, explain.Options{Object: of})
	if ctx.Err() != nil {
		return false
	}
	found := Reason{StuckReason: explain.Reason(answer, err), of: p.change, At: now, took: time.Since(start)}
	if err == nil {
		found.Remedies, found.Answer = render.RemedyLines(answer), widget.Trim(answer)
	}
	r.add(of, found)
	return true
}

func (r *Reasons) add(of api.ObjectRef, found Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[of] = found
	r.found++
}

// maxUsers limits how many pods that wait for one claim are asked about.
const maxUsers = 4

// answerIn answers with the pods before it in the queue: where a pod fits, or a claim that pods
// wait for, those that come first may get what it could have.
func answerIn(ctx context.Context, c *cluster.Cluster, options explain.Options) (*api.Explanation, error) {
	answer, err := explain.ExplainWith(ctx, c, options)
	if err != nil || answer.Verdict != api.Fits {
		return answer, err
	}
	var targets []explain.Options
	switch options.Object.Kind {
	case api.KindPod:
		targets = []explain.Options{options}
	case api.KindClaim:
		claim := c.Snapshot.Claim(options.Object.Namespace, options.Object.Name)
		if claim == nil {
			return answer, nil
		}
		for _, pod := range lifecycle.PodsUsing(c.Snapshot, claim) {
			if snapshot.Waits(pod) && len(targets) < maxUsers {
				targets = append(targets, explain.Options{Object: api.RefTo(api.KindPod, pod)})
			}
		}
	}
	if len(targets) == 0 {
		return answer, nil
	}
	queued, err := explain.ExplainEach(ctx, c, targets)
	if err != nil {
		return nil, fmt.Errorf("decide the pods before: %w", err)
	}
	for _, each := range queued {
		if each.Err != nil || each.Explanation.Verdict != api.DoesNotFit || each.Explanation.Code != api.PodsCompete {
			return answer, nil //nolint:nilerr // what was found without the queue is true
		}
	}
	return queued[0].Explanation, nil
}
