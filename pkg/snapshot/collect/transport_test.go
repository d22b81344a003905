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
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationapi "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/testsnapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
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

// TestPruneKnowsItsFields fails if a path that is left out of every list is
// misspelled.
func TestPruneKnowsItsFields(t *testing.T) {
	for path, resource := range map[string]string{
		"/api/v1/nodes":                                   snapshot.ResourceNodes,
		"/api/v1/namespaces/ml/pods":                      snapshot.ResourcePods,
		"/apis/resource.k8s.io/v1/resourceslices":         snapshot.ResourceSlices,
		"/proxy/x/apis/resource.k8s.io/v1/resourceclaims": snapshot.ResourceClaims,
	} {
		listed, object := listedAt(path)
		if listed != resource {
			t.Fatalf("%s lists %q", path, listed)
		}
		for _, field := range kinds.NeverRead(resource) {
			if kinds.FieldNumbers(object, field.Path) == nil {
				t.Errorf("%s have no field %s", resource, field.Path)
			}
		}
	}
	for _, path := range []string{
		"/apis/resource.k8s.io/v1beta1/resourceslices", "/api/v1/namespaces/ml/pods/pods", "/api/v1/nodes/nodes", "/metrics",
	} {
		if listed, _ := listedAt(path); listed != "" {
			t.Errorf("%s is taken for a list of %s", path, listed)
		}
	}
}

// TestNeverReadIsStripped compares pods and nodes read without unused fields with stripped
// whole ones.
func TestNeverReadIsStripped(t *testing.T) {
	probe := &corev1.Probe{PeriodSeconds: 3}
	container := corev1.Container{
		Name: "main", Image: "image", Command: []string{"a"}, Args: []string{"b"}, WorkingDir: "/",
		Env:           []corev1.EnvVar{{Name: "A", Value: "b"}},
		EnvFrom:       []corev1.EnvFromSource{{Prefix: "p"}},
		VolumeMounts:  []corev1.VolumeMount{{Name: "data"}},
		Resources:     corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}},
		LivenessProbe: probe, ReadinessProbe: probe, StartupProbe: probe,
		Lifecycle:       &corev1.Lifecycle{},
		SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
	}
	pods := &corev1.PodList{Items: []corev1.Pod{{
		ObjectMeta: metav1.ObjectMeta{Name: "pod", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}},
		Spec: corev1.PodSpec{
			NodeName: "node", InitContainers: []corev1.Container{container}, Containers: []corev1.Container{container, container},
			EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, EphemeralContainerStatuses: []corev1.ContainerStatus{{Name: "debug"}}},
	}}}
	nodes := &corev1.NodeList{Items: []corev1.Node{{
		ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{"a": "b"}},
		Status: corev1.NodeStatus{
			Images: []corev1.ContainerImage{{SizeBytes: 1}}, VolumesInUse: []corev1.UniqueVolumeName{"v"},
			VolumesAttached: []corev1.AttachedVolume{{Name: "v"}}, NodeInfo: corev1.NodeSystemInfo{KernelVersion: "6"},
		},
	}}}
	for _, list := range []runtime.Object{pods, nodes} {
		whole := testsnapshot.Encode(t, list)
		resource, object := snapshot.ResourcePods, reflect.TypeFor[corev1.Pod]()
		if list == runtime.Object(nodes) {
			resource, object = snapshot.ResourceNodes, reflect.TypeFor[corev1.Node]()
		}
		short, err := io.ReadAll(kinds.NewReader(bytes.NewReader(whole), object, kinds.NeverRead(resource), nil))
		if err != nil {
			t.Fatal(err)
		}
		if len(short) >= len(whole) {
			t.Errorf("%s: nothing was left out", resource)
		}
		want, got := testsnapshot.Decode(t, whole), testsnapshot.Decode(t, short)
		stripAll(want)
		stripAll(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", resource, diff)
		}
	}
}

func stripAll(list runtime.Object) {
	switch list := list.(type) {
	case *corev1.PodList:
		for i := range list.Items {
			kinds.Strip(&list.Items[i])
		}
	case *corev1.NodeList:
		for i := range list.Items {
			kinds.Strip(&list.Items[i])
		}
	}
}

// TestFetchAsksAhead covers a server that holds the end of each chunk back until it is
// asked for the one behind it.
func TestFetchAsksAhead(t *testing.T) {
	const chunks = 4
	var asked [chunks]chan struct{}
	for i := range asked {
		asked[i] = make(chan struct{})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := len(r.URL.Query().Get("continue"))
		close(asked[at])
		list := &corev1.NodeList{Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", at)}}}}
		if at+1 < chunks {
			list.Continue = strings.Repeat("x", at+1)
		}
		data := testsnapshot.Encode(t, list)
		w.Header().Set("Content-Type", protobufType)
		_, _ = w.Write(data[:len(data)-1])
		if at+1 < chunks {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-asked[at+1]:
			case <-r.Context().Done():
			}
		}
		_, _ = w.Write(data[len(data)-1:])
	}))
	defer server.Close()
	got := fetchNodes(t, server.URL)
	if want := []string{"node-0", "node-1", "node-2", "node-3"}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestFetchStartsAgain covers a server that forgets the list in the middle of it, when it
// is asked ahead.
func TestFetchStartsAgain(t *testing.T) {
	var forgotten atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if query.Get("continue") == "second" {
			forgotten.Store(true)
			refuse(http.StatusGone, metav1.StatusReasonExpired)(w, r)
			return
		}
		list := &corev1.NodeList{Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}}}}
		if query.Get("limit") != "" {
			list.Continue = "second"
		} else {
			list.Items = append(list.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})
		}
		w.Header().Set("Content-Type", protobufType)
		_, _ = w.Write(testsnapshot.Encode(t, list))
	}))
	defer server.Close()
	got := fetchNodes(t, server.URL)
	if want := []string{"node-0", "node-1"}; !cmp.Equal(got, want) || !forgotten.Load() {
		t.Errorf("got %v, want %v", got, want)
	}
}

func fetchNodes(t *testing.T, url string) []string {
	t.Helper()
	config := &rest.Config{Host: url}
	config.AcceptContentTypes, config.ContentType = protobufType, protobufType
	config.Wrap(pruneUnused)
	clients, err := connect(config)
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*corev1.Node
	l := (&progress{}).list(snapshot.ResourceNodes)
	if err := fetch(t.Context(), l, nodeAPI(clients), &nodes); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	return names
}
