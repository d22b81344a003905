// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// check fails the test unless the error is the one wanted, none if that is empty.
func check(t *testing.T, name string, err error, want string) {
	t.Helper()
	if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
		t.Errorf("%s:\n got %s\nwant %s", name, got, want)
	}
}

// TestStored covers objects that no API server ever stored, and such as it does.
func TestStored(t *testing.T) {
	claim := func(requests ...tc.RequestWrapper) *resourceapi.ResourceClaim {
		return tc.Claim("c", requests...).ResourceClaim
	}
	slice := func(change func(*resourceapi.ResourceSlice)) *resourceapi.ResourceSlice {
		return tc.Slice("s", tc.Driver, "pool", tc.Device("gpu-0", "memory:=80Gi")).Change(change).ResourceSlice
	}
	for name, test := range map[string]struct {
		object  metav1.Object
		version string
		want    string
	}{
		"claim":                {object: claim(tc.GPUs("gpu", 1), tc.GPUs("all", 0).All())},
		"count of none":        {object: claim(tc.GPUs("gpu", 0)), want: "spec.devices.requests[0].exactly.count: expected at least 1, found 0"},
		"count, v1beta1":       {object: claim(tc.GPUs("gpu", -1)), version: "v1beta1", want: "spec.devices.requests[0].count: expected at least 1, found -1"},
		"count of alternative": {object: claim(tc.FirstAvailable("gpu", tc.GPUs("a", 1), tc.GPUs("b", -2))), want: "spec.devices.requests[0].firstAvailable[1].count: expected at least 1, found -2"},
		"template":             {object: tc.Template("t", tc.GPUs("gpu", 0)), want: "spec.spec.devices.requests[0].exactly.count: expected at least 1, found 0"},
		"slice":                {object: slice(func(*resourceapi.ResourceSlice) {})},
		"no slices":            {object: slice(func(s *resourceapi.ResourceSlice) { s.Spec.Pool.ResourceSliceCount = 0 }), want: "spec.pool.resourceSliceCount: expected at least 1, found 0"},
		"negative generation":  {object: slice(func(s *resourceapi.ResourceSlice) { s.Spec.Pool.Generation = -1 }), want: "spec.pool.generation: expected at least 0, found -1"},
		"step of zero": {object: slice(func(s *resourceapi.ResourceSlice) {
			memory := s.Spec.Devices[0].Capacity["memory"]
			memory.RequestPolicy = &resourceapi.CapacityRequestPolicy{ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &memory.Value, Step: quantity("0")}}
			s.Spec.Devices[0].Capacity["memory"] = memory
		}), want: `spec.devices[0].capacity["memory"].requestPolicy.validRange.step: expected a quantity greater than zero, found 0`},
		"name of a device": {object: slice(func(s *resourceapi.ResourceSlice) { s.Spec.Devices[0].Name = "GPU 0" }), want: `spec.devices[0].name: expected a DNS label (lowercase letters, digits and "-"), found "GPU 0"`},
		"name of a pod":    {object: tc.Pod("p_1"), want: `metadata.name: expected a DNS subdomain (lowercase letters, digits, "-" and "."), found "p_1"`},
		"many devices": {object: slice(func(s *resourceapi.ResourceSlice) {
			for range 128 {
				s.Spec.Devices = append(s.Spec.Devices, s.Spec.Devices[0])
			}
		}), want: "spec.devices: expected at most 128 elements, found 129"},
	} {
		check(t, name, kinds.CheckStored(test.object, "resource.k8s.io/"+cmp.Or(test.version, "v1"), ""), test.want)
	}
}

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

// TestValues covers manifests that the API server refuses for what they say about devices.
func TestValues(t *testing.T) {
	for name, test := range map[string]struct {
		object metav1.Object
		want   string
	}{
		"claim":             {object: tc.Claim("c", tc.GPUs("gpu", 1), tc.FirstAvailable("any", tc.GPUs("a", 1))).Matching("x", "gpu", "any/a").ResourceClaim},
		"no class":          {object: tc.Claim("c", tc.Request("gpu", "", 1)).ResourceClaim, want: "spec.devices.requests[0].exactly.deviceClassName: expected a name, found none"},
		"one name for two":  {object: tc.Claim("c", tc.GPUs("gpu", 1), tc.GPUs("gpu", 1)).ResourceClaim, want: `spec.devices.requests[1].name: "gpu" is also the name of another before it; each needs its own`},
		"count and All":     {object: tc.Claim("c", tc.GPUs("gpu", 0).All().Change(func(r *resourceapi.ExactDeviceRequest) { r.Count = 2 })).ResourceClaim, want: "spec.devices.requests[0].exactly.count: expected none, since allocationMode is All, found 2"},
		"unknown mode":      {object: tc.Claim("c", tc.GPUs("gpu", 1).Change(func(r *resourceapi.ExactDeviceRequest) { r.AllocationMode = "Some" })).ResourceClaim, want: `spec.devices.requests[0].exactly.allocationMode: expected ExactCount or All, found "Some"`},
		"empty request":     {object: tc.Claim("c", tc.FirstAvailable("gpu")).ResourceClaim, want: "spec.devices.requests[0]: expected exactly or firstAvailable, found none"},
		"unknown reference": {object: tc.Claim("c", tc.GPUs("gpu", 1)).Matching("x", "gpus").ResourceClaim, want: `spec.devices.constraints[0].requests[0]: there is no request "gpus"`},
		"pod":               {object: tc.Pod("p", tc.Using("c"))},
		"no claim of pod":   {object: tc.Pod("p", func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c"}} }), want: "spec.resourceClaims[0]: expected resourceClaimName or resourceClaimTemplateName, found none"},
		"both of them":      {object: tc.Pod("p", tc.UsingClaim("c", "c"), func(p *corev1.Pod) { p.Spec.ResourceClaims[0].ResourceClaimTemplateName = new(string) }), want: "spec.resourceClaims[0]: expected resourceClaimName or resourceClaimTemplateName, found both"},
		"container asks for another claim": {
			object: tc.Pod("p", tc.Using("c"), func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Claims[0].Name = "d" }),
			want:   `spec.containers[0].resources.claims[0].name: "d" is none of spec.resourceClaims: c`,
		},
		"template of a CronJob": {
			object: &snapshot.Workload{TypeMeta: metav1.TypeMeta{Kind: "CronJob"}, Template: corev1.PodTemplateSpec{Spec: tc.Pod("p", func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{}} }).Spec}},
			want:   "spec.jobTemplate.spec.template.spec.resourceClaims[0].name: expected a name, found none",
		},
	} {
		version := "resource.k8s.io/v1"
		if _, ok := test.object.(*snapshot.Workload); ok {
			version = "batch/v1"
		}
		check(t, name, kinds.CheckValues(test.object, version), test.want)
	}
}

// TestFields covers manifests with fields that nobody reads, and where they belong.
func TestFields(t *testing.T) {
	for name, test := range map[string]struct{ apiVersion, kind, text, want string }{
		"claim":           {"resource.k8s.io/v1", "ResourceClaim", `{"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}}`, ""},
		"older form":      {"resource.k8s.io/v1", "ResourceClaim", `{"spec":{"devices":{"requests":[{"name":"r","deviceClassName":"c"}]}}}`, "spec.devices.requests[0].deviceClassName: unknown field; in v1 it belongs under exactly"},
		"newer form":      {"resource.k8s.io/v1beta1", "ResourceClaim", `{"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}}`, "spec.devices.requests[0].exactly: unknown field; in v1beta1 what is in it belongs directly under spec.devices.requests[0]"},
		"typo":            {"v1", "Pod", `{"spec":{"nodeNme":"n"}}`, "spec.nodeNme: unknown field; did you mean nodeName?"},
		"unlike anything": {"v1", "Pod", `{"spec":{"zzzz":1}}`, "spec.zzzz: unknown field"},
		"no version":      {"", "Deployment", `{}`, "apiVersion: expected apps/v1, found none"},
		"another group":   {"example.com/v1", "Pod", `{}`, ""},
		"not its group":   {"v1", "Deployment", `{}`, `apiVersion: expected apps/v1, found "v1"`},
		"far above":       {"resource.k8s.io/v1", "ResourceClaim", `{"spec":{"tolerations":[{"key":"a","tolerationSeconds":3}]}}`, "spec.tolerations: unknown field; in v1 it belongs under spec.devices.requests[*].exactly"},
		"classic name":    {"resource.k8s.io/v1", "ResourceClaim", `{"spec":{"resourceClassName":"c"}}`, "spec.resourceClassName: unknown field; did you mean spec.devices.requests[*].exactly.deviceClassName?"},
		"of the pod":      {"v1", "Pod", `{"spec":{"containers":[{"name":"c","resourceClaims":[{"name":"r","resourceClaimName":"c"}]}]}}`, "spec.containers[0].resourceClaims: unknown field; in v1 it belongs under spec"},
		"of the template": {"apps/v1", "Deployment", `{"spec":{"resourceClaims":[{"name":"r","resourceClaimName":"c"}]}}`, "spec.resourceClaims: unknown field; in v1 it belongs under spec.template.spec"},
		"of a container":  {"v1", "Pod", `{"spec":{"containers":[{"name":"c","claims":[{"name":"r"}]}]}}`, "spec.containers[0].claims: unknown field; in v1 it belongs under resources"},
		"of an element":   {"v1", "Pod", `{"spec":{"containers":[{"name":"c","port":80}]}}`, "spec.containers[0].port: unknown field; did you mean ports?"},
		"on top":          {"v1", "Pod", `{"spec":{"metadata":{"name":"p"}}}`, "spec.metadata: unknown field; it belongs to the object itself"},
		"in a selector":   {"resource.k8s.io/v1", "DeviceClass", `{"spec":{"selectors":[{"expression":"true"}]}}`, "spec.selectors[0].expression: unknown field; in v1 it belongs under cel"},
		"constraint":      {"resource.k8s.io/v1", "ResourceClaim", `{"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","matchAttribute":"a/b"}}]}}}`, "spec.devices.requests[0].exactly.matchAttribute: unknown field; in v1 it belongs under spec.devices.constraints[*]"},
		"old version":     {"apps/v1beta1", "Deployment", `{}`, `apiVersion: expected apps/v1, found "apps/v1beta1"`},
		"another kind":    {"example.com/v1", "Widget", `{"anything":1}`, ""},
	} {
		check(t, name, kinds.NewDecoder().CheckFields([]byte(test.text), test.apiVersion, test.kind), test.want)
	}
}

// TestReferences covers names of kinds, owners, consumers and other objects.
func TestReferences(t *testing.T) {
	check(t, "type", kinds.CheckType("resource.k8s.io/v1", "ResourceClaim"), "")
	check(t, "version", kinds.CheckType("a/b/c", "Pod"), "apiVersion: expected a group and a version such as resource.k8s.io/v1, found \"a/b/c\"")
	check(t, "kind", kinds.CheckType("v1", "Pod!"), `kind: expected a kind (letters, digits and "-"), found "Pod!"`)
	check(t, "owner", kinds.Owner(&metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p"}, 0), "")
	check(t, "owner without a kind", kinds.Owner(&metav1.OwnerReference{Kind: "P d", Name: "p"}, 1), `metadata.ownerReferences[1].kind: expected a kind (letters, digits and "-"), found "P d"`)
	check(t, "reference", kinds.Reference(&corev1.ObjectReference{Kind: "Pod", Namespace: "ml", Name: "system:node"}, "involvedObject"), "")
	check(t, "namespace of a reference", kinds.Reference(&corev1.ObjectReference{Kind: "Pod", Namespace: "M L", Name: "p"}, "involvedObject"), `involvedObject.namespace: expected a DNS label (lowercase letters, digits and "-"), found "M L"`)
	check(t, "consumer", kinds.Consumer(&tc.Claim("c").ReservedFor("p", "u").Status.ReservedFor[0], 0), "")
	check(t, "consumer of no resource", kinds.Consumer(&resourceapi.ResourceClaimConsumerReference{Resource: "Pods", Name: "p"}, 2), `status.reservedFor[2].resource: expected a DNS label (lowercase letters, digits and "-"), found "Pods"`)
	check(t, "header", kinds.CheckHeader(&snapshot.Header{ServerVersion: "v1.37.1", Gaps: []snapshot.Gap{{Resource: snapshot.ResourceClaims, Namespace: "ml"}}}), "")
	check(t, "version of a server", kinds.CheckHeader(&snapshot.Header{ServerVersion: "newest"}), `serverVersion: expected a version such as v1.36.1, found "newest"`)
	check(t, "gap", kinds.CheckHeader(&snapshot.Header{Gaps: []snapshot.Gap{{Resource: "pods", Namespace: "M"}}}), `gaps[0].namespace: expected a DNS label (lowercase letters, digits and "-"), found "M"`)
}

// TestSize counts values, since a short text can have very many.
func TestSize(t *testing.T) {
	check(t, "long text", kinds.CheckSize([]byte(`["`+strings.Repeat("x", 1<<20)+`"]`)), "")
	check(t, "many values", kinds.CheckSize([]byte("["+strings.Repeat("1,", 100_000)+"1]")), "expected at most 100000 values in an object, found 100002")
	if err := kinds.CheckSize(make([]byte, kinds.MaxDocument+1)); err == nil || err.Error() != kinds.TooLarge(kinds.MaxDocument+1).Error() {
		t.Errorf("more than the largest document: %v", err)
	}
}
