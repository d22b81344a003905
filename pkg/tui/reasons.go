// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/stale"
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
	code, stage, outlook, summary string
	// actor is who can help, see [explain.Actor]; remedies are what would help.
	actor    string
	remedies []string
	// answer is what the pane of a row draws; nil if there was an error.
	answer *api.Explanation
	// of is the [picture.change] up to which nothing is known that could have made it
	// wrong, at and took when it was worked out, and how long that took.
	of   int
	at   time.Time
	took time.Duration
}

// What time alone changes is worked out again after a while: the more rarely, the
// longer it takes.
const (
	reasonAge      = time.Minute
	reasonAgeTimes = 10000
)

// current reports whether a picture that is looked at now has nothing new about it.
func (r *reason) current(p *picture, now time.Time) bool {
	return r.of == p.change && now.Sub(r.at) < max(reasonAge, reasonAgeTimes*r.took)
}

func newReasons() *reasons { return &reasons{known: map[target]reason{}} }

func (r *reasons) get(of target) reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[of]
}

// keep takes reasons that were found before a change for those after it, unless the change
// may have made them wrong.
func (r *reasons) keep(c *stale.Change, before, after int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for of, found := range r.known {
		if found.of == before && !c.Touches(of.namespace) {
			found.of = after
			r.known[of] = found
		}
	}
}

// version changes with every reason that is found.
func (r *reasons) version() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found
}
