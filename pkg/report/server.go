// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/drawing"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

//go:embed live.js
var liveScript string

// Server serves the page of a cluster on a path that nobody can guess. It answers questions about
// the last state that it was shown, one at a time, and changes nothing.
type Server struct {
	token string
	// deciding holds the only right to ask the allocator.
	deciding chan struct{}

	mu sync.Mutex
	// shown is the last state, trouble says why there is no later one.
	shown   *state
	trouble string
	// changed is closed when there is another state, or trouble.
	changed chan struct{}
}

// state is a cluster and its page.
type state struct {
	cluster *cluster.Cluster
	content *Content
	html    []byte
}

// NewServer returns a server whose paths begin with a token.
func NewServer(token string) *Server {
	return &Server{token: token, deciding: make(chan struct{}, 1), changed: make(chan struct{})}
}

// Path returns the path of the page.
func (s *Server) Path() string { return "/" + s.token + "/" }

// Show shows another state of the cluster.
func (s *Server) Show(ctx context.Context, c *cluster.Cluster, opts Options) error {
	content, err := Of(ctx, c, opts)
	if err != nil {
		return err
	}
	var html bytes.Buffer
	p := &page{Content: content, Live: true, Script: pageScript + liveScript, connects: "; connect-src 'self'"}
	if err := p.write(&html); err != nil {
		return err
	}
	s.replace(func() { s.shown, s.trouble = &state{c, content, html.Bytes()}, "" })
	return nil
}

// Lost tells readers that the cluster cannot be followed.
func (s *Server) Lost(trouble string) { s.replace(func() { s.trouble = trouble }) }

func (s *Server) replace(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) now() (shown *state, trouble string, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown, s.trouble, s.changed
}

// ServeHTTP answers requests of a browser on this machine: for another host, from another origin, or
// without the token there is nothing.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("X-Frame-Options", "DENY")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-store")
	path, ok := strings.CutPrefix(r.URL.Path, s.Path())
	switch {
	case !isLoopback(r.Host):
		http.Error(w, "this page is for this machine alone: its address is on 127.0.0.1, [::1] or localhost", http.StatusForbidden)
	case !sameOrigin(r):
		http.Error(w, "this page answers to no other page", http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "nothing can be changed here", http.StatusMethodNotAllowed)
	case !ok:
		http.NotFound(w, r)
	default:
		s.serve(w, r, path)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, path string) {
	shown, _, _ := s.now()
	if shown == nil {
		http.Error(w, "the cluster is being read", http.StatusServiceUnavailable)
		return
	}
	switch path {
	case "":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		// A reader that has left needs no error.
		_, _ = w.Write(shown.html)
	case "events":
		s.events(w, r)
	case "why":
		s.reply(w, r, shown, (*state).why)
	case "what-if":
		s.reply(w, r, shown, (*state).whatIf)
	default:
		http.NotFound(w, r)
	}
}

// isLoopback reports whether a request is for this machine: a name that leads here from elsewhere
// is refused.
func isLoopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// sameOrigin reports whether a request comes from the page itself, or from somebody who typed its
// address.
func sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	from, err := url.Parse(origin)
	return err == nil && from.Host == r.Host
}

// events tells a page when there is another state, until it leaves.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for {
		_, _, changed := s.now()
		if err := out.Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
		text := "event: changed\ndata: \n\n"
		if _, trouble, _ := s.now(); trouble != "" {
			text = "event: lost\ndata: " + render.Escape(trouble) + "\n\n"
		}
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
}

// reply is the answer to a question: a problem, an explanation or a drawing.
type reply struct {
	Problem string
	Answer  *row
	Figure  *figure
}

// questionError is the fault of who asks.
type questionError struct{ text string }

func (e *questionError) Error() string { return e.text }

// reply answers a question, one at a time.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, shown *state, answer func(*state, context.Context, url.Values) (*reply, error)) {
	select {
	case <-r.Context().Done():
		return
	case s.deciding <- struct{}{}:
		defer func() { <-s.deciding }()
	}
	found, err := answer(shown, r.Context(), r.URL.Query())
	if r.Context().Err() != nil {
		return
	}
	if err != nil {
		found = &reply{Problem: err.Error()}
		w.WriteHeader(statusOf(err))
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// A reader that has left needs no error.
	_ = writeHTML(w, answered(found))
}

func statusOf(err error) int {
	var wrong *questionError
	var absent *explain.TargetError
	var missing *forecast.NotFoundError
	switch {
	case errors.As(err, &wrong):
		return http.StatusBadRequest
	case errors.As(err, &absent), errors.As(err, &missing):
		return http.StatusNotFound
	default:
		return http.StatusInternalServerError
	}
}

// why explains a pod.
func (s *state) why(ctx context.Context, q url.Values) (*reply, error) {
	namespace, name, ok := strings.Cut(q.Get("pod"), "/")
	if !ok || namespace == "" || name == "" {
		return nil, &questionError{fmt.Sprintf("expected NAMESPACE/NAME of a pod, found %q", q.Get("pod"))}
	}
	answers, err := explain.ExplainEach(ctx, s.cluster, []explain.Options{{Object: api.Ref(api.KindPod, namespace, name)}})
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		return nil, err
	}
	a, err := rowOf(answers[0].Explanation)
	if err != nil {
		return nil, err
	}
	a.ID, a.Name = "answer", namespace+"/"+name
	return &reply{Answer: a}, nil
}

// whatIf decides a change.
func (s *state) whatIf(ctx context.Context, q url.Values) (*reply, error) {
	switch q.Get("change") {
	case "count":
		return s.count(ctx, q)
	case "drain":
		return s.assess(ctx, forecast.Drain(q.Get("node")))
	case "taint-node":
		key, value, effect, err := taintOf(q.Get("taint"))
		if err != nil {
			return nil, err
		}
		return s.assess(ctx, forecast.TaintNode(q.Get("node"), corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}))
	case "taint-pool":
		driver, pool, ok := strings.Cut(q.Get("pool"), "/")
		if !ok || driver == "" || pool == "" {
			return nil, &questionError{fmt.Sprintf("expected DRIVER/POOL, found %q", q.Get("pool"))}
		}
		key, value, effect, err := taintOf(q.Get("taint"))
		if err != nil {
			return nil, err
		}
		rule := &resourceapi.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "what-if"}}
		rule.Spec.DeviceSelector = &resourceapi.DeviceTaintSelector{Driver: ptr.To(driver), Pool: ptr.To(pool)}
		rule.Spec.Taint = resourceapi.DeviceTaint{Key: key, Value: value, Effect: resourceapi.DeviceTaintEffect(effect), TimeAdded: ptr.To(metav1.NewTime(s.cluster.Snapshot.Now()))}
		return s.assess(ctx, forecast.Taint(rule))
	default:
		return nil, &questionError{fmt.Sprintf("expected a change of count, drain, taint-node or taint-pool, found %q", q.Get("change"))}
	}
}

// taintOf reads KEY[=VALUE]:EFFECT.
func taintOf(text string) (key, value, effect string, err error) {
	name, effect, ok := strings.Cut(text, ":")
	key, value, _ = strings.Cut(name, "=")
	if !ok || key == "" || effect != string(corev1.TaintEffectNoSchedule) && effect != string(corev1.TaintEffectNoExecute) {
		return "", "", "", &questionError{fmt.Sprintf("expected KEY=VALUE:NoSchedule or KEY=VALUE:NoExecute, found %q", text)}
	}
	return key, value, effect, nil
}

func (s *state) assess(ctx context.Context, change forecast.Change) (*reply, error) {
	found, err := forecast.Assess(ctx, s.cluster.Snapshot, change)
	if err != nil {
		return nil, err
	}
	return replyOf(drawing.Impact(found), func(w io.Writer, opts render.Options) error {
		return render.Impact(w, found, s.cluster.Snapshot.Now(), opts)
	})
}

func (s *state) count(ctx context.Context, q url.Values) (*reply, error) {
	n, err := strconv.ParseInt(q.Get("count"), 10, 64)
	if err != nil || n < 1 || n > resourceapi.AllocationResultsMaxSize {
		return nil, &questionError{fmt.Sprintf("expected a number of devices from 1 to %d, found %q", resourceapi.AllocationResultsMaxSize, q.Get("count"))}
	}
	class := q.Get("class")
	if s.cluster.Snapshot.Class(class) == nil {
		return nil, &questionError{fmt.Sprintf("there is no DeviceClass %q", class)}
	}
	shape, snap := forecast.ShapeOfClass(s.cluster.Snapshot, metav1.NamespaceDefault, forecast.ClassShape{Class: class, Count: n, Where: q.Get("where")})
	found, err := forecast.CountShape(ctx, s.cluster.Amended(snap), shape, 1)
	if err != nil {
		return nil, err
	}
	return replyOf(drawing.Fit(found), func(w io.Writer, opts render.Options) error { return render.Fit(w, found, opts) })
}

func replyOf(d *drawing.Drawing, write func(io.Writer, render.Options) error) (*reply, error) {
	f := figureOf(d)
	text, err := asText(write)
	f.Text = text
	return &reply{Figure: &f}, err
}
