// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

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
