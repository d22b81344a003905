// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// maxSilence limits how long a server may take until an answer begins, and from one
	// portion of it to the next. API servers end a request of any other kind than a watch
	// after 60 seconds, and refuse after 15 what they have no time for. A longer
	// --request-timeout counts instead.
	maxSilence = 15 * time.Second
	// portion is how much of a list has to come in this time.
	portion = 16 << 10
	// maxAnswer limits how many bytes an answer other than a list has at most; etcd stores
	// no object of more than 1.5 MiB.
	maxAnswer = 16 << 20
	// maxInFlight limits how many bytes of answers are in memory at most before they are
	// decoded, and maxList is the limit for a list that is read in one piece.
	maxInFlight = 128 << 20
	maxList     = 1 << 30
	// maxRetryAfter limits how long a request waits at most, all in all, because the server
	// asks for that.
	maxRetryAfter = 10 * time.Second
)

func (e *refusedError) Error() string { return e.problem }

// guard bounds what a server can make the program do: the credentials are sent to
// no other host, and no answer takes memory or time without end. A watch, an exec
// and whatever its readers bound themselves (metrics and logs) may go on.
type guard struct {
	silence  time.Duration
	inFlight atomic.Int64

	mu sync.Mutex
	// waited is how long requests were asked to wait, by method and URL.
	waited map[string]time.Duration
}

// guarded wraps the connection of a config.
func guarded(config *rest.Config) *rest.Config {
	g := &guard{silence: max(maxSilence, config.Timeout), waited: map[string]time.Duration{}}
	config.Wrap(g.wrap)
	return config
}

func (g *guard) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithCancelCause(request.Context())
		silent := &refusedError{fmt.Sprintf("no answer within %s; it is overloaded, or something before it is in the way; --request-timeout sets a longer time", g.silence)}
		timer := time.AfterFunc(g.silence, func() { cancel(silent) })
		if request.Method != http.MethodGet || streams(request.URL) {
			// What is written may wait for webhooks.
			timer.Stop()
		}
		end := func() { timer.Stop(); cancel(nil) }
		response, err := next.RoundTrip(request.WithContext(ctx))
		if err != nil {
			if errors.Is(context.Cause(ctx), silent) {
				err = silent
			}
			end()
			return response, err
		}
		if err := redirected(response); err != nil {
			end()
			_ = response.Body.Close()
			return nil, err
		}
		g.boundRetries(request, response)
		if response.StatusCode == http.StatusSwitchingProtocols || streams(request.URL) {
			timer.Stop()
			return response, nil
		}
		limit := int64(maxAnswer)
		query := request.URL.Query()
		_, listed := listedAt(request.URL.Path)
		list := query.Has("limit") || listed != nil
		switch {
		case query.Has("limit"):
			limit = maxInFlight
		case list:
			limit = maxList
		}
		timer.Reset(g.silence)
		response.Body = &boundedBody{ReadCloser: response.Body, guard: g, ctx: ctx, limit: limit, list: list, timer: timer, end: end}
		return response, nil
	})
}

// streams reports whether the answer goes on for as long as it is read.
func streams(u *url.URL) bool {
	query := u.Query()
	return query.Has("watch") || strings.HasSuffix(u.Path, "/metrics") || strings.HasSuffix(u.Path, "/log") || strings.HasSuffix(u.Path, "/exec")
}

// redirected returns an error if an answer points to another place. net/http would follow
// it and client-go add the credentials of the user, whatever the place is.
func redirected(response *http.Response) error {
	switch response.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil
	}
	to := "nowhere"
	if location, err := response.Location(); err == nil {
		to = firstLine((&url.URL{Scheme: location.Scheme, Host: location.Host, Path: location.Path}).String())
	}
	return &refusedError{fmt.Sprintf("it redirects to %s (%s); redirects are not followed, since that would send the credentials there", to, http.StatusText(response.StatusCode))}
}

// boundRetries makes an answer final that asks for too long a wait. Otherwise client-go
// waits for as long as the answer says, and up to ten times.
func (g *guard) boundRetries(request *http.Request, response *http.Response) {
	key := request.Method + " " + request.URL.String()
	seconds, err := strconv.ParseInt(response.Header.Get("Retry-After"), 10, 64)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		delete(g.waited, key)
		return
	}
	wait := time.Duration(min(max(seconds, 1), int64(time.Hour/time.Second))) * time.Second
	if g.waited[key] += wait; g.waited[key] > maxRetryAfter {
		delete(g.waited, key)
		response.Header.Del("Retry-After")
	}
}

// boundedBody is the body of an answer, within the bounds of its guard.
type boundedBody struct {
	io.ReadCloser
	guard *guard
	ctx   context.Context //nolint:containedctx // it ends with the request, as the body does
	limit int64
	list  bool
	timer *time.Timer
	end   func()
	// count is how many bytes came, due how many have to until the timer is set again.
	count, due int64
}

// Read reads on, unless a bound is exceeded.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.count += int64(n)
	total := b.guard.inFlight.Add(int64(n))
	if err != nil {
		b.timer.Stop()
		if refused := (*refusedError)(nil); errors.As(context.Cause(b.ctx), &refused) {
			err = &refusedError{fmt.Sprintf("its answer does not end within %s; --request-timeout sets a longer time", b.guard.silence)}
		}
		return n, err
	}
	if b.list && b.count >= b.due+portion {
		b.due = b.count
		b.timer.Reset(b.guard.silence)
	}
	if b.count > b.limit || b.limit <= maxInFlight && total > maxInFlight {
		return n, &refusedError{fmt.Sprintf("its answer does not end: it has more than %d MiB", min(b.limit, maxInFlight)>>20)}
	}
	return n, nil
}

// Close ends the request.
func (b *boundedBody) Close() error {
	b.guard.inFlight.Add(-b.count)
	b.count = 0
	b.end()
	return b.ReadCloser.Close()
}
