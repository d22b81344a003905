// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// contents lists what a snapshot has, as "Claim ml/claim".
func contents(s *snapshot.Snapshot) []string {
	var all []string
	all = append(all, named("Node", s.Nodes)...)
	all = append(all, named("Namespace", s.Namespaces)...)
	all = append(all, named("Pod", s.Pods)...)
	all = append(all, named("Slice", s.Slices)...)
	all = append(all, named("Class", s.Classes)...)
	all = append(all, named("Claim", s.Claims)...)
	all = append(all, named("Template", s.Templates)...)
	all = append(all, named("TaintRule", s.TaintRules)...)
	all = append(all, named("PodGroup", s.PodGroups)...)
	all = append(all, named("Event", s.Events)...)
	return append(all, named("Workload", s.Workloads)...)
}

func named[T metav1.Object](kind string, objects []T) []string {
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = kind + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
	}
	return names
}

func gapTexts(s *snapshot.Snapshot) []string {
	var texts []string
	for _, gap := range s.Gaps {
		texts = append(texts, fmt.Sprintf("%s[%s]: %s", gap.Resource, gap.Namespace, gap.Reason))
	}
	return texts
}

func mustCollect(t *testing.T, clients Clients, opts Options) *snapshot.Snapshot {
	t.Helper()
	s, err := Collect(t.Context(), clients, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func expect(t *testing.T, what string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want +got:\n%s", what, diff)
	}
}

func TestCollectReadsAll(t *testing.T) {
	clients := start(t, smallCluster())
	s := mustCollect(t, clients, Options{Gates: map[string]bool{"DRAAdminAccess": false}})

	expect(t, "objects", []string{
		"Node node-a", "Node node-b", "Namespace ml", "Pod default/other", "Pod ml/train-0", "Pod ml/train-1", "Slice slice", "Class class",
		"Claim default/claim", "Claim ml/claim", "Template ml/template", "TaintRule rule", "PodGroup ml/gang",
	}, contents(s))
	expect(t, "gaps", nil, gapTexts(s))
	if s.Claim("ml", "claim") == nil || s.Node("node-b") == nil {
		t.Error("lookups do not find what is there")
	}
	if s.ServerVersion != "v1.37.1" || s.TakenAt.IsZero() || s.Source != "cluster "+clients.Config.Host {
		t.Errorf("got version %q at %v from %q", s.ServerVersion, s.TakenAt, s.Source)
	}
	for name, want := range map[string]snapshot.Gate{
		"DRAAdminAccess":       {Enabled: false, Source: snapshot.GateFromFlag},
		"DRADerivedAttributes": {Enabled: true, Source: snapshot.GateFromMetrics},
		"DRADeviceTaints":      {Enabled: true, Source: snapshot.GateFromDefault},
	} {
		if got := s.Gate(name); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestCollectWithGivenVersionIgnoresDetectedGates(t *testing.T) {
	clients := start(t, smallCluster().with(apiServer{"/metrics": http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the metrics were asked for")
	})}))
	s := mustCollect(t, clients, Options{KubernetesVersion: "1.36", Gates: map[string]bool{"DRAAdminAccess": false}})
	for name, want := range map[string]snapshot.Gate{
		"DRAAdminAccess":       {Enabled: false, Source: snapshot.GateFromFlag},
		"DRADerivedAttributes": {Enabled: false, Source: snapshot.GateFromDefault},
	} {
		if got := s.Gate(name); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	expect(t, "gaps", nil, gapTexts(s))
}

func TestCollectServerVersion(t *testing.T) {
	for _, tc := range []struct {
		name, given string
		answer      map[string]any
		want        string
	}{
		{name: "vendor", answer: map[string]any{"major": "1", "minor": "36+", "gitVersion": "v1.36.3-gke.100", "emulationMajor": "1", "emulationMinor": "36"}, want: "v1.36.3-gke.100"},
		{name: "before emulation", answer: map[string]any{"major": "1", "minor": "34", "gitVersion": "v1.34.2"}, want: "v1.34.2"},
		{name: "emulating", answer: map[string]any{"major": "1", "minor": "37", "gitVersion": "v1.37.1", "emulationMajor": "1", "emulationMinor": "35"}, want: "v1.35.0"},
		{name: "given", given: "1.34", answer: map[string]any{"major": "1", "minor": "37", "gitVersion": "v1.37.1"}, want: "v1.34.0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			clients := start(t, smallCluster().with(apiServer{"/version": tc.answer}))
			s := mustCollect(t, clients, Options{KubernetesVersion: tc.given})
			if s.ServerVersion != tc.want {
				t.Errorf("got %q, want %q", s.ServerVersion, tc.want)
			}
		})
	}
}

// restrictedCluster lets the user read only in namespace ml.
func restrictedCluster() apiServer {
	answers := smallCluster()
	for path := range answers {
		if path != "/version" && strings.Count(path, "/") > 2 && !strings.HasSuffix(path, "/v1") && !strings.HasSuffix(path, "/v1beta1") {
			answers[path] = forbid()
		}
	}
	return answers.with(apiServer{
		"/metrics":                                                      forbid(),
		"/api/v1/namespaces/ml":                                         object("ml", map[string]any{"apiVersion": "v1", "kind": "Namespace"}),
		"/api/v1/namespaces/ml/pods":                                    listOf("v1", "Pod", object("ml/train-0")),
		"/apis/resource.k8s.io/v1/deviceclasses":                        listOf("resource.k8s.io/v1", "DeviceClass", object("class")),
		"/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims":         listOf("resource.k8s.io/v1", "ResourceClaim", object("ml/claim")),
		"/apis/resource.k8s.io/v1/namespaces/ml/resourceclaimtemplates": forbid(),
		"/apis/scheduling.k8s.io/v1beta1/namespaces/ml/podgroups":       listOf("scheduling.k8s.io/v1beta1", "PodGroup"),
	})
}

func TestCollectAsRestrictedUser(t *testing.T) {
	s := mustCollect(t, start(t, restrictedCluster()), Options{Namespace: "ml"})
	expect(t, "objects", []string{"Namespace ml", "Pod ml/train-0", "Class class", "Claim ml/claim"}, contents(s))
	expect(t, "gaps", []string{
		"/metrics[]: this user may not get the URL /metrics of the API server",
		"devicetaintrules.resource.k8s.io[]: this user may not list devicetaintrules.resource.k8s.io at the cluster scope",
		"namespaces[ml]: this user may not list namespaces at the cluster scope; only namespace ml itself could be read",
		"nodes[]: this user may not list nodes at the cluster scope",
		"podgroups.scheduling.k8s.io[ml]: this user may not list podgroups.scheduling.k8s.io at the cluster scope; only those in namespace ml could be read",
		"pods[ml]: this user may not list pods at the cluster scope; only those in namespace ml could be read",
		"resourceclaims.resource.k8s.io[ml]: this user may not list resourceclaims.resource.k8s.io at the cluster scope; only those in namespace ml could be read",
		"resourceclaimtemplates.resource.k8s.io[]: this user may not list resourceclaimtemplates.resource.k8s.io at the cluster scope, nor in namespace ml",
		"resourceslices.resource.k8s.io[]: this user may not list resourceslices.resource.k8s.io at the cluster scope",
	}, gapTexts(s))
	if got, want := s.Gate("DRADeviceTaints"), (snapshot.Gate{Enabled: true, Source: snapshot.GateFromDefault}); got != want {
		t.Errorf("without metrics: got %+v, want %+v", got, want)
	}
}

func TestCollectDoesNotTakeOneNamespaceForAll(t *testing.T) {
	s := mustCollect(t, start(t, restrictedCluster()), Options{Namespace: "ml", AllNamespaces: true})
	expect(t, "objects", []string{"Class class"}, contents(s))
	if gap := s.Gap(snapshot.ResourceClaims); gap == nil || gap.Namespace != "" {
		t.Errorf("got gap %+v", gap)
	}
}

func TestCollectFallsBackToNamespaceOfTarget(t *testing.T) {
	answers := restrictedCluster().with(apiServer{
		"/apis/resource.k8s.io/v1/namespaces/serving/resourceclaims": listOf("resource.k8s.io/v1", "ResourceClaim", object("serving/claim")),
		"/api/v1/namespaces/serving/events":                          forbid(),
	})
	s := mustCollect(t, start(t, answers), Options{Namespace: "ml", Target: &snapshot.Argument{Resource: "claim", Namespace: "serving", Name: "claim"}})
	if s.Claim("serving", "claim") == nil {
		t.Errorf("got %v", contents(s))
	}
	if gap := s.Gap(snapshot.ResourceEvents); gap == nil || gap.Reason != "this user may not list events in namespace serving" {
		t.Errorf("got gap %+v", gap)
	}
}

func TestCollectWithoutOptionalAPIs(t *testing.T) {
	answers := smallCluster().without("/apis/scheduling.k8s.io").without("/apis/resource.k8s.io/v1/devicetaintrules").
		with(apiServer{"/apis/resource.k8s.io/v1": serves("resource.k8s.io/v1", "resourceclaims")})
	s := mustCollect(t, start(t, answers), Options{})
	expect(t, "gaps", nil, gapTexts(s))
	if len(s.TaintRules) != 0 || len(s.PodGroups) != 0 || len(s.Claims) != 2 {
		t.Errorf("got %v", contents(s))
	}
}

func TestCollectFromOlderServer(t *testing.T) {
	request := map[string]any{"spec": map[string]any{"devices": map[string]any{"requests": []any{
		map[string]any{"name": "gpu", "deviceClassName": "class", "allocationMode": "ExactCount", "count": 2},
	}}}}
	rule := func(selector map[string]any) map[string]any {
		return map[string]any{"spec": map[string]any{"deviceSelector": selector, "taint": map[string]any{"key": "broken", "effect": "NoExecute"}}}
	}
	group := map[string]any{"spec": map[string]any{
		"podGroupTemplateRef": map[string]any{"workload": map[string]any{"workloadName": "job", "podGroupTemplateName": "workers"}},
		"disruptionMode":      "PodGroup",
	}}
	const v1beta1 = "resource.k8s.io/v1beta1"
	answers := smallCluster().without("/apis/resource.k8s.io").without("/apis/scheduling.k8s.io").with(apiServer{
		"/apis/" + v1beta1:                             serves(v1beta1, "resourceclaims"),
		"/apis/" + v1beta1 + "/resourceclaims":         listOf(v1beta1, "ResourceClaim", object("ml/claim", request)),
		"/apis/" + v1beta1 + "/resourceclaimtemplates": listOf(v1beta1, "ResourceClaimTemplate"),
		"/apis/" + v1beta1 + "/deviceclasses":          listOf(v1beta1, "DeviceClass", object("class")),
		"/apis/" + v1beta1 + "/resourceslices":         listOf(v1beta1, "ResourceSlice", object("slice")),
		"/apis/resource.k8s.io/v1alpha3":               serves("resource.k8s.io/v1alpha3", "devicetaintrules"),
		"/apis/resource.k8s.io/v1alpha3/devicetaintrules": listOf("resource.k8s.io/v1alpha3", "DeviceTaintRule",
			object("by-driver", rule(map[string]any{"driver": "gpu.example.com"})),
			object("by-class", rule(map[string]any{"deviceClassName": "class"}))),
		"/apis/scheduling.k8s.io/v1alpha2":           serves("scheduling.k8s.io/v1alpha2", "podgroups"),
		"/apis/scheduling.k8s.io/v1alpha2/podgroups": listOf("scheduling.k8s.io/v1alpha2", "PodGroup", object("ml/gang", group)),
	})
	s := mustCollect(t, start(t, answers), Options{})

	if exactly := s.Claim("ml", "claim").Spec.Devices.Requests[0].Exactly; exactly == nil || exactly.Count != 2 || exactly.DeviceClassName != "class" {
		t.Errorf("claim was not converted: %+v", s.Claims[0].Spec)
	}
	expect(t, "taint rules", []string{"TaintRule by-driver"}, named("TaintRule", s.TaintRules))
	if *s.TaintRules[0].Spec.DeviceSelector.Driver != "gpu.example.com" || s.TaintRules[0].Spec.Taint.Key != "broken" {
		t.Errorf("rule was not converted: %+v", s.TaintRules[0].Spec)
	}
	if gap := s.Gap(snapshot.ResourceTaintRules); gap == nil || !strings.Contains(gap.Reason, "left out DeviceTaintRule by-class") {
		t.Errorf("a rule was lost without a word: %+v", s.Gaps)
	}
	if spec := s.PodGroup("ml", "gang").Spec; spec.WorkloadRef == nil || spec.WorkloadRef.TemplateName != "workers" || spec.DisruptionMode.All == nil {
		t.Errorf("pod group was not converted: %+v", spec)
	}
}

// Who may not ask what the server has can still be allowed to list it, if only in
// a namespace.
func TestCollectWithoutDiscovery(t *testing.T) {
	const group = "/apis/resource.k8s.io/"
	for _, version := range []string{"v1", "v1beta2", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			answers := smallCluster().without(group).with(apiServer{
				group + version + "/resourceclaims":               forbid(),
				group + version + "/namespaces/ml/resourceclaims": listOf("resource.k8s.io/"+version, "ResourceClaim", object("ml/claim")),
				group + version + "/deviceclasses":                listOf("resource.k8s.io/"+version, "DeviceClass", object("class")),
				group + version + "/resourceslices":               listOf("resource.k8s.io/"+version, "ResourceSlice", object("slice")),
				group + "v1alpha3/devicetaintrules":               listOf("resource.k8s.io/v1alpha3", "DeviceTaintRule", object("rule")),
			})
			for _, hidden := range draVersions() {
				answers[group+hidden] = forbid()
			}
			s := mustCollect(t, start(t, answers), Options{})
			got := []int{len(s.Claims), len(s.Classes), len(s.Slices), len(s.TaintRules)}
			if !slices.Equal(got, []int{1, 1, 1, 1}) {
				t.Errorf("got %v claims, classes, slices and rules, want one of each; gaps %+v", got, s.Gaps)
			}
		})
	}
}

func TestCollectInChunks(t *testing.T) {
	pod := func(name string) map[string]any { return listOf("v1", "Pod", object("ml/"+name)) }
	page := func(name, next string, remaining int) map[string]any {
		p := pod(name)
		p["metadata"] = map[string]any{"continue": next, "remainingItemCount": remaining}
		return p
	}
	expired := false
	handler := func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		switch next := query.Get("continue"); {
		case expired && next == "" && query.Get("limit") == "":
			all := listOf("v1", "Pod", object("ml/one"), object("ml/two"), object("ml/three"))
			apiServer{r.URL.Path: all}.ServeHTTP(w, r)
		case expired && next == "token-2":
			refuse(http.StatusGone, metav1.StatusReasonExpired)(w, r)
		case next == "" && query.Get("limit") == "500":
			apiServer{r.URL.Path: page("one", "token-1", 2)}.ServeHTTP(w, r)
		case next == "token-1":
			apiServer{r.URL.Path: page("two", "token-2", 1)}.ServeHTTP(w, r)
		case next == "token-2":
			apiServer{r.URL.Path: pod("three")}.ServeHTTP(w, r)
		default:
			refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest)(w, r)
		}
	}
	clients := start(t, smallCluster().with(apiServer{"/api/v1/pods": http.HandlerFunc(handler)}))
	want := []string{"Pod ml/one", "Pod ml/three", "Pod ml/two"}

	var done, total int
	s := mustCollect(t, clients, Options{Progress: func(d, n int, _ string) { done, total = d, n }})
	expect(t, "pods", want, named("Pod", s.Pods))
	if all := len(contents(s)); done != all || total != all {
		t.Errorf("the last progress was %d of %d, there are %d objects", done, total, all)
	}

	expired = true
	s = mustCollect(t, clients, Options{})
	expect(t, "pods after the list expired", want, named("Pod", s.Pods))
}

func TestCollectReturnsWhenCancelled(t *testing.T) {
	for _, path := range []string{"/version", "/apis/resource.k8s.io/v1", "/api/v1/pods", "/metrics"} {
		t.Run(path, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			release := make(chan struct{})
			hang := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				cancel()
				<-release
			})
			clients := start(t, smallCluster().with(apiServer{path: hang}))
			t.Cleanup(func() { close(release) })

			s, err := Collect(ctx, clients, Options{})
			if s != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("got snapshot %v and error %v", s != nil, err)
			}
		})
	}
}

// TestCollectPlugins reads the configuration of device plugins where a node has a resource of NVIDIA, and
// says what may not be read.
func TestCollectPlugins(t *testing.T) {
	node := object("gpu", map[string]any{"status": map[string]any{"allocatable": map[string]any{"nvidia.com/gpu": "4"}}})
	volume := func(source string, fields map[string]any) map[string]any {
		return map[string]any{"name": source, source: fields}
	}
	pod := object("gpu-operator/plugin", map[string]any{"spec": map[string]any{"volumes": []any{
		volume("hostPath", map[string]any{"path": "/var/lib/kubelet/device-plugins"}), volume("configMap", map[string]any{"name": "config"}),
	}}})
	answers := smallCluster().with(apiServer{
		"/api/v1/nodes": listOf("v1", "Node", node), "/api/v1/pods": listOf("v1", "Pod", pod),
		"/apis/nvidia.com/v1/clusterpolicies": listOf("nvidia.com/v1", "ClusterPolicy", object("policy", map[string]any{"spec": map[string]any{"mig": map[string]any{"strategy": "single"}}})),
		"/api/v1/namespaces/gpu-operator/configmaps/config": object("gpu-operator/config", map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"t4": "version: v1\nflags: {migStrategy: mixed, failOnInitError: true}", "note": "anything"},
		}),
	})
	options := Options{AllNamespaces: true, DevicePlugins: true}
	s := mustCollect(t, start(t, answers), options)
	if len(s.ClusterPolicies) != 1 || s.ClusterPolicies[0].Spec.MIG.Strategy != "single" || len(s.PluginConfigs) != 1 {
		t.Fatalf("policies %+v, configurations %+v", s.ClusterPolicies, s.PluginConfigs)
	}
	if data := s.PluginConfigs[0].Data; len(data) != 1 || data["t4"] != `{"version":"v1","flags":{"migStrategy":"mixed"},"sharing":{}}` {
		t.Errorf("the configuration is %v", data)
	}
	s = mustCollect(t, start(t, answers.with(apiServer{"/apis/nvidia.com/v1/clusterpolicies": forbid(), "/api/v1/namespaces/gpu-operator/configmaps/config": forbid()})), options)
	expect(t, "gaps", []string{
		"clusterpolicies.nvidia.com[]: this user may not list clusterpolicies.nvidia.com at the cluster scope",
		"configmaps[]: this user may not get ConfigMap config in namespace gpu-operator",
	}, gapTexts(s))
	s = mustCollect(t, start(t, answers.without("/apis/nvidia.com")), options)
	expect(t, "gaps without the GPU Operator", nil, gapTexts(s))
	if s := mustCollect(t, start(t, answers), Options{AllNamespaces: true}); len(s.ClusterPolicies)+len(s.PluginConfigs) > 0 {
		t.Errorf("read without need: %+v, %+v", s.ClusterPolicies, s.PluginConfigs)
	}
}
