// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/testsnapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

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
