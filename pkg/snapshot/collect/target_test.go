// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func podTemplate(image string) map[string]any {
	return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": image}}}}
}

func clusterWithWorkloads() apiServer {
	selector := map[string]any{"matchLabels": map[string]any{"app": "train"}}
	event := func(name, reason, about string) map[string]any {
		return object("ml/"+name, map[string]any{"reason": reason, "involvedObject": map[string]any{"kind": "Pod", "namespace": "ml", "name": about}})
	}
	return smallCluster().with(apiServer{
		"/apis/apps/v1/namespaces/ml/deployments/train": object("ml/train", map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"spec": map[string]any{"selector": selector, "template": podTemplate("train:1")},
		}),
		"/apis/batch/v1/namespaces/ml/cronjobs/nightly": object("ml/nightly", map[string]any{
			"apiVersion": "batch/v1", "kind": "CronJob",
			"spec": map[string]any{"jobTemplate": map[string]any{"spec": map[string]any{"template": podTemplate("nightly:1")}}},
		}),
		"/apis/example.com/v2/namespaces/ml/trains/express": object("ml/express", map[string]any{
			"apiVersion": "example.com/v2", "kind": "Train", "spec": map[string]any{"template": podTemplate("express:1")},
		}),
		"/apis/example.com/v2/namespaces/ml/trains/secret": forbid(),
		"/api/v1/namespaces/ml/configmaps/settings":        object("ml/settings", map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}),
		"/api/v1/namespaces/ml/events": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			events := map[string]map[string]any{
				"involvedObject.name=train-0":          listOf("v1", "Event", event("e1", "FailedScheduling", "train-0"), event("e2", "Other", "train-0")),
				"reason=FailedScheduling":              listOf("v1", "Event", event("e1", "FailedScheduling", "train-0"), event("e3", "FailedScheduling", "train-1")),
				"reason=FailedPrepareDynamicResources": listOf("v1", "Event", event("e4", "FailedPrepareDynamicResources", "train-1")),
				"involvedObject.kind=ResourceClaim":    listOf("v1", "Event", event("e5", "ClaimPrepareFailed", "claim")),
			}[r.URL.Query().Get("fieldSelector")]
			if events == nil {
				events = listOf("v1", "Event")
			}
			apiServer{r.URL.Path: events}.ServeHTTP(w, r)
		}),
	})
}

func TestCollectTarget(t *testing.T) {
	clients := start(t, clusterWithWorkloads())
	for _, tc := range []struct {
		resource, name string
		kind, image    string
	}{
		{"deployment", "train", "Deployment", "train:1"},
		{"deployments.apps", "train", "Deployment", "train:1"},
		{"deployments.v1.apps", "train", "Deployment", "train:1"},
		{"Deployment", "train", "Deployment", "train:1"},
		{"Deployment.v1.apps", "train", "Deployment", "train:1"},
		{"cronjobs", "nightly", "CronJob", "nightly:1"},
		{"trains.example.com", "express", "Train", "express:1"},
		{"deployment", "absent", "", ""},
		{"claim", "claim", "", ""},
		{"pods", "train-0", "", ""},
	} {
		t.Run(tc.resource+"/"+tc.name, func(t *testing.T) {
			s := mustCollect(t, clients, Options{Target: &snapshot.Argument{Resource: tc.resource, Name: tc.name}})
			expect(t, "gaps", nil, gapTexts(s))
			if tc.kind == "" {
				expect(t, "workloads", []string{}, named("Workload", s.Workloads))
				return
			}
			if len(s.Workloads) != 1 || s.Workloads[0].Kind != tc.kind || s.Workloads[0].Template.Spec.Containers[0].Image != tc.image {
				t.Errorf("got %+v", s.Workloads)
			}
		})
	}
}

func TestCollectTargetErrors(t *testing.T) {
	clients := start(t, clusterWithWorkloads())

	_, err := Collect(t.Context(), clients, Options{Target: &snapshot.Argument{Resource: "depploy", Name: "train"}})
	var unknown *UnknownResourceError
	if !errors.As(err, &unknown) || unknown.Resource != "depploy" {
		t.Errorf("unknown type: got error %v", err)
	}

	_, err = Collect(t.Context(), clients, Options{Target: &snapshot.Argument{Resource: "configmap", Name: "settings"}})
	var noTemplate *NoTemplateError
	if !errors.As(err, &noTemplate) || noTemplate.Resource != "configmaps" || noTemplate.Name != "settings" {
		t.Errorf("without pod template: got error %v", err)
	}

	s := mustCollect(t, clients, Options{Target: &snapshot.Argument{Resource: "train", Name: "secret"}})
	expect(t, "gaps", []string{"trains.example.com[]: this user may not get trains.example.com in namespace ml"}, gapTexts(s))
}

func TestCollectEventsOfTarget(t *testing.T) {
	clients := start(t, clusterWithWorkloads())
	s := mustCollect(t, clients, Options{Target: &snapshot.Argument{Resource: "pod", Name: "train-0"}})
	expect(t, "events", []string{"Event ml/e1", "Event ml/e2", "Event ml/e3", "Event ml/e4", "Event ml/e5"}, named("Event", s.Events))

	s = mustCollect(t, clients, Options{})
	expect(t, "events without a target", []string{}, named("Event", s.Events))
}

func TestCollectAsksForEventsOfNoOtherName(t *testing.T) {
	var mu sync.Mutex
	var selectors []string
	clients := start(t, smallCluster().with(apiServer{"/api/v1/namespaces/ml/events": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		selectors = append(selectors, r.URL.Query().Get("fieldSelector"))
		apiServer{r.URL.Path: listOf("v1", "Event")}.ServeHTTP(w, r)
	})}))
	mustCollect(t, clients, Options{Target: &snapshot.Argument{Resource: "pod", Name: "x,involvedObject.name=y"}})
	expect(t, "selectors", []string{
		`involvedObject.name=x\,involvedObject.name\=y`, "involvedObject.kind=ResourceClaim", "reason=FailedScheduling", "reason=FailedCreate", "reason=NotTriggerScaleUp",
		"reason=FailedResourceClaimCreation", "reason=FailedPrepareDynamicResources", "reason=FailedCreatePodSandBox",
	}, selectors)
}

func TestCollectTargetAsKubectlNamesIt(t *testing.T) {
	clients := start(t, smallCluster().with(apiServer{"/api/v1/namespaces/ml/events": listOf("v1", "Event")}))
	for _, resource := range []string{
		"resourceclaim.resource.k8s.io", "resourceclaims.v1.resource.k8s.io", "resourceclaimtemplate.resource.k8s.io",
		"resourceclaimtemplates.v1beta1.resource.k8s.io", "Pod", "pods.v1.",
	} {
		if s := mustCollect(t, clients, Options{Target: &snapshot.Argument{Resource: resource, Name: "claim"}}); len(s.Pods) == 0 {
			t.Errorf("%s: got no pods", resource)
		}
	}
}

func TestResolve(t *testing.T) {
	clients := start(t, smallCluster())
	for typed, want := range map[string]string{
		"claim":                             "ResourceClaim",
		"template":                          "ResourceClaimTemplate",
		"resourceclaim":                     "ResourceClaim",
		"resourceclaims.v1.resource.k8s.io": "ResourceClaim",
		"CronJob":                           "CronJob",
		"cronjob.batch":                     "CronJob",
	} {
		mapping, err := clients.Resolve(typed)
		if err != nil || mapping.GroupVersionKind.Kind != want {
			t.Errorf("%s: got %v and error %v, want %s", typed, mapping, err, want)
		}
	}
}

// TestCollectOwnersOfTarget follows the owners of pods to a target of another kind: up to
// it, and up to where the user may not read on.
func TestCollectOwnersOfTarget(t *testing.T) {
	owned := func(name, owner string) map[string]any {
		o := object(name)
		if metadata, ok := o["metadata"].(map[string]any); ok {
			metadata["ownerReferences"] = []any{map[string]any{"apiVersion": "example.com/v2", "kind": "Train", "name": owner, "uid": owner, "controller": true}}
		}
		return o
	}
	train := func(o map[string]any) map[string]any {
		o["apiVersion"], o["kind"], o["spec"] = "example.com/v2", "Train", map[string]any{"suspend": false}
		return o
	}
	for name, test := range map[string]struct {
		owner    string
		outlines []string
		gaps     []string
	}{
		"through another one": {"wagon", []string{"Outline ml/long", "Outline ml/wagon"}, nil},
		"not to be read":      {"secret", []string{"Outline ml/long"}, []string{"trains.example.com[]: this user may not get trains.example.com in namespace ml"}},
		"it is gone":          {"gone", []string{"Outline ml/long"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			clients := start(t, clusterWithWorkloads().with(apiServer{
				"/api/v1/pods": listOf("v1", "Pod", owned("ml/train-0", test.owner)),
				"/apis/example.com/v2/namespaces/ml/trains/long":  train(object("ml/long")),
				"/apis/example.com/v2/namespaces/ml/trains/wagon": train(owned("ml/wagon", "long")),
			}))
			s := mustCollect(t, clients, Options{Target: &snapshot.Argument{Resource: "train", Name: "long"}})
			expect(t, "outlines", test.outlines, named("Outline", s.Outlines))
			expect(t, "gaps", test.gaps, gapTexts(s))
		})
	}
}

// TestCollectQuotasOfOtherNamespaces covers a pod of another namespace that waits for its
// claim: a quota may refuse the claim, so that the pod takes no devices.
func TestCollectQuotasOfOtherNamespaces(t *testing.T) {
	waiting := func(claims ...any) map[string]any {
		return listOf("v1", "Pod", object("other/waits", map[string]any{
			"spec":   map[string]any{"resourceClaims": []any{map[string]any{"name": "gpu", "resourceClaimTemplateName": "one"}}},
			"status": map[string]any{"resourceClaimStatuses": claims},
		}))
	}
	created := map[string]any{"name": "gpu", "resourceClaimName": "waits-gpu"}
	for name, test := range map[string]struct {
		pods map[string]any
		want []string
	}{
		"not created": {waiting(), []string{"ResourceQuota other/none"}},
		"created":     {waiting(created), []string{}},
	} {
		s := mustCollect(t, start(t, clusterWithWorkloads().with(apiServer{
			"/api/v1/pods": test.pods, "/api/v1/resourcequotas": listOf("v1", "ResourceQuota", object("other/none")),
		})), Options{Target: &snapshot.Argument{Resource: "claim", Name: "claim"}})
		expect(t, name, test.want, named("ResourceQuota", s.Quotas))
	}
}

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
