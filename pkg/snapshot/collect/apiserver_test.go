// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// apiServer answers GET requests by path. What is not there is 404. Values
// are handlers, or what is sent as JSON.
type apiServer map[string]any

func (a apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, ok := a[r.URL.Path]
	if !ok {
		answer = refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	if handler, ok := answer.(http.HandlerFunc); ok {
		handler(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// with returns a copy in which some answers differ.
func (a apiServer) with(answers apiServer) apiServer {
	merged := apiServer{}
	for path, answer := range a {
		merged[path] = answer
	}
	for path, answer := range answers {
		merged[path] = answer
	}
	return merged
}

// without returns a copy in which nothing starts with the path.
func (a apiServer) without(prefix string) apiServer {
	merged := apiServer{}
	for path, answer := range a {
		if !strings.HasPrefix(path, prefix) {
			merged[path] = answer
		}
	}
	return merged
}

func refuse(code int, reason metav1.StatusReason) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "refused by the test",
		})
	}
}

func forbid() http.HandlerFunc {
	return refuse(http.StatusForbidden, metav1.StatusReasonForbidden)
}

func text(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write([]byte(content))
	}
}

// object returns an object with a name, "namespace/name" or "name".
func object(name string, more ...map[string]any) map[string]any {
	metadata := map[string]any{"name": name}
	if namespace, inside, ok := strings.Cut(name, "/"); ok {
		metadata = map[string]any{"namespace": namespace, "name": inside}
	}
	o := map[string]any{"metadata": metadata}
	for _, fields := range more {
		for key, value := range fields {
			o[key] = value
		}
	}
	return o
}

func listOf(apiVersion, kind string, objects ...map[string]any) map[string]any {
	items := []any{}
	for _, o := range objects {
		o["apiVersion"], o["kind"] = apiVersion, kind
		items = append(items, o)
	}
	return map[string]any{"apiVersion": apiVersion, "kind": kind + "List", "metadata": map[string]any{"resourceVersion": "1"}, "items": items}
}

func serves(groupVersion string, resources ...string) map[string]any {
	list := []any{}
	for _, name := range resources {
		list = append(list, map[string]any{"name": name})
	}
	return map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": groupVersion, "resources": list}
}

// smallCluster returns one or two of everything, in an order that is not sorted.
func smallCluster() apiServer {
	return apiServer{
		"/version": map[string]any{"major": "1", "minor": "37", "gitVersion": "v1.37.1", "emulationMajor": "1", "emulationMinor": "37"},
		"/metrics": text("kubernetes_feature_enabled{name=\"DRAAdminAccess\",stage=\"\"} 1\nkubernetes_feature_enabled{name=\"DRADerivedAttributes\",stage=\"ALPHA\"} 1\n"),

		"/apis/resource.k8s.io/v1":        serves("resource.k8s.io/v1", "resourceclaims", "devicetaintrules"),
		"/apis/scheduling.k8s.io/v1beta1": serves("scheduling.k8s.io/v1beta1", "podgroups"),

		"/api/v1/nodes":      listOf("v1", "Node", object("node-b"), object("node-a")),
		"/api/v1/namespaces": listOf("v1", "Namespace", object("ml")),
		"/api/v1/pods":       listOf("v1", "Pod", object("ml/train-1"), object("ml/train-0"), object("default/other")),

		"/apis/resource.k8s.io/v1/resourceslices":         listOf("resource.k8s.io/v1", "ResourceSlice", object("slice")),
		"/apis/resource.k8s.io/v1/deviceclasses":          listOf("resource.k8s.io/v1", "DeviceClass", object("class")),
		"/apis/resource.k8s.io/v1/resourceclaims":         listOf("resource.k8s.io/v1", "ResourceClaim", object("ml/claim"), object("default/claim")),
		"/apis/resource.k8s.io/v1/resourceclaimtemplates": listOf("resource.k8s.io/v1", "ResourceClaimTemplate", object("ml/template")),
		"/apis/resource.k8s.io/v1/devicetaintrules":       listOf("resource.k8s.io/v1", "DeviceTaintRule", object("rule")),
		"/apis/scheduling.k8s.io/v1beta1/podgroups":       listOf("scheduling.k8s.io/v1beta1", "PodGroup", object("ml/gang")),
	}
}

// clientsFor connects to a server. The default namespace is ml.
func clientsFor(t *testing.T, config *rest.Config) Clients {
	t.Helper()
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.QPS = -1 // no limit
	clients, err := connect(config)
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Deployment", "ReplicaSet", "StatefulSet"} {
		mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}, meta.RESTScopeNamespace)
	}
	mapper.Add(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta1", Kind: "Workload"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta1", Kind: "LocalQueue"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta1", Kind: "ClusterQueue"}, meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Train"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1", Kind: "ResourceClaim"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1", Kind: "ResourceClaimTemplate"}, meta.RESTScopeNamespace)
	clients.Namespace, clients.Mapper = "ml", mapper
	return clients
}

// start runs a server for the time of the test.
func start(t *testing.T, handler http.Handler) Clients {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return clientsFor(t, &rest.Config{Host: server.URL})
}

// startTLS runs a server that nobody trusts, and that does not tell the test's
// output about it.
func startTLS(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func pemCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
