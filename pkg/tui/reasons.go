// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// reasons are why claims are pending and pods wait, as far as that was worked out.
// It is safe for concurrent use.
type reasons struct {
	mu    sync.Mutex
	known map[target]reason
	// found counts the reasons that were ever found.
	found int
}

// target is a claim or a pod, by the kind that [explain.Options] has.
type target struct{ kind, namespace, name string }

func claimTarget(namespace, name string) target { return target{api.KindClaim, namespace, name} }

func podTarget(pod *corev1.Pod) target { return target{api.KindPod, pod.Namespace, pod.Name} }

type reason struct {
	code, stage, summary string
	// of is what it was worked out from.
	of *snapshot.Snapshot
	at time.Time
}

func newReasons() *reasons { return &reasons{known: map[target]reason{}} }

func (r *reasons) get(of target) reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[of]
}

// version changes with every reason that is found.
func (r *reasons) version() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found
}

// next is the pending claim or the waiting pod whose reason is most wanted: one
// without any first, then the one whose reason is the oldest. It is false if all are
// as new as the picture. Reasons of what does not wait any more are dropped.
func (r *reasons) next(p *picture) (target, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted := map[target]bool{}
	var oldest target
	var since time.Time
	want := func(of target) {
		wanted[of] = true
		known, ok := r.known[of]
		switch {
		case ok && known.of == p.snap:
		case !ok && (oldest == target{} || !since.IsZero()):
			oldest, since = of, time.Time{}
		case ok && (oldest == target{} || known.at.Before(since)):
			oldest, since = of, known.at
		}
	}
	for _, claim := range p.snap.Claims {
		if isPending(claim) {
			want(claimTarget(claim.Namespace, claim.Name))
		}
	}
	for _, pod := range p.waiting {
		want(podTarget(pod))
	}
	maps.DeleteFunc(r.known, func(of target, _ reason) bool { return !wanted[of] })
	return oldest, oldest != target{}
}

// work works out one reason. It is false if the context is done.
func (r *reasons) work(ctx context.Context, p *picture, of target, now time.Time) bool {
	answer, err := explain.ExplainWith(ctx, p.alloc, p.snap, explain.Options{Kind: of.kind, Namespace: of.namespace, Name: of.name})
	if ctx.Err() != nil {
		return false
	}
	found := reason{of: p.snap, at: now}
	if err != nil {
		found.code, found.summary = string(api.Undetermined), strings.ReplaceAll(err.Error(), "\n", "; ")
	} else {
		found.code, found.stage, found.summary = explain.Word(answer), string(answer.Stage), answer.Summary
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[of] = found
	r.found++
	return true
}
