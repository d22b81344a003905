// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// health knows whether all watches of a server work, and that something changed.
type health struct {
	server  string
	changed chan struct{}

	mu sync.Mutex
	// trouble has the current errors, by resource.
	trouble map[string]error
	// since is when the first of it began.
	since time.Time
	// answered is when the server was last heard of.
	answered time.Time
	// back is closed when a server that is silent says something again; nil while it is not.
	back chan struct{}
}

func newHealth(server string) *health {
	return &health{server: server, changed: make(chan struct{}, 1), trouble: map[string]error{}, answered: time.Now()}
}

// Changed gets a value after anything changed, also after [Watcher.Trouble]
// did. Changes that come before it is read are one.
func (h *health) Changed() <-chan struct{} { return h.changed }

// Trouble tells what does not work at the moment, and since when; nil if
// everything does. The snapshot stays what it was then.
func (h *health) Trouble() (since time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, resource := range slices.Sorted(maps.Keys(h.trouble)) {
		return h.since, h.trouble[resource]
	}
	return time.Time{}, nil
}

// Answered returns when the server last said anything: an event, or that it is there.
func (h *health) Answered() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answered
}

// asOf returns the time for which the lists are known: now, unless the server is silent.
func (h *health) asOf() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trouble[silence] != nil {
		return h.answered
	}
	return time.Now()
}

// heard notes that the server said something.
func (h *health) heard() {
	h.mu.Lock()
	h.answered = time.Now()
	h.mu.Unlock()
}

// awaitTimeout is how long [health.await] waits: the request that notices a recovered
// server may be refused where lists are not.
const awaitTimeout = 10 * time.Second

// await waits while the server is silent. One asks for all whether it is back; then all go on
// at once, and not when it is their turn to try again.
func (h *health) await(ctx context.Context) {
	h.mu.Lock()
	back := h.back
	h.mu.Unlock()
	if back == nil {
		return
	}
	timeout := time.NewTimer(awaitTimeout)
	defer timeout.Stop()
	select {
	case <-ctx.Done():
	case <-back:
	case <-timeout.C:
	}
}

func (h *health) notify() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// failed notes that a resource cannot be followed.
func (h *health) failed(resource string, err error) {
	h.mu.Lock()
	if len(h.trouble) == 0 {
		h.since = time.Now()
	}
	if resource == silence {
		h.since = h.answered
		if h.back == nil {
			h.back = make(chan struct{})
		}
	}
	before, now := h.trouble[resource], serverError(context.Background(), h.server, err)
	h.trouble[resource] = now
	h.mu.Unlock()
	// That an attempt fails like the one before is nothing new.
	if before == nil || before.Error() != now.Error() {
		h.notify()
	}
}

// works notes that a resource is followed.
func (h *health) works(resource string) {
	h.mu.Lock()
	_, failed := h.trouble[resource]
	delete(h.trouble, resource)
	if resource == silence && h.back != nil {
		close(h.back)
		h.back = nil
	}
	h.mu.Unlock()
	if failed {
		h.notify()
	}
}

// silence is the trouble of a server that says nothing at all. In the order of
// resources it comes first: it explains all others.
const silence = ""

// pulse says how a server that went silent is noticed. A watch over a connection
// on which nothing comes any more looks like one without events until the transport
// gives the connection up, which takes most of a minute.
type pulse struct {
	// every is how long a server may be silent before it is asked whether it is there.
	every time.Duration
	// within is how long it may take to answer that.
	within time.Duration
	// again is how long to wait before a silent server is asked again. Nobody else asks it
	// meanwhile, see [health.await].
	again time.Duration
}

// defaultPulse notices within eight seconds.
func defaultPulse() pulse {
	return pulse{every: 3 * time.Second, within: 5 * time.Second, again: time.Second}
}

// run asks until the context is done. The question is the cheapest that every
// user may ask: for the version.
func (p pulse) run(ctx context.Context, h *health, clients Clients) {
	next := time.NewTimer(p.every)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		if silent := time.Since(h.Answered()); silent < p.every {
			next.Reset(p.every - silent)
			continue
		}
		err := p.ask(ctx, clients)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			h.heard()
			h.works(silence)
			next.Reset(p.every)
		} else {
			h.failed(silence, err)
			next.Reset(p.again)
		}
	}
}

// ask returns nil if there was an answer, even a refusal.
func (p pulse) ask(ctx context.Context, clients Clients) error {
	ctx, cancel := context.WithTimeout(ctx, p.within)
	defer cancel()
	err := clients.Discovery.RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(ctx).Error()
	if apierrors.IsForbidden(err) || apierrors.IsTooManyRequests(err) {
		return nil
	}
	return err
}
