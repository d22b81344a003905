// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationapi "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

// TestRedirectsAreNotFollowed covers a server redirect each kind of request to another one,
// which must not be asked: it would get the token.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		t.Errorf("%s %s arrived, with %q", r.Method, r.URL, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, strings.Replace(other.URL, "http://", "http://user:secret@", 1)+r.URL.Path+"?token=secret", code)
		}))
		defer server.Close()
		flags := flagsFor(t, server.URL)
		token := "top-secret"
		flags.BearerToken = &token
		clients, err := NewClients(flags)
		if err != nil {
			t.Fatal(err)
		}
		executor, err := clients.Executor("ml", "pod", &corev1.PodExecOptions{Command: []string{"true"}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		for name, ask := range map[string]func() error{
			"collect": func() error { _, err := Collect(ctx, clients, Options{}); return err },
			"watch":   func() error { _, err := clients.Pods("").Watch(ctx, metav1.ListOptions{}); return err },
			"metrics": func() error { _, err := readGates(ctx, clients); return err },
			"kubelet": func() error { _, err := KubeletGates(ctx, clients, "node"); return err },
			"log": func() error {
				return clients.Discovery.RESTClient().Get().AbsPath("/api/v1/namespaces/ml/pods/pod/log").Do(ctx).Error()
			},
			"mapper": func() error { _, err := clients.Resolve("trains"); return err },
			"review": func() error {
				_, err := clients.AccessReviews().Create(ctx, &authorizationapi.SelfSubjectAccessReview{}, metav1.CreateOptions{})
				return err
			},
			"write": func() error { return clients.Pods("ml").Delete(ctx, "pod", metav1.DeleteOptions{}) },
			"exec":  func() error { return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: io.Discard}) },
		} {
			err := ask()
			if err == nil || !strings.Contains(err.Error(), "redirects to "+other.URL+"/") || strings.Contains(err.Error(), "secret@") || strings.Contains(err.Error(), "token=") {
				t.Errorf("%d, %s: got %v", code, name, err)
			}
		}
	}
	if asked.Load() > 0 {
		t.Error("the other server was asked")
	}
}

// endless writes a text again and again.
func endless(before, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, err := io.WriteString(w, before)
		for many := []byte(strings.Repeat(text, 64<<10/len(text))); err == nil; {
			_, err = w.Write(many)
		}
	}
}

// TestAnswersWithoutEnd gives up on them.
func TestAnswersWithoutEnd(t *testing.T) {
	var chunks atomic.Int64
	list := func(items int, token func(n int64) string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			var all bytes.Buffer
			for i := range items {
				fmt.Fprintf(&all, `,{"metadata":{"name":"n%d"}}`, i)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":%q},"items":[%s]}`,
				token(chunks.Add(1)), strings.TrimPrefix(all.String(), ","))
		}
	}
	wait := func(code int, seconds string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", seconds)
			refuse(code, "")(w, r)
		}
	}
	for _, tc := range []struct {
		name, path string
		answer     http.HandlerFunc
		want       string
	}{
		{"version", "/version", endless(`{"gitVersion":"`, "v1"), "it has more than 16 MiB"},
		{"spaces", "/version", endless("", " "), "it has more than 16 MiB"},
		{"discovery", "/apis/resource.k8s.io/v1", endless(`{"resources":[`, `{"name":"a"},`), "it has more than 16 MiB"},
		{"list", "/api/v1/nodes", endless(`{"items":[`, `{"metadata":{"name":"a"}},`), "it has more than 128 MiB"},
		{"same token", "/api/v1/nodes", list(500, func(int64) string { return "again" }), "it repeats a continue token"},
		{"two tokens", "/api/v1/nodes", list(500, func(n int64) string { return fmt.Sprint(n % 2) }), "it repeats a continue token"},
		{"short chunks", "/api/v1/nodes", list(1, func(n int64) string { return fmt.Sprint(n) }), "chunks have fewer than 500 objects"},
		{"full chunks", "/api/v1/nodes", list(500, func(n int64) string { return fmt.Sprint(n) }), "it has more than 200000 objects"},
		{"retry 429", "/api/v1/nodes", wait(http.StatusTooManyRequests, "999999"), "it is overloaded (429 Too Many Requests)"},
		{"retry 503", "/version", wait(http.StatusServiceUnavailable, "9223372036854775807"), "it is not ready"},
		{"retry 500", "/api/v1/nodes", wait(http.StatusInternalServerError, "20"), "it answered 500"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			start := start(t, smallCluster().with(apiServer{tc.path: tc.answer}))
			_, err := Collect(t.Context(), start, Options{})
			if err == nil || !strings.HasPrefix(err.Error(), "ask API server "+start.Address()) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestSilentServer gives up on a server that says nothing, or next to nothing.
func TestSilentServer(t *testing.T) {
	drip := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		next := time.NewTicker(5 * time.Millisecond)
		defer next.Stop()
		for {
			_, _ = io.WriteString(w, " ")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-next.C:
			case <-r.Context().Done():
				return
			}
		}
	}
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, tc := range map[string]struct {
		path   string
		answer http.HandlerFunc
		want   string
	}{
		"silent version": {"/version", hang, "no answer within 300ms"},
		"silent list":    {"/api/v1/nodes", hang, "no answer within 300ms"},
		"slow version":   {"/version", drip, "its answer does not end within 300ms"},
		"slow list":      {"/api/v1/nodes", drip, "its answer does not end within 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(smallCluster().with(apiServer{tc.path: tc.answer}))
			defer server.Close()
			config := &rest.Config{Host: server.URL}
			config.Wrap((&guard{silence: 300 * time.Millisecond, waited: map[string]time.Duration{}}).wrap)
			_, err := Collect(t.Context(), clientsFor(t, config), Options{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestWatchWithoutEnd stops to keep what a watch brings, be it new, changed or gone.
func TestWatchWithoutEnd(t *testing.T) {
	node := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	for name, event := range map[string]func(*watchedList[*corev1.Node], any) error{
		"new": (*watchedList[*corev1.Node]).Add, "changed": (*watchedList[*corev1.Node]).Update, "gone": (*watchedList[*corev1.Node]).Delete,
	} {
		l := &watchedList[*corev1.Node]{
			health: newHealth("https://example.com"), resource: "nodes", changes: map[objectName]*(*corev1.Node){}, leftOut: map[string]error{},
			api:    endpoint[*corev1.Node]{convert: asNode},
			sorted: make([]*corev1.Node, maxObjects),
		}
		if err := event(l, node("last")); err != nil || len(l.changes) != 1 {
			t.Errorf("%s: %v, %d changes", name, err, len(l.changes))
		}
		for i := range maxObjects {
			l.changes[nameOf(node(fmt.Sprint(i)))] = nil
		}
		before := len(l.changes)
		if err := event(l, node("more")); err != nil || len(l.changes) > before {
			t.Errorf("%s: %v, %d changes", name, err, len(l.changes))
		}
		if _, err := l.health.Trouble(); err == nil || !strings.Contains(err.Error(), "a watch of it does not end: it has more than 200000 objects") {
			t.Errorf("%s: trouble %v", name, err)
		}
	}
}

// TestLongMessages cuts what a server says at 2,000 characters.
func TestLongMessages(t *testing.T) {
	clients := start(t, smallCluster().with(apiServer{"/api/v1/nodes": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: strings.Repeat("ü", 5000),
		})
	})}))
	_, err := Collect(t.Context(), clients, Options{})
	if err == nil || !strings.Contains(err.Error(), ": "+strings.Repeat("ü", 2000)+"…") {
		t.Errorf("got %v", err)
	}
}

// TestShortRetryAfter waits as long as the server asks, where that is short.
func TestShortRetryAfter(t *testing.T) {
	var asked atomic.Int64
	clients := start(t, smallCluster().with(apiServer{"/api/v1/nodes": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			refuse(http.StatusTooManyRequests, "")(w, r)
			return
		}
		smallCluster().ServeHTTP(w, r)
	})}))
	s, err := Collect(context.Background(), clients, Options{})
	if err != nil || len(s.Nodes) != 2 {
		t.Errorf("got %v", err)
	}
}

func asNode(object any) (*corev1.Node, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return nil, fmt.Errorf("a %T", object)
	}
	return node, nil
}
