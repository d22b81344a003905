// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// TestListingsNeedNoMore lists random clusters from an API server, where each
// verb leaves out what it does not look at, and from a file, which has
// everything. Both have to print the same.
func TestListingsNeedNoMore(t *testing.T) {
	seeds := uint64(30)
	if testing.Short() {
		seeds = 10
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	// Hundreds of small runs in one process have no use for a reserve of memory each.
	t.Setenv("GOGC", "100")
	for seed := range seeds {
		snap := fleet.Random(seed).Snapshot
		withoutAges(snap)
		if seed%2 == 0 {
			decorate(snap)
		}
		path := filepath.Join(t.TempDir(), "cluster.json")
		if err := files.Save(t.Context(), snap, path); err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(servedSnapshot{snap})
		for _, verb := range []string{"slices", "pools", "devices", "claims -A", "classes", "attributes", "taints", "nodes", "usage -A", "usage -A --by owner"} {
			for _, output := range []string{"", "wide", "json"} {
				args := append(strings.Fields(verb), "-o", output)
				live := stdoutOf(t, append(args, "--server", server.URL)...)
				whole := stdoutOf(t, append(args, "--snapshot", path)...)
				if live != whole {
					t.Errorf("seed %d, %v: from the server\n%s\nfrom a file\n%s", seed, args, live, whole)
				}
			}
		}
		server.Close()
	}
}

func stdoutOf(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr}
	if code := Run(t.Context(), args, streams, Build{Version: "v0.0.0-test"}); code != 0 {
		t.Fatalf("%v: exit code %d\n%s", args, code, stderr.String())
	}
	return stdout.String()
}

// withoutAges makes a cluster look the same at any time.
func withoutAges(s *snapshot.Snapshot) {
	never := func(object metav1.Object) { object.SetCreationTimestamp(metav1.Time{}) }
	for _, o := range s.Slices {
		never(o)
	}
	for _, o := range s.Nodes {
		never(o)
	}
	for _, o := range s.Pods {
		never(o)
	}
	for _, o := range s.Claims {
		never(o)
	}
}

// decorate adds what random clusters lack and what a verb could trip over.
func decorate(s *snapshot.Snapshot) {
	for i, node := range s.Nodes {
		status := []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}[i%3]
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: corev1.NodeReady, Status: status, Reason: "Kubelet", Message: "the kubelet says so",
		})
		node.Status.Images = []corev1.ContainerImage{{Names: []string{"image"}, SizeBytes: 1}}
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: node.Name}}
		node.Annotations = map[string]string{"example.com/note": "long"}
	}
	for i, claim := range s.Claims {
		if claim.Status.Allocation == nil || len(claim.Status.ReservedFor) > 0 {
			continue
		}
		name := "user-" + strconv.Itoa(i)
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: name, UID: types.UID(name)},
			Spec:       corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: &claim.Name}}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning},
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{AllocatedResourcesStatus: []corev1.ResourceStatus{{
				Name: "claim:c", Resources: []corev1.ResourceHealth{{
					ResourceID: corev1.ResourceID(result.Driver + "/" + result.Pool + "/" + result.Device), Health: corev1.ResourceHealthStatusUnhealthy,
				}},
			}}})
		}
		s.Pods = append(s.Pods, pod)
		claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: pod.UID}}
	}
	for i, slice := range s.Slices {
		slice.Labels = map[string]string{"example.com/number": strconv.Itoa(i)}
		slice.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "driver", FieldsV1: metav1.NewFieldsV1("{}")}}
		for d := range slice.Spec.Devices {
			for name := range slice.Spec.Devices[d].Attributes {
				if strings.Contains(string(name), "/") && len(slice.Spec.Devices[d].ConsumesCounters) > 0 {
					full := resourceapi.FullyQualifiedName(name)
					slice.Spec.PartitionTypeAttribute = &full
				}
			}
		}
	}
}

// servedSnapshot is an API server that has what a snapshot has, in chunks of
// two objects and in protobuf.
type servedSnapshot struct{ snap *snapshot.Snapshot }

func (s servedSnapshot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var list runtime.Object
	const group = "/apis/resource.k8s.io/v1"
	switch r.URL.Path {
	case "/version":
		writeJSON(w, map[string]string{"major": "1", "minor": "37", "gitVersion": s.snap.ServerVersion})
		return
	case group:
		writeJSON(w, metav1.APIResourceList{GroupVersion: "resource.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "resourceclaims"}, {Name: "devicetaintrules"}}})
		return
	case "/metrics":
		for name, gate := range s.snap.Gates {
			value := 0
			if gate.Enabled {
				value = 1
			}
			_, _ = fmt.Fprintf(w, "kubernetes_feature_enabled{name=%q,stage=\"\"} %d\n", name, value)
		}
		return
	case "/api/v1/nodes":
		list = chunkOf(r, s.snap.Nodes, func(m metav1.ListMeta, items []corev1.Node) runtime.Object {
			return &corev1.NodeList{ListMeta: m, Items: items}
		})
	case "/api/v1/pods":
		list = chunkOf(r, s.snap.Pods, func(m metav1.ListMeta, items []corev1.Pod) runtime.Object {
			return &corev1.PodList{ListMeta: m, Items: items}
		})
	case "/api/v1/namespaces":
		list = chunkOf(r, s.snap.Namespaces, func(m metav1.ListMeta, items []corev1.Namespace) runtime.Object {
			return &corev1.NamespaceList{ListMeta: m, Items: items}
		})
	case "/apis/apps/v1/daemonsets":
		list = &appsv1.DaemonSetList{}
	case group + "/resourceslices":
		list = chunkOf(r, s.snap.Slices, func(m metav1.ListMeta, items []resourceapi.ResourceSlice) runtime.Object {
			return &resourceapi.ResourceSliceList{ListMeta: m, Items: items}
		})
	case group + "/resourceclaims":
		list = chunkOf(r, s.snap.Claims, func(m metav1.ListMeta, items []resourceapi.ResourceClaim) runtime.Object {
			return &resourceapi.ResourceClaimList{ListMeta: m, Items: items}
		})
	case group + "/resourceclaimtemplates":
		list = chunkOf(r, s.snap.Templates, func(m metav1.ListMeta, items []resourceapi.ResourceClaimTemplate) runtime.Object {
			return &resourceapi.ResourceClaimTemplateList{ListMeta: m, Items: items}
		})
	case group + "/deviceclasses":
		list = chunkOf(r, s.snap.Classes, func(m metav1.ListMeta, items []resourceapi.DeviceClass) runtime.Object {
			return &resourceapi.DeviceClassList{ListMeta: m, Items: items}
		})
	case group + "/devicetaintrules":
		list = chunkOf(r, s.snap.TaintRules, func(m metav1.ListMeta, items []resourceapi.DeviceTaintRule) runtime.Object {
			return &resourceapi.DeviceTaintRuleList{ListMeta: m, Items: items}
		})
	default:
		http.NotFound(w, r)
		return
	}
	writeProtobuf(w, list)
}

// chunkOf makes a list of two objects, from the one on that a token names.
func chunkOf[T any](r *http.Request, all []*T, list func(metav1.ListMeta, []T) runtime.Object) runtime.Object {
	start, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	end := min(start+2, len(all))
	var items []T
	for _, object := range all[start:end] {
		items = append(items, *object)
	}
	meta := metav1.ListMeta{ResourceVersion: "1"}
	if end < len(all) {
		meta.Continue = strconv.Itoa(end)
	}
	return list(meta, items)
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

func writeProtobuf(w http.ResponseWriter, list runtime.Object) {
	const protobuf = "application/vnd.kubernetes.protobuf"
	kinds, _, err := scheme.Scheme.ObjectKinds(list)
	info, known := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), protobuf)
	if err != nil || !known {
		http.Error(w, "cannot encode", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", protobuf)
	_ = scheme.Codecs.EncoderForVersion(info.Serializer, kinds[0].GroupVersion()).Encode(list, w)
}
