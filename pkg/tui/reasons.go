// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// reasons are why claims are pending, as far as that was worked out. It is
// safe for concurrent use.
type reasons struct {
	mu    sync.Mutex
	known map[types.NamespacedName]reason
	// found counts the reasons that were ever found.
	found int
}

type reason struct {
	code, stage, summary string
	// of is what it was worked out from.
	of *snapshot.Snapshot
	at time.Time
}

func newReasons() *reasons { return &reasons{known: map[types.NamespacedName]reason{}} }

func (r *reasons) get(namespace, name string) (reason, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.known[types.NamespacedName{Namespace: namespace, Name: name}]
	return found, ok
}

// version changes with every reason that is found.
func (r *reasons) version() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found
}

// next is the pending claim whose reason is most wanted: one without any
// first, then the one whose reason is the oldest. It is nil if all are as new
// as the picture. Reasons of claims that are not pending any more are dropped.
func (r *reasons) next(p *picture) *resourceapi.ResourceClaim {
	r.mu.Lock()
	defer r.mu.Unlock()
	pending := map[types.NamespacedName]bool{}
	var oldest *resourceapi.ResourceClaim
	var since time.Time
	for _, claim := range p.snap.Claims {
		if claim.Status.Allocation != nil || claim.DeletionTimestamp != nil {
			continue
		}
		key := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
		pending[key] = true
		known, ok := r.known[key]
		switch {
		case ok && known.of == p.snap:
		case !ok && (oldest == nil || !since.IsZero()):
			oldest, since = claim, time.Time{}
		case ok && (oldest == nil || known.at.Before(since)):
			oldest, since = claim, known.at
		}
	}
	for key := range r.known {
		if !pending[key] {
			delete(r.known, key)
		}
	}
	return oldest
}

// work works out one reason. It is false if the context is done.
func (r *reasons) work(ctx context.Context, p *picture, claim *resourceapi.ResourceClaim, now time.Time) bool {
	answer, err := explain.ExplainWith(ctx, p.alloc, p.snap, explain.Options{Kind: explain.KindClaim, Namespace: claim.Namespace, Name: claim.Name})
	if ctx.Err() != nil {
		return false
	}
	found := reason{of: p.snap, at: now}
	if err != nil {
		found.code, found.summary = string(explain.Undetermined), err.Error()
	} else {
		found.code, found.stage, found.summary = answer.Word(), string(answer.Stage), answer.Summary
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = found
	r.found++
	return true
}
