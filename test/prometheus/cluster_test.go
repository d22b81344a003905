// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// exampleServer returns the address of an API server with the objects of the example cluster.
// It serves lists and watches without changes, to everybody.
func exampleServer(t *testing.T) string {
	t.Helper()
	lists := map[string]*unstructured.UnstructuredList{}
	discovery := map[string]*metav1.APIResourceList{}
	add := func(kind schema.GroupVersionKind, namespaced bool, objects ...unstructured.Unstructured) {
		root, resource := "/apis/"+kind.GroupVersion().String(), plural(kind.Kind)
		if kind.Group == "" {
			root = "/api/" + kind.Version
		}
		path := root + "/" + resource
		if lists[path] == nil {
			lists[path] = &unstructured.UnstructuredList{}
			lists[path].SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			lists[path].SetResourceVersion("1")
			if discovery[root] == nil {
				discovery[root] = &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: kind.GroupVersion().String()}
			}
			discovery[root].APIResources = append(discovery[root].APIResources, metav1.APIResource{Name: resource, Kind: kind.Kind, Namespaced: namespaced, Verbs: metav1.Verbs{"get", "list", "watch"}})
		}
		lists[path].Items = append(lists[path].Items, objects...)
	}
	// What a cluster serves, though there is nothing of it here.
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Event"},
		{Version: "v1", Kind: "ResourceQuota"},
		{Version: "v1", Kind: "LimitRange"},
		{Version: "v1", Kind: "PersistentVolumeClaim"},
		{Version: "v1", Kind: "PersistentVolume"},
		{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"},
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
		{Group: "apps", Version: "v1", Kind: "DaemonSet"},
		{Group: "batch", Version: "v1", Kind: "Job"},
	} {
		add(kind, true)
	}
	for _, object := range exampleObjects(t) {
		add(object.GroupVersionKind(), object.GetNamespace() != "", object)
	}
	answer := func(w http.ResponseWriter, what any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(what)
	}
	inNamespace := regexp.MustCompile(`/namespaces/([^/]+)/`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		list := lists[inNamespace.ReplaceAllString(r.URL.Path, "/")]
		if namespace := inNamespace.FindStringSubmatch(r.URL.Path); namespace != nil && list != nil {
			list = list.DeepCopy()
			list.Items = slices.DeleteFunc(list.Items, func(object unstructured.Unstructured) bool { return object.GetNamespace() != namespace[1] })
		}
		switch {
		case r.URL.Path == "/version":
			answer(w, map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.1"})
		case discovery[r.URL.Path] != nil:
			answer(w, discovery[r.URL.Path])
		case list != nil && r.URL.Query().Get("watch") != "":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case list != nil:
			answer(w, list)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server.URL
}

// plural returns the resource of a kind.
func plural(kind string) string {
	resource := strings.ToLower(kind)
	if strings.HasSuffix(resource, "s") {
		return resource + "es"
	}
	return resource + "s"
}

// exampleObjects returns the objects of the example cluster.
func exampleObjects(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob("../../examples/cluster/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no example cluster (%v)", err)
	}
	var objects []unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			object := unstructured.Unstructured{}
			if err := yaml.Unmarshal(document, &object.Object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if object.GetKind() != "" && object.GetKind() != "Snapshot" {
				objects = append(objects, object)
			}
		}
	}
	return objects
}
