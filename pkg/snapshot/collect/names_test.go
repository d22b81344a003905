// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestNames(t *testing.T) {
	partial := func(names ...string) map[string]any {
		list := listOf("meta.k8s.io/v1", "PartialObjectMetadata")
		items := []any{}
		for _, name := range names {
			o := object(name)
			o["apiVersion"], o["kind"] = "meta.k8s.io/v1", "PartialObjectMetadata"
			items = append(items, o)
		}
		list["items"] = items
		return list
	}
	first := partial("ml/b", "ml/a")
	first["metadata"] = map[string]any{"continue": "more"}
	pages := apiServer{"": first, "more": partial("ml/c")}
	server := smallCluster().with(apiServer{
		"/apis/apps/v1/namespaces/ml/deployments": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.URL.Path = r.URL.Query().Get("continue")
			pages.ServeHTTP(w, r)
		}),
		"/apis/resource.k8s.io/v1/resourceclaims": partial("ml/claim", "default/claim"),
		"/apis/batch/v1/namespaces/ml/cronjobs":   forbid(),
	})
	clients := start(t, server)
	for _, test := range []struct {
		resource, namespace string
		want                []string
	}{
		{"deploy", "ml", nil}, // the mapper of this test has no short names
		{"deployment", "ml", []string{"b", "a", "c"}},
		{"deployments.apps", "ml", []string{"b", "a", "c"}},
		{"claim", "", []string{"claim", "claim"}},
	} {
		got, err := clients.Names(t.Context(), test.resource, test.namespace)
		if (err != nil) != (test.want == nil) || !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, %v; want %v", test.resource, got, err, test.want)
		}
	}
	if _, err := clients.Names(t.Context(), "cronjob", "ml"); !apierrors.IsForbidden(errors.Unwrap(err)) {
		t.Errorf("got %v", err)
	}
}
