// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
)

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
