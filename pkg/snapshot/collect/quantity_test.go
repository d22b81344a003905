// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// longQuantity is a quantity that an API server stores, as it sends it.
const longQuantity = "100e999999999"

func longQuantityText(t *testing.T, text string) map[string]any {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "LONG", longQuantity)), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// TestCollectLongExponents reads objects with a quantity that nothing can be computed
// with. They are left out, and the others of their lists are not.
func TestCollectLongExponents(t *testing.T) {
	const (
		v1     = "resource.k8s.io/v1"
		device = `{"spec": {"devices": [{"name": "d", "capacity": {"memory": {"value": "1", "requestPolicy": `
		claim  = `{"devices": {"requests": [{"name": "r", "exactly": {"capacity": {"requests": {"memory": "LONG"}}}}]}}`
	)
	for _, test := range []struct {
		apiVersion, kind, resource, object, field string
	}{
		{v1, "ResourceSlice", snapshot.ResourceSlices, `{"spec": {"devices": [{"name": "d", "capacity": {"memory": {"value": "LONG"}}}]}}`, `spec.devices[0].capacity["memory"].value`},
		{
			v1, "ResourceSlice", snapshot.ResourceSlices, `{"spec": {"devices": [{"name": "d", "consumesCounters": [{"counterSet": "c", "counters": {"units": {"value": "LONG"}}}]}]}}`,
			`spec.devices[0].consumesCounters[0].counters["units"].value`,
		},
		{v1, "ResourceSlice", snapshot.ResourceSlices, `{"spec": {"sharedCounters": [{"name": "c", "counters": {"b": {"value": "LONG"}, "a": {"value": "LONG"}}}]}}`, `spec.sharedCounters[0].counters["a"].value`},
		{v1, "ResourceSlice", snapshot.ResourceSlices, device + `{"default": "LONG"}}}}]}}`, `spec.devices[0].capacity["memory"].requestPolicy.default`},
		{v1, "ResourceSlice", snapshot.ResourceSlices, device + `{"validValues": ["1", "LONG"]}}}}]}}`, `spec.devices[0].capacity["memory"].requestPolicy.validValues[1]`},
		{v1, "ResourceSlice", snapshot.ResourceSlices, device + `{"validRange": {"min": "LONG"}}}}}]}}`, `spec.devices[0].capacity["memory"].requestPolicy.validRange.min`},
		{v1, "ResourceSlice", snapshot.ResourceSlices, device + `{"validRange": {"min": "0", "max": "-LONG"}}}}}]}}`, `spec.devices[0].capacity["memory"].requestPolicy.validRange.max`},
		{v1, "ResourceSlice", snapshot.ResourceSlices, device + `{"validRange": {"min": "0", "step": "LONG"}}}}}]}}`, `spec.devices[0].capacity["memory"].requestPolicy.validRange.step`},
		{v1, "ResourceClaim", snapshot.ResourceClaims, `{"spec": ` + claim + `}`, `spec.devices.requests[0].exactly.capacity.requests["memory"]`},
		{
			v1, "ResourceClaim", snapshot.ResourceClaims, `{"status": {"allocation": {"devices": {"results": [{"device": "d", "consumedCapacity": {"memory": "LONG"}}]}}}}`,
			`status.allocation.devices.results[0].consumedCapacity["memory"]`,
		},
		{v1, "ResourceClaimTemplate", snapshot.ResourceTemplates, `{"spec": {"spec": ` + claim + `}}`, `spec.spec.devices.requests[0].exactly.capacity.requests["memory"]`},
		{"v1", "Node", snapshot.ResourceNodes, `{"status": {"allocatable": {"cpu": "LONG"}}}`, `status.allocatable["cpu"]`},
		{"v1", "Pod", snapshot.ResourcePods, `{"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "LONG"}}}]}}`, `spec.containers[0].resources.requests["cpu"]`},
		{"v1", "Pod", snapshot.ResourcePods, `{"spec": {"overhead": {"cpu": "LONG"}}}`, `spec.overhead["cpu"]`},
		{"v1", "ResourceQuota", snapshot.ResourceQuotas, `{"status": {"hard": {"requests.cpu": "LONG"}}}`, `status.hard["requests.cpu"]`},
		{"v1", "LimitRange", snapshot.ResourceLimitRanges, `{"spec": {"limits": [{"type": "Container", "min": {"cpu": "LONG"}}]}}`, `spec.limits[0].min["cpu"]`},
		{"v1", "PersistentVolumeClaim", snapshot.ResourceVolumeClaims, `{"spec": {"resources": {"requests": {"storage": "LONG"}}}}`, `spec.resources.requests["storage"]`},
		{"v1", "PersistentVolume", snapshot.ResourceVolumes, `{"spec": {"capacity": {"storage": "LONG"}}}`, `spec.capacity["storage"]`},
		{
			"apps/v1", "DaemonSet", snapshot.ResourceDaemonSets, `{"spec": {"template": {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/var/lib/kubelet/plugins_registry"}}],
				"containers": [{"name": "c", "resources": {"limits": {"cpu": "LONG"}}, "volumeMounts": [{"name": "v", "mountPath": "/var/lib/kubelet/plugins_registry"}]}]}}}}`,
			`spec.template.spec.containers[0].resources.limits["cpu"]`,
		},
	} {
		name := test.kind + " " + test.field
		t.Run(name, func(t *testing.T) {
			at := "/api/v1/"
			if test.apiVersion != "v1" {
				at = "/apis/" + test.apiVersion + "/"
			}
			plural, _, _ := strings.Cut(test.resource, ".")
			answers := smallCluster().with(apiServer{at + plural: listOf(test.apiVersion, test.kind, object("a"), object("long", longQuantityText(t, test.object)), object("z"))})
			if test.kind == "DaemonSet" {
				plugin := strings.ReplaceAll(test.object, "LONG", "1")
				answers[at+plural] = listOf(test.apiVersion, test.kind, object("a", longQuantityText(t, plugin)), object("long", longQuantityText(t, test.object)), object("z", longQuantityText(t, plugin)))
			}
			s := mustCollect(t, start(t, answers), Options{Creates: true, UsesVolumes: true})
			var gap *snapshot.Gap
			if gap = s.Gap(test.resource); gap == nil || !gap.LeftOut {
				t.Fatalf("got %v", s.Gaps)
			}
			prefix := fmt.Sprintf("left out %s long: %s: expected a quantity with an exponent between -99 and 99, found ", test.kind, test.field)
			if !strings.HasPrefix(gap.Reason, prefix) {
				t.Errorf("got %q, want %q", gap.Reason, prefix)
			}
			if kept, err := json.Marshal(s); err != nil || strings.Contains(string(kept), `:"`+longQuantity) || strings.Count(string(kept), `"name":"a"`) == 0 || strings.Count(string(kept), `"name":"z"`) == 0 {
				t.Errorf("not only the one is left out: %s, %v", kept, err)
			}
		})
	}
}

// TestCollectManyLongExponents names one of several, also where only one namespace
// can be read.
func TestCollectManyLongExponents(t *testing.T) {
	spec := longQuantityText(t, `{"spec": {"devices": {"requests": [{"name": "r", "exactly": {"capacity": {"requests": {"memory": "LONG"}}}}]}}}`)
	answers := smallCluster().with(apiServer{
		claimsPath: forbid(),
		"/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims": listOf("resource.k8s.io/v1", "ResourceClaim", object("ml/c", spec), object("ml/fine"), object("ml/b", spec), object("ml/a", spec)),
	})
	s := mustCollect(t, start(t, answers), Options{})
	expect(t, "claims", []string{"Claim ml/fine"}, named("Claim", s.Claims))
	left := "left out ResourceClaim ml/a and 2 more: spec.devices.requests[0].exactly.capacity.requests[\"memory\"]: expected a quantity with an exponent between -99 and 99, found \"" + longQuantity + `"`
	if gap := s.Gap(snapshot.ResourceClaims); gap == nil || *gap != (snapshot.Gap{Resource: snapshot.ResourceClaims, LeftOut: true, Reason: left}) {
		t.Errorf("got %v, want %q", s.Gaps, left)
	}
	if len(s.Gaps) != 2 {
		t.Errorf("got %v, want one about the right as well", s.Gaps)
	}
}

// TestWatchLongExponents covers a gap as long as something is left out.
func TestWatchLongExponents(t *testing.T) {
	spec := longQuantityText(t, `{"spec": {"devices": {"requests": [{"name": "r", "exactly": {"capacity": {"requests": {"memory": "LONG"}}}}]}}}`)
	f := newFeed(smallCluster().with(apiServer{claimsPath: listOf("resource.k8s.io/v1", "ResourceClaim", object("ml/a", spec), object("ml/fine"))}))
	w := mustWatch(t, start(t, f), Options{})
	about := func(s *snapshot.Snapshot) string {
		if gap := s.Gap(snapshot.ResourceClaims); gap != nil {
			said, _, _ := strings.Cut(gap.Reason, ":")
			return said
		}
		return ""
	}
	until(t, w, "a claim is left out", func(s *snapshot.Snapshot) bool { return about(s) == "left out ResourceClaim ml/a" })
	f.send(claimsPath, "ADDED", claimObject("ml/b", "5", spec))
	until(t, w, "two are left out", func(s *snapshot.Snapshot) bool { return about(s) == "left out ResourceClaim ml/a and 1 more" })
	f.send(claimsPath, "MODIFIED", claimObject("ml/a", "6"))
	until(t, w, "one is left out", func(s *snapshot.Snapshot) bool {
		return about(s) == "left out ResourceClaim ml/b" && s.Claim("ml", "a") != nil
	})
	f.send(claimsPath, "DELETED", claimObject("ml/b", "7", spec))
	now := until(t, w, "none is left out", func(s *snapshot.Snapshot) bool { return about(s) == "" })
	expect(t, "claims", []string{"Claim ml/a", "Claim ml/fine"}, named("Claim", now.Claims))
}
