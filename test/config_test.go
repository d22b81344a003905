// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// configComponents returns the components of config that are not applied by default.
func configComponents() []string { return []string{"events", "grafana", "prometheus"} }

// configured has the objects of config, by kind and name.
type configured map[string]runtime.Object

// kustomized builds config with some of its components.
func kustomized(t *testing.T, components ...string) []*unstructured.Unstructured {
	t.Helper()
	config, err := filepath.Abs("../config")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(dir, config)
	if err != nil {
		t.Fatal(err)
	}
	overlay := fmt.Sprintf("resources: [%s]\ncomponents:\n", relative)
	for _, component := range components {
		overlay += fmt.Sprintf("- %s\n", filepath.Join(relative, component))
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		t.Fatal(err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		object, err := parseObject(text)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// buildConfig is like [kustomized], and decodes what comes out. Unknown fields are errors. Objects
// of kinds that Kubernetes does not have are only counted, by kind.
func buildConfig(t *testing.T, components ...string) (objects configured, others map[string]int) {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	objects, others = configured{}, map[string]int{}
	for _, built := range kustomized(t, components...) {
		if built.GroupVersionKind().Group == "monitoring.coreos.com" {
			others[built.GetKind()]++
			continue
		}
		text, err := built.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		object, kind, err := decoder.Decode(text, nil, nil)
		if err != nil {
			t.Fatalf("%s %s: %v", built.GetKind(), built.GetName(), err)
		}
		key := kind.Kind + " " + built.GetName()
		if objects[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		objects[key] = object
	}
	return objects, others
}

// configObject returns an object of config.
func configObject[T runtime.Object](t *testing.T, objects configured, key string) T {
	t.Helper()
	object, ok := objects[key].(T)
	if !ok {
		t.Fatalf("there is no %s among %q", key, slices.Sorted(maps.Keys(objects)))
	}
	return object
}

// TestConfig builds what `kubectl apply -k config` applies, and checks that its objects fit
// each other.
func TestConfig(t *testing.T) {
	objects, others := buildConfig(t)
	if len(others) > 0 {
		t.Errorf("a cluster may lack these kinds, and they are applied by default: %v", others)
	}
	deployment := configObject[*appsv1.Deployment](t, objects, "Deployment dra-controller")
	pod := &deployment.Spec.Template
	if selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector); err != nil || !selector.Matches(labels.Set(pod.Labels)) {
		t.Errorf("the Deployment selects %s, and its pods have %v (%v)", selector, pod.Labels, err)
	}
	if len(pod.Spec.Containers) != 1 {
		t.Fatalf("%d containers, want 1", len(pod.Spec.Containers))
	}
	container := &pod.Spec.Containers[0]
	ports := map[string]int32{}
	for _, port := range container.Ports {
		ports[port.Name] = port.ContainerPort
	}
	// The defaults of the flags that say where it listens.
	if diff := cmp.Diff(map[string]int32{"metrics": 8443, "health": 8081}, ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	for name, probe := range map[string]*corev1.Probe{"/healthz": container.LivenessProbe, "/readyz": container.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != name || probe.HTTPGet.Port.String() != "health" {
			t.Errorf("no probe of %s on port health: %v", name, probe)
		}
	}
	for place, selector := range map[string]*metav1.LabelSelector{
		"anti-affinity": pod.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm.LabelSelector,
		"spread":        pod.Spec.TopologySpreadConstraints[0].LabelSelector,
		"budget":        configObject[*policyv1.PodDisruptionBudget](t, objects, "PodDisruptionBudget dra-controller").Spec.Selector,
		"policy":        &configObject[*networkingv1.NetworkPolicy](t, objects, "NetworkPolicy dra-controller").Spec.PodSelector,
		"service":       {MatchLabels: configObject[*corev1.Service](t, objects, "Service dra-controller").Spec.Selector},
	} {
		if s, err := metav1.LabelSelectorAsSelector(selector); err != nil || s.Empty() || !s.Matches(labels.Set(pod.Labels)) {
			t.Errorf("%s selects %s, and the pods have %v (%v)", place, s, pod.Labels, err)
		}
	}
	for _, port := range configObject[*corev1.Service](t, objects, "Service dra-controller").Spec.Ports {
		if ports[port.TargetPort.String()] == 0 || port.Port != ports[port.TargetPort.String()] {
			t.Errorf("the Service has port %d for %s, and the pods have %v", port.Port, port.TargetPort.String(), ports)
		}
	}
	for _, rule := range configObject[*networkingv1.NetworkPolicy](t, objects, "NetworkPolicy dra-controller").Spec.Ingress {
		for _, port := range rule.Ports {
			if ports[port.Port.String()] == 0 {
				t.Errorf("the NetworkPolicy lets in %s, and the pods have %v", port.Port, ports)
			}
		}
	}
	image, tag, _ := strings.Cut(container.Image, ":")
	if image != "ghcr.io/kubectl-dra/dra-controller" || tag != lastRelease(t) {
		t.Errorf("image %s, want ghcr.io/kubectl-dra/dra-controller:%s, the last release of CHANGELOG.md", container.Image, lastRelease(t))
	}
	if deployment.Spec.Replicas == nil || *deployment.Spec.Replicas < 2 || !slices.Contains(container.Args, "--leader-elect") {
		t.Error("there is no other replica that takes over, or none is elected")
	}
	if slices.Contains(container.Args, "--events") {
		t.Error("events are written without the component events")
	}
	checkConfigRights(t, objects, pod.Spec.ServiceAccountName)
}

// lastRelease returns the last release in CHANGELOG.md, v0.1.0 while there is none.
func lastRelease(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`(?m)^## \[v?(\d[^\]]*)\]`).FindSubmatch(text); found != nil {
		return "v" + string(found[1])
	}
	return "v0.1.0"
}

// checkConfigRights checks that all objects are in the one namespace, and that roles are bound
// to the service account.
func checkConfigRights(t *testing.T, objects configured, account string) {
	t.Helper()
	const namespace = "kubectl-dra"
	if objects["Namespace "+namespace] == nil || objects["ServiceAccount "+account] == nil {
		t.Errorf("no Namespace %s or no ServiceAccount %s", namespace, account)
	}
	check := func(key string, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
		if objects[role.Kind+" "+role.Name] == nil {
			t.Errorf("%s: there is no %s %s", key, role.Kind, role.Name)
		}
		if want := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: namespace}}; !slices.Equal(subjects, want) {
			t.Errorf("%s: subjects %v, want %v", key, subjects, want)
		}
	}
	for key, object := range objects {
		switch o := object.(type) {
		case *rbacv1.ClusterRoleBinding:
			check(key, o.RoleRef, o.Subjects)
		case *rbacv1.RoleBinding:
			check(key, o.RoleRef, o.Subjects)
		case *rbacv1.ClusterRole, *corev1.Namespace:
			continue
		}
		named, err := meta.Accessor(object)
		if err != nil {
			t.Fatal(err)
		}
		if _, cluster := object.(*rbacv1.ClusterRoleBinding); !cluster && named.GetNamespace() != namespace {
			t.Errorf("%s is not in namespace %s", key, namespace)
		}
	}
}

// TestConfigComponents adds the components.
func TestConfigComponents(t *testing.T) {
	objects, others := buildConfig(t, configComponents()...)
	pod := &configObject[*appsv1.Deployment](t, objects, "Deployment dra-controller").Spec.Template
	if args := pod.Spec.Containers[0].Args; !slices.Equal(args, []string{"--leader-elect", "--events"}) {
		t.Errorf("args %q with the component events", args)
	}
	if want := map[string]int{"ServiceMonitor": 1, "PrometheusRule": 1}; !maps.Equal(others, want) {
		t.Errorf("kinds of Prometheus %v, want %v", others, want)
	}
	if board := configObject[*corev1.ConfigMap](t, objects, "ConfigMap dra-controller-dashboard"); board.Data["dashboard.json"] == "" {
		t.Error("the ConfigMap has no dashboard")
	}
	checkConfigRights(t, objects, pod.Spec.ServiceAccountName)

	// The program knows the arguments, and listens where the objects say by default.
	help, err := exec.CommandContext(t.Context(), builtController(t), append(slices.Clone(pod.Spec.Containers[0].Args), "--help")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, help)
	}
	for _, port := range pod.Spec.Containers[0].Ports {
		if address := fmt.Sprintf("(default \":%d\")", port.ContainerPort); !strings.Contains(string(help), address) {
			t.Errorf("no address %s in\n%s", address, help)
		}
	}
}

// builtController builds dra-controller and returns where it is.
func builtController(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dra-controller")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../cmd/dra-controller").CombinedOutput(); err != nil {
		t.Fatalf("build dra-controller: %v\n%s", err, out)
	}
	return path
}

// TestConfigRights checks that the controller may read what `top` reads according to
// docs/rbac.md, ask about those who want its metrics, elect a leader, and nothing else.
func TestConfigRights(t *testing.T) {
	document := readRights(t)
	want := map[string]bool{
		"create tokenreviews.authentication.k8s.io":        true,
		"create subjectaccessreviews.authorization.k8s.io": true,
	}
	for _, role := range []string{"ClusterRole kubectl-dra-devices", "ClusterRole kubectl-dra-claims"} {
		for _, rule := range document.roles[role] {
			// Workloads are not in the table for each verb that may come upon them.
			workloads := slices.Contains([]string{"deployments.apps", "jobs.batch"}, rightOf(rule)) || slices.Contains(rule.Resources, "cronjobs")
			if workloads || document.uses["top"][rightOf(rule)] != markUnused {
				maps.Copy(want, single(rule))
			}
		}
	}
	objects, _ := buildConfig(t, "events")
	rights := func(rules []rbacv1.PolicyRule) map[string]bool {
		got := map[string]bool{}
		for _, rule := range rules {
			if len(rule.ResourceNames) == 0 {
				maps.Copy(got, single(rule))
			}
		}
		return got
	}
	if diff := cmp.Diff(want, rights(configObject[*rbacv1.ClusterRole](t, objects, "ClusterRole dra-controller").Rules)); diff != "" {
		t.Errorf("rights in the cluster (-want +got):\n%s", diff)
	}
	events := map[string]bool{}
	for _, verb := range []string{"list", "create", "patch", "delete"} {
		events[verb+" events.events.k8s.io"] = true
	}
	if diff := cmp.Diff(events, rights(configObject[*rbacv1.ClusterRole](t, objects, "ClusterRole dra-controller-events").Rules)); diff != "" {
		t.Errorf("rights of the component events (-want +got):\n%s", diff)
	}
	elects := map[string]bool{"create leases.coordination.k8s.io": true, "create events": true, "patch events": true, "create events.events.k8s.io": true, "patch events.events.k8s.io": true}
	if diff := cmp.Diff(elects, rights(configObject[*rbacv1.Role](t, objects, "Role dra-controller").Rules)); diff != "" {
		t.Errorf("rights in its namespace but to its own Lease (-want +got):\n%s", diff)
	}
}

// single returns the rights of a rule as "VERB RESOURCE.GROUP".
func single(rule rbacv1.PolicyRule) map[string]bool {
	all := map[string]bool{}
	for _, verb := range rule.Verbs {
		for _, url := range rule.NonResourceURLs {
			all[verb+" "+url] = true
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				all[verb+" "+strings.TrimSuffix(resource+"."+group, ".")] = true
			}
		}
	}
	return all
}
