// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package dra_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
	"github.com/kubectl-dra/kubectl-dra/pkg/dra"
)

const examples = "../../examples/"

// printed returns what the program prints with -o json.
func printed(t *testing.T, args ...string) map[string]any {
	t.Helper()
	var out, problems bytes.Buffer
	code := commands.Run(t.Context(), append(args, "-o", "json"), genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &problems}, commands.Build{})
	return decoded(t, out.Bytes(), code, problems.String())
}

// decoded returns a JSON object. The rest is for an error.
func decoded(t *testing.T, data []byte, beside ...any) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatalf("%v: %s %v", err, data, beside)
	}
	return object
}

func expectSame(t *testing.T, want map[string]any, answer any, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, decoded(t, data)); diff != "" {
		t.Errorf("the answer differs from that of the program (-program +package):\n%s", diff)
	}
}

func exampleCluster(t *testing.T) *dra.Cluster {
	t.Helper()
	c, err := dra.Load(t.Context(), examples+"cluster")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAnswersOfTheProgram asks one cluster all questions, as programs do, and the program each.
func TestAnswersOfTheProgram(t *testing.T) {
	c := exampleCluster(t)
	for target, object := range map[string]api.ObjectRef{
		"pod/pretrain-0":         api.Ref("Pod", "research", "pretrain-0"),
		"claim/eval-0-gpu-6k8jp": api.Ref("ResourceClaim", "research", "eval-0-gpu-6k8jp"),
		"statefulset/embed":      api.Ref("StatefulSet", "serving", "embed"),
	} {
		t.Run(target, func(t *testing.T) {
			answer, err := c.Why(t.Context(), object)
			expectSame(t, printed(t, "why", target, "-n", object.Namespace, "--snapshot", examples+"cluster"), answer, err)
		})
	}
	t.Run("status", func(t *testing.T) {
		answer, err := c.Status(t.Context())
		expectSame(t, printed(t, "status", "--snapshot", examples+"cluster"), answer, err)
	})
	for _, name := range []string{"one-gpu", "either-gpu", "too-much-memory"} {
		t.Run(name, func(t *testing.T) {
			path := examples + "manifests/" + name + ".yaml"
			manifest, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := c.Fit(t.Context(), manifest, "")
			expectSame(t, printed(t, "fit", "-f", path, "--snapshot", examples+"cluster"), answer, err)
		})
	}
}

// server starts an API server with one node and one device, and returns a connection to it.
func server(t *testing.T) *rest.Config {
	t.Helper()
	list := func(version, kind string, items ...map[string]any) map[string]any {
		all := []any{}
		for _, item := range items {
			item["apiVersion"], item["kind"] = version, kind
			all = append(all, item)
		}
		return map[string]any{"apiVersion": version, "kind": kind + "List", "metadata": map[string]any{"resourceVersion": "1"}, "items": all}
	}
	resources := func(version string, list ...any) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "APIResourceList", "groupVersion": version, "resources": list}
	}
	resource := func(name, kind string) map[string]any {
		return map[string]any{"name": name, "singularName": strings.ToLower(kind), "kind": kind, "namespaced": true, "verbs": []string{"get", "list"}}
	}
	named := func(namespace, name string, spec map[string]any) map[string]any {
		return map[string]any{"metadata": map[string]any{"namespace": namespace, "name": name, "uid": namespace + name}, "spec": spec}
	}
	const dra = "resource.k8s.io/v1"
	claim := map[string]any{"devices": map[string]any{"requests": []any{map[string]any{"name": "gpu", "exactly": map[string]any{"deviceClassName": "gpu.example.com"}}}}}
	pod := map[string]any{"containers": []any{map[string]any{"name": "main", "image": "main"}}, "resourceClaims": []any{map[string]any{"name": "gpu", "resourceClaimTemplateName": "gpu"}}}
	train := named("ml", "train", map[string]any{"replicas": 1, "selector": map[string]any{"matchLabels": map[string]any{"app": "train"}}, "template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "train"}}, "spec": pod}})
	train["apiVersion"], train["kind"] = "apps/v1", "Deployment"
	node := named("", "node-a", nil)
	node["status"] = map[string]any{"allocatable": map[string]any{"pods": "10"}}
	answers := map[string]any{
		"/version": map[string]any{"major": "1", "minor": "37", "gitVersion": "v1.37.1"},
		"/api":     map[string]any{"kind": "APIVersions", "versions": []string{"v1"}},
		"/api/v1":  resources("v1", resource("pods", "Pod")),
		"/apis": map[string]any{"apiVersion": "v1", "kind": "APIGroupList", "groups": []any{map[string]any{
			"name": "apps", "versions": []any{map[string]any{"groupVersion": "apps/v1", "version": "v1"}}, "preferredVersion": map[string]any{"groupVersion": "apps/v1", "version": "v1"},
		}}},
		"/apis/apps/v1":                resources("apps/v1", resource("deployments", "Deployment")),
		"/apis/resource.k8s.io/v1":     resources(dra, resource("resourceclaims", "ResourceClaim")),
		"/api/v1/nodes":                list("v1", "Node", node),
		"/api/v1/events":               list("v1", "Event"),
		"/api/v1/resourcequotas":       list("v1", "ResourceQuota"),
		"/api/v1/limitranges":          list("v1", "LimitRange"),
		"/api/v1/namespaces/ml/events": list("v1", "Event"),
		"/api/v1/namespaces":           list("v1", "Namespace", named("", "ml", nil)),
		"/api/v1/pods":                 list("v1", "Pod", named("ml", "eval", pod)),
		"/apis/" + dra + "/resourceslices": list(dra, "ResourceSlice", named("", "slice", map[string]any{
			"driver": "gpu.example.com", "nodeName": "node-a", "devices": []any{map[string]any{"name": "gpu-0"}},
			"pool": map[string]any{"name": "node-a", "generation": 1, "resourceSliceCount": 1},
		})),
		"/apis/" + dra + "/deviceclasses":               list(dra, "DeviceClass", named("", "gpu.example.com", nil)),
		"/apis/" + dra + "/resourceclaims":              list(dra, "ResourceClaim"),
		"/apis/" + dra + "/resourceclaimtemplates":      list(dra, "ResourceClaimTemplate", named("ml", "gpu", map[string]any{"spec": claim})),
		"/apis/apps/v1/namespaces/ml/deployments/train": train,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL}
}

// TestReadAnswersOfTheProgram asks an API server about a pod, and about a Deployment without pods.
func TestReadAnswersOfTheProgram(t *testing.T) {
	config := server(t)
	c, err := dra.Read(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	live := func(args ...string) map[string]any {
		return printed(t, append(args, "-n", "ml", "--kubeconfig", os.DevNull, "--cache-dir", t.TempDir(), "--server", config.Host)...)
	}
	answer, err := c.Why(t.Context(), api.Ref("Pod", "ml", "eval"))
	expectSame(t, live("why", "pod/eval"), answer, err)
	if answer.Verdict != api.Fits {
		t.Errorf("pod eval: got verdict %s", answer.Verdict)
	}

	train := api.Ref("Deployment", "ml", "train")
	var absent *dra.TargetError
	if _, err := c.Why(t.Context(), train); !errors.As(err, &absent) {
		t.Errorf("a Deployment that was not read: got error %v", err)
	}
	if c, err = dra.ReadFor(t.Context(), config, train); err != nil {
		t.Fatal(err)
	}
	answer, err = c.Why(t.Context(), train)
	expectSame(t, live("why", "deployment/train"), answer, err)

	var unknown *dra.UnknownResourceError
	if _, err := dra.ReadFor(t.Context(), config, api.Ref("Trayn", "ml", "x").In("example.com")); !errors.As(err, &unknown) {
		t.Errorf("an unknown kind: got error %v", err)
	}
	var down *dra.ServerError
	if _, err := dra.Read(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}); !errors.As(err, &down) {
		t.Errorf("no server: got error %v", err)
	}
}

func TestErrors(t *testing.T) {
	c := exampleCluster(t)
	isInput := func(err error) bool { return errors.As(err, new(*dra.InputError)) }
	isTarget := func(err error) bool { return errors.As(err, new(*dra.TargetError)) }
	const claim = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\nspec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}\n"
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ask  func() (any, error)
		is   func(error) bool
		want string
	}{
		"no file":     {func() (any, error) { return dra.Load(t.Context(), filepath.Join(t.TempDir(), "none")) }, isInput, "none"},
		"no such pod": {func() (any, error) { return c.Why(t.Context(), api.Ref("Pod", "research", "none")) }, isTarget, "none"},
		"no manifest": {func() (any, error) { return c.With(t.Context(), []byte("kind: ["), "") }, isInput, "read manifest"},
		"nothing to copy": {func() (any, error) {
			return c.Fit(t.Context(), []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: web, image: web}]}\n"), "")
		}, isTarget, "found 0\nit has: Pod web (uses no devices)"},
		"two claims": {func() (any, error) {
			return c.Fit(t.Context(), []byte(claim+"---\n"+strings.Replace(claim, "name: c", "name: d", 1)), "ml")
		}, isTarget, "found 2\nit has: ResourceClaim ml/c, ResourceClaim ml/d"},
		"canceled": {func() (any, error) { return c.Status(canceled) }, func(err error) bool { return errors.Is(err, context.Canceled) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := test.ask()
			if !test.is(err) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, error %v", answer, err)
			}
		})
	}
}

// TestDocument looks for the example of the document among those that run.
func TestDocument(t *testing.T) {
	document, err := os.ReadFile("../../docs/go.md")
	if err != nil {
		t.Fatal(err)
	}
	tested, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(document, -1)
	if len(blocks) == 0 {
		t.Error("the document has no example")
	}
	for _, block := range blocks {
		indented := regexp.MustCompile("(?m)^(.)").ReplaceAll(block[1], []byte("\t$1"))
		if !bytes.Contains(tested, indented) {
			t.Errorf("no example that runs has:\n%s", indented)
		}
	}
}
