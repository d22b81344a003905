// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

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
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// encoded is a list as an API server sends it.
func encoded(t testing.TB, list runtime.Object) []byte {
	t.Helper()
	kinds, _, err := scheme.Scheme.ObjectKinds(list)
	if err != nil {
		t.Fatal(err)
	}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), protobufType)
	data, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, kinds[0].GroupVersion()), list)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// pruned is all that a pruner returns.
func pruned(p *pruner) ([]byte, error) {
	short, err := p.run()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(short)
}

func decodedList(t testing.TB, data []byte) runtime.Object {
	t.Helper()
	list, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), data)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// twoSlices have something of everything, the second one with partitions.
func twoSlices() *resourceapi.ResourceSliceList {
	device := func(name string) resourceapi.Device {
		return resourceapi.Device{
			Name:       name,
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"model": {StringValue: ptr.To("x")}, "numa": {IntValue: ptr.To(int64(1))}},
			Taints:     []resourceapi.DeviceTaint{{Key: "key", Effect: resourceapi.DeviceTaintEffectNoSchedule}},
		}
	}
	list := &resourceapi.ResourceSliceList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "more", RemainingItemCount: ptr.To(int64(3))}}
	for i := range 2 {
		list.Items = append(list.Items, resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("slice-", i), Labels: map[string]string{"a": "b"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "driver"}},
			},
			Spec: resourceapi.ResourceSliceSpec{Driver: "gpu.example.com", Devices: []resourceapi.Device{device("gpu-0"), device("gpu-1")}},
		})
	}
	list.Items[1].Spec.PartitionTypeAttribute = ptr.To(resourceapi.FullyQualifiedName("gpu.example.com/model"))
	return list
}

func TestPruneLeavesOutNoMore(t *testing.T) {
	fields := append(Fields("metadata.managedFields", "spec.devices.taints.key", "no.such.field"),
		Field{Path: "spec.devices.attributes", Unless: "spec.partitionTypeAttribute"})
	var token string
	p := newPruner(bytes.NewReader(encoded(t, twoSlices())), reflect.TypeFor[resourceapi.ResourceSlice](), fields)
	p.found = func(next string) { token = next }
	short, err := pruned(p)
	if err != nil {
		t.Fatal(err)
	}
	want := twoSlices()
	want.Kind, want.APIVersion = "ResourceSliceList", "resource.k8s.io/v1"
	for i := range want.Items {
		want.Items[i].ManagedFields = nil
		for d := range want.Items[i].Spec.Devices {
			want.Items[i].Spec.Devices[d].Taints[0].Key = ""
		}
	}
	for d := range want.Items[0].Spec.Devices {
		want.Items[0].Spec.Devices[d].Attributes = nil
	}
	if diff := cmp.Diff(want, decodedList(t, short)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if token != "more" {
		t.Errorf("the next chunk starts at %q, want more", token)
	}
}

// TestPruneFailsWhereTheListDoes cuts a list off at every byte: what is left
// must not look like a shorter list.
func TestPruneFailsWhereTheListDoes(t *testing.T) {
	whole := encoded(t, twoSlices())
	for n := len(protobufMagic) + 1; n < len(whole); n++ {
		short, err := pruned(newPruner(bytes.NewReader(whole[:n]), reflect.TypeFor[resourceapi.ResourceSlice](), nil))
		if err != nil {
			continue
		}
		// What comes behind the list in the envelope is empty.
		list, ok := decodedList(t, short).(*resourceapi.ResourceSliceList)
		if !ok || len(list.Items) != 2 {
			t.Errorf("%d of %d bytes: there is no error, but %v", n, len(whole), list)
		}
	}
}

// TestPruneKnowsItsFields fails if a path that is left out of every list is
// misspelled.
func TestPruneKnowsItsFields(t *testing.T) {
	for path, resource := range map[string]string{
		"/api/v1/nodes":                                   ResourceNodes,
		"/api/v1/namespaces/ml/pods":                      ResourcePods,
		"/apis/resource.k8s.io/v1/resourceslices":         ResourceSlices,
		"/proxy/x/apis/resource.k8s.io/v1/resourceclaims": ResourceClaims,
	} {
		listed, object := listedAt(path)
		if listed != resource {
			t.Fatalf("%s lists %q", path, listed)
		}
		for _, field := range neverRead(resource) {
			if fieldNumbers(object, field.Path) == nil {
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

// TestNeverReadIsStripped compares what is left of a pod and a node with what
// stripping leaves of the whole ones.
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
		whole := encoded(t, list)
		resource, object := ResourcePods, reflect.TypeFor[corev1.Pod]()
		if list == runtime.Object(nodes) {
			resource, object = ResourceNodes, reflect.TypeFor[corev1.Node]()
		}
		short, err := pruned(newPruner(bytes.NewReader(whole), object, neverRead(resource)))
		if err != nil {
			t.Fatal(err)
		}
		if len(short) >= len(whole) {
			t.Errorf("%s: nothing was left out", resource)
		}
		want, got := decodedList(t, whole), decodedList(t, short)
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
			Strip(&list.Items[i])
		}
	case *corev1.NodeList:
		for i := range list.Items {
			Strip(&list.Items[i])
		}
	}
}

// TestFetchAsksAhead has a server that holds the end of each chunk back until
// it is asked for the one behind it.
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
		data := encoded(t, list)
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

// TestFetchStartsAgain has a server that forgets the list in the middle of it,
// when it is asked ahead.
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
		_, _ = w.Write(encoded(t, list))
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
	config.Wrap(leaveOutUnread)
	clients, err := connect(config)
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*corev1.Node
	l := (&progress{}).list(ResourceNodes)
	if err := fetch(t.Context(), l, nodeAPI(clients), &nodes); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	return names
}

// FuzzPrune has anything in place of a list. What the decoder takes must be
// the same before and after, if no field is left out.
func FuzzPrune(f *testing.F) {
	f.Add(encoded(f, twoSlices()))
	f.Add([]byte(protobufMagic + "\x12\x02\x12\x00"))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		object := reflect.TypeFor[resourceapi.ResourceSlice]()
		_, _ = pruned(newPruner(bytes.NewReader(data), object, Fields("spec.devices.attributes", "metadata.managedFields")))
		same, err := pruned(newPruner(io.MultiReader(bytes.NewReader(data)), object, nil))
		before, beforeErr := runtime.Decode(scheme.Codecs.UniversalDeserializer(), data)
		if err != nil || beforeErr != nil {
			return
		}
		if list, ok := before.(*resourceapi.ResourceSliceList); ok {
			if diff := cmp.Diff(list, decodedList(t, same)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		}
	})
}
