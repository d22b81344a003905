// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
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

// failWhenLost wraps a connection to the API server, so that a connection without an answer
// is an error at once. Answers with Retry-After are still waited for by client-go.
func failWhenLost(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		var network net.Error
		switch {
		case err == nil, request.Context().Err() != nil:
		case utilnet.IsConnectionReset(err), utilnet.IsProbableEOF(err), lostHTTP2Connection(err), errors.As(err, &network) && network.Timeout():
			return nil, &noAnswerError{err: err}
		}
		return response, err
	})
}

// settleTime is how long a watch without events goes on before it counts as working. The
// reflector takes watches that end within a second for broken.
const settleTime = 2 * time.Second

// settled passes a watch on. It calls heard for each event, works once there was one or it has gone on for
// some time, and broken if it ends before, unless it only says that its version of
// the list is too old.
func settled(events watch.Interface, heard, works func(), broken func(error)) watch.Interface {
	out := make(chan watch.Event)
	passed := watch.NewProxyWatcher(out)
	go func() {
		defer close(out)
		defer events.Stop()
		soon := time.NewTimer(settleTime)
		defer soon.Stop()
		pending := true
		settle := func(outcome func()) {
			if pending {
				pending = false
				outcome()
			}
		}
		for {
			select {
			case <-passed.StopChan():
				return
			case <-soon.C:
				settle(works)
			case event, open := <-events.ResultChan():
				switch {
				case !open:
					settle(func() { broken(&noAnswerError{err: io.EOF}) })
					return
				case event.Type == watch.Error:
					settle(func() { broken(apierrors.FromObject(event.Object)) })
				default:
					settle(works)
				}
				heard()
				select {
				case <-passed.StopChan():
					return
				case out <- event:
				}
			}
		}
	}()
	return passed
}

// Lists are long, and of each object the program looks at little. What it does
// not look at is taken out of a list in the protobuf format while that arrives,
// object by object, so that it is never decoded. A list in another format, or
// of another API version, stays as it is: nobody looks at these fields.

// unusedKey is the context key of [withUnused].
type unusedKey struct{}

// withUnused returns a context for reading without some fields, by resource.
func withUnused(ctx context.Context, unused map[string][]kinds.Field) context.Context {
	return context.WithValue(ctx, unusedKey{}, unused)
}

// nextChunkKey is the context key of [withNextChunk].
type nextChunkKey struct{}

// withNextChunk returns a context with which found is called as soon as the server says
// where the next chunk of a list starts, unless the chunk that is read is the last.
func withNextChunk(ctx context.Context, found func(token string)) context.Context {
	return context.WithValue(ctx, nextChunkKey{}, found)
}

// pruneUnused wraps a connection to the API server.
func pruneUnused(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil || request.Method != http.MethodGet || response.StatusCode != http.StatusOK ||
			request.URL.Query().Get("watch") != "" || response.Header.Get("Content-Type") != protobufType {
			return response, err
		}
		resource, object := listedAt(request.URL.Path)
		if object == nil {
			return response, nil
		}
		unused, _ := request.Context().Value(unusedKey{}).(map[string][]kinds.Field)
		fields := slices.Concat(kinds.NeverRead(resource), unused[resource])
		nextChunk, _ := request.Context().Value(nextChunkKey{}).(func(string))
		response.Body = &withoutFields{kinds.NewReader(response.Body, object, fields, nextChunk), response.Body}
		response.Header.Del("Content-Length")
		response.ContentLength = -1
		return response, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

const protobufType = "application/vnd.kubernetes.protobuf"

// listedAt tells of which resource there is a list at a path, and what its
// objects are.
func listedAt(path string) (resource string, object reflect.Type) {
	for _, list := range []struct {
		version, plural, resource string
		object                    reflect.Type
	}{
		{"/api/v1/", "nodes", snapshot.ResourceNodes, reflect.TypeFor[corev1.Node]()},
		{"/api/v1/", "pods", snapshot.ResourcePods, reflect.TypeFor[corev1.Pod]()},
		{"/apis/resource.k8s.io/v1/", "resourceslices", snapshot.ResourceSlices, reflect.TypeFor[resourceapi.ResourceSlice]()},
		{"/apis/resource.k8s.io/v1/", "resourceclaims", snapshot.ResourceClaims, reflect.TypeFor[resourceapi.ResourceClaim]()},
	} {
		_, rest, found := strings.Cut(path, list.version)
		parts := strings.Split(rest, "/")
		if found && (len(parts) == 1 || len(parts) == 3 && parts[0] == "namespaces") && parts[len(parts)-1] == list.plural {
			return list.resource, list.object
		}
	}
	return "", nil
}

// withoutFields is the body of a response with a list.
type withoutFields struct {
	io.Reader
	io.Closer
}
