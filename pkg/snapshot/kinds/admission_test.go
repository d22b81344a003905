// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func resourceList(text string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for pair := range strings.FieldsSeq(text) {
		name, quantity, _ := strings.Cut(pair, "=")
		l[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return l
}

func quotaOf(hard, used string, change ...func(*corev1.ResourceQuota)) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Status: corev1.ResourceQuotaStatus{Hard: resourceList(hard), Used: resourceList(used)}}
	for _, c := range change {
		c(q)
	}
	return q
}

func exactRequest(class string, mode resourceapi.DeviceAllocationMode, count int64) resourceapi.DeviceRequest {
	return resourceapi.DeviceRequest{Name: class, Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class, AllocationMode: mode, Count: count, AdminAccess: ptr.To(true)}}
}

func quotaClaim(requests ...resourceapi.DeviceRequest) *resourceapi.ResourceClaimSpec {
	return &resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: requests}}
}

// TestClaimQuota counts claims as the API server does: the most that each class
// can give, for all alternatives of a request.
func TestClaimQuota(t *testing.T) {
	alternatives := resourceapi.DeviceRequest{Name: "any", FirstAvailable: []resourceapi.DeviceSubRequest{
		{Name: "a", DeviceClassName: "gpu", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 2},
		{Name: "b", DeviceClassName: "gpu", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 3},
		{Name: "c", DeviceClassName: "nic", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1},
	}}
	const gpus, nics = "gpu.deviceclass.resource.k8s.io/devices", "nic.deviceclass.resource.k8s.io/devices"
	tests := map[string]struct {
		spec    *resourceapi.ResourceClaimSpec
		quota   *corev1.ResourceQuota
		classes QuotaClasses
		pod     string
		want    string
	}{
		"count":                  {quotaClaim(exactRequest("gpu", resourceapi.DeviceAllocationModeExactCount, 4)), quotaOf(gpus+"=8", gpus+"=5"), nil, "", "ResourceQuota q allows 8 of " + gpus + ": 5 used, 4 more needed"},
		"count that is left":     {quotaClaim(exactRequest("gpu", resourceapi.DeviceAllocationModeExactCount, 3)), quotaOf(gpus+"=8", gpus+"=5"), nil, "", ""},
		"all":                    {quotaClaim(exactRequest("gpu", resourceapi.DeviceAllocationModeAll, 0)), quotaOf(gpus+"=31", gpus+"=0"), nil, "", "32 more needed"},
		"alternatives":           {quotaClaim(alternatives), quotaOf(gpus+"=2", gpus+"=0"), nil, "", "3 more needed"},
		"alternatives elsewhere": {quotaClaim(alternatives), quotaOf(nics+"=0", nics+"=0"), nil, "", "1 more needed"},
		"claims":                 {quotaClaim(), quotaOf("count/resourceclaims.resource.k8s.io=1", "count/resourceclaims.resource.k8s.io=1"), nil, "", "1 used, 1 more needed"},
		"extended resource":      {quotaClaim(exactRequest("gpu", "", 2)), quotaOf("requests.example.com/gpu=1", "requests.example.com/gpu=0"), QuotaClasses{"gpu": "example.com/gpu"}, "", "2 more needed"},
		"extended by the pod":    {quotaClaim(exactRequest("gpu", "", 2)), quotaOf("requests.example.com/gpu=1", "requests.example.com/gpu=0"), QuotaClasses{"gpu": "example.com/gpu"}, "requests.example.com/gpu=2", ""},
		"implicit resource":      {quotaClaim(exactRequest("gpu", "", 1)), quotaOf("requests.deviceclass.resource.kubernetes.io/gpu=0", ""), QuotaClasses{"gpu": "example.com/gpu"}, "", "1 more needed"},
		"extended resources off": {quotaClaim(exactRequest("gpu", "", 2)), quotaOf("requests.example.com/gpu=1", ""), nil, "", ""},
		"scoped": {quotaClaim(exactRequest("gpu", "", 9)), quotaOf(gpus+"=8", gpus+"=5", func(q *corev1.ResourceQuota) {
			q.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}
		}), nil, "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			compareRefusals(t, ClaimQuotaRefusals([]*corev1.ResourceQuota{test.quota}, test.classes, ClaimQuotaUsage(test.spec, test.classes, resourceList(test.pod))), test.want)
		})
	}
}

func compareRefusals(t *testing.T, refusals []Refusal, want string) {
	t.Helper()
	var reasons []string
	for _, r := range refusals {
		reasons = append(reasons, r.Reason)
	}
	if got := strings.Join(reasons, "; "); want == "" && got != "" || !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func limitedPod(requests, limits string) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: resourceList(requests), Limits: resourceList(limits)}}}}}
}

// TestPodAdmission covers what refuses a pod, after it got its defaults.
func TestPodAdmission(t *testing.T) {
	ranges := func(item corev1.LimitRangeItem) []*corev1.LimitRange {
		return []*corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Name: "l"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}}
	}
	container := func(item corev1.LimitRangeItem) []*corev1.LimitRange {
		item.Type = corev1.LimitTypeContainer
		return ranges(item)
	}
	high := func(q *corev1.ResourceQuota) {
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"high"}}}}
	}
	tests := map[string]struct {
		pod    *corev1.Pod
		ranges []*corev1.LimitRange
		quota  *corev1.ResourceQuota
		want   string
	}{
		"enough":         {limitedPod("cpu=1 memory=1Gi", ""), nil, quotaOf("pods=2 cpu=4", "pods=1 cpu=2"), ""},
		"pods":           {limitedPod("", ""), nil, quotaOf("pods=1", "pods=1"), "allows 1 of pods: 1 used, 1 more needed"},
		"CPU":            {limitedPod("cpu=3", ""), nil, quotaOf("requests.cpu=4", "requests.cpu=2"), "allows 4 of requests.cpu: 2 used, 3 more needed"},
		"extended":       {limitedPod("example.com/gpu=2", "example.com/gpu=2"), nil, quotaOf("requests.example.com/gpu=1", ""), "2 more needed"},
		"not said":       {limitedPod("", ""), nil, quotaOf("limits.memory=4Gi", ""), "container main does not say how much it needs"},
		"said by limits": {limitedPod("", ""), container(corev1.LimitRangeItem{Default: resourceList("memory=1Gi")}), quotaOf("limits.memory=4Gi", ""), ""},
		"other priority": {limitedPod("", ""), nil, quotaOf("pods=0", "pods=0", high), ""},
		"too much":       {limitedPod("cpu=3", "cpu=3"), container(corev1.LimitRangeItem{Max: resourceList("cpu=2")}), nil, "LimitRange l allows no more than 2 of cpu, and container main has a limit of 3"},
		"no limit":       {limitedPod("cpu=1", ""), ranges(corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: resourceList("cpu=2")}), nil, "the pod has no limit"},
		"the maximum":    {limitedPod("cpu=1", ""), container(corev1.LimitRangeItem{Max: resourceList("cpu=2")}), nil, ""},
		"the minimum":    {limitedPod("", ""), container(corev1.LimitRangeItem{Min: resourceList("cpu=2")}), quotaOf("requests.cpu=1", ""), "2 more needed"},
		"a default":      {limitedPod("", ""), container(corev1.LimitRangeItem{Max: resourceList("cpu=2"), Default: resourceList("cpu=1"), DefaultRequest: resourceList("cpu=1")}), nil, ""},
		"too little":     {limitedPod("cpu=100m", ""), container(corev1.LimitRangeItem{Min: resourceList("cpu=200m")}), nil, "a request of 100m"},
		"ratio":          {limitedPod("cpu=1", "cpu=3"), container(corev1.LimitRangeItem{MaxLimitRequestRatio: resourceList("cpu=2")}), nil, "at most 2 times the request of cpu"},
		"whole pod":      {limitedPod("memory=3Gi", "memory=3Gi"), ranges(corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: resourceList("memory=2Gi")}), nil, "the pod has a limit of 3Gi"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := test.pod.DeepCopy()
			complete := WithLimitDefaults(test.ranges, test.pod)
			var quotas []*corev1.ResourceQuota
			if test.quota != nil {
				quotas = append(quotas, test.quota)
			}
			compareRefusals(t, append(LimitRefusals(test.ranges, complete), PodQuotaRefusals(quotas, complete)...), test.want)
			if diff := cmp.Diff(before, test.pod); diff != "" {
				t.Errorf("the pod was changed: %s", diff)
			}
		})
	}
}

// TestDefaultsAreNoted checks that pods record which of their requests come from a
// LimitRange, whether they got the defaults here or from an API server.
func TestDefaultsAreNoted(t *testing.T) {
	stored := limitedPod("cpu=40 memory=1Gi", "")
	stored.Annotations = map[string]string{"kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu, ephemeral-storage request for container main; memory limit for container main"}
	ranges := []*corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: resourceList("cpu=40"), Default: resourceList("memory=1Gi")}}}}}
	for name, p := range map[string]*corev1.Pod{"stored": stored, "of a file": WithLimitDefaults(ranges, limitedPod("memory=1Gi", ""))} {
		for resource, want := range map[corev1.ResourceName]bool{corev1.ResourceCPU: true, corev1.ResourceMemory: false} {
			if got := HasDefaultRequest(p, "container main", resource); got != want {
				t.Errorf("%s, %s: %t: %v", name, resource, got, p.Annotations)
			}
		}
	}
}
