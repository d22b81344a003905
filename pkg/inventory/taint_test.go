// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func rule(name, key string, effect resourceapi.DeviceTaintEffect, selector *resourceapi.DeviceTaintSelector) *resourceapi.DeviceTaintRule {
	return &resourceapi.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.DeviceTaintRuleSpec{DeviceSelector: selector, Taint: resourceapi.DeviceTaint{
			Key: key, Effect: effect, TimeAdded: &metav1.Time{Time: tc.Taken().Add(-time.Minute)},
		}},
	}
}

func tolerating(key string, seconds *int64) func(*resourceapi.DeviceRequestAllocationResult) {
	return func(r *resourceapi.DeviceRequestAllocationResult) {
		r.Tolerations = append(r.Tolerations, resourceapi.DeviceToleration{
			Key: key, Operator: resourceapi.DeviceTolerationOpExists, Effect: resourceapi.DeviceTaintEffectNoExecute, TolerationSeconds: seconds,
		})
	}
}

func TestTaints(t *testing.T) {
	const ruleKey, driverKey = "example.com/maintenance", "example.com/ecc"
	v := inventoryWith(t, tc.Gate("DRADeviceTaints", true), tc.Gate("DRADeviceTaintRules", true),
		tc.Pool(tc.Node1, tc.Device("gpu-0"), tc.Device("gpu-1"), tc.Device("gpu-2").TaintedSince(driverKey, resourceapi.DeviceTaintEffectNoSchedule, tc.Taken().Add(-time.Hour)), tc.Device("gpu-3").TaintedSince(driverKey, resourceapi.DeviceTaintEffectNoSchedule, tc.Taken().Add(-time.Hour))),
		rule("window", ruleKey, resourceapi.DeviceTaintEffectNoExecute, &resourceapi.DeviceTaintSelector{Pool: ptr.To(tc.Node1)}),
		rule("nobody", "example.com/none", resourceapi.DeviceTaintEffectNoSchedule, nil),
		tc.Claim("a", tc.GPUs("gpu", 1)).Holding("gpu-0").ReservedFor("goes", "uid-goes"), tc.Pod("goes", tc.Using("a"), tc.RunningOn(tc.Node1)),
		tc.Claim("b", tc.GPUs("gpu", 1)).Holding("gpu-1", tolerating(ruleKey, ptr.To[int64](300))).ReservedFor("later", "uid-later"), tc.Pod("later", tc.Using("b"), tc.RunningOn(tc.Node1)),
		tc.Claim("c", tc.GPUs("gpu", 1)).Holding("gpu-2", tolerating(ruleKey, nil)).ReservedFor("stays", "uid-stays"), tc.Pod("stays", tc.Using("c"), tc.RunningOn(tc.Node1)),
	)
	byKey := map[string]api.Taint{}
	for _, taint := range v.Taints() {
		byKey[taint.Key] = taint
	}
	if first := v.Taints()[0]; first.Key != ruleKey {
		t.Errorf("the first taint is %s, want the one that evicts", first.Key)
	}

	maintenance := byKey[ruleKey]
	if maintenance.Rule != "window" || maintenance.Selector != "pool="+tc.Node1 || len(maintenance.Devices) != 4 {
		t.Errorf("the rule is %q for %q with %d devices, want window for pool=node-1 with 4", maintenance.Rule, maintenance.Selector, len(maintenance.Devices))
	}
	evicted := map[string]bool{}
	for _, p := range maintenance.Pods {
		evicted[p.Name] = p.Evicted
	}
	if diff := cmp.Diff(map[string]bool{"goes": true, "later": true, "stays": false}, evicted); diff != "" {
		t.Errorf("evicted pods, -want +got:\n%s", diff)
	}
	if left, due := EvictionDue(&maintenance, tc.Taken()); !due || left > 0 {
		t.Errorf("the next eviction is due %t in %s, want now: pod goes tolerates nothing", due, left)
	}
	for _, p := range maintenance.Pods {
		if p.Name == "later" && (p.EvictionAt == nil || !p.EvictionAt.Time.Equal(tc.Taken().Add(4*time.Minute))) {
			t.Errorf("pod later is evicted at %v, want 5 minutes after the taint", p.EvictionAt)
		}
	}

	ecc := byKey[driverKey]
	if diff := cmp.Diff([]string{tc.Driver + "/node-1/gpu-2", tc.Driver + "/node-1/gpu-3"}, ecc.Devices); diff != "" || ecc.Rule != "" || ecc.Driver != tc.Driver {
		t.Errorf("the taint of the driver is %+v, devices -want +got:\n%s", ecc, diff)
	}
	if diff := cmp.Diff([]api.ObjectRef{api.Ref("ResourceClaim", "ml", "c")}, ecc.Claims); diff != "" {
		t.Errorf("claims under the driver's taint, -want +got:\n%s", diff)
	}
	if none := byKey["example.com/none"]; none.Selector != "no device" || len(none.Devices) != 0 {
		t.Errorf("a rule without selector selects %q: %v", none.Selector, none.Devices)
	}
}

// A driver puts two taints on a device that differ by their effect alone.
func TestTaintsOfOneKeyWithTwoEffects(t *testing.T) {
	const key = "example.com/ecc"
	both := func(d *resourceapi.Device) {
		for _, effect := range []resourceapi.DeviceTaintEffect{resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNoExecute} {
			d.Taints = append(d.Taints, resourceapi.DeviceTaint{Key: key, Effect: effect, TimeAdded: &metav1.Time{Time: tc.Taken().Add(-time.Minute)}})
		}
	}
	v := inventoryWith(t, tc.Gate("DRADeviceTaints", true), tc.Pool(tc.Node1, tc.Device("gpu-0").Change(both)),
		tc.Claim("a", tc.GPUs("gpu", 1)).Holding("gpu-0").ReservedFor("p", "uid-p"), tc.Pod("p", tc.Using("a"), tc.RunningOn(tc.Node1)))
	evicts := map[string]bool{}
	for _, taint := range v.Taints() {
		evicts[taint.Effect] = taint.NextEviction != nil
	}
	if diff := cmp.Diff(map[string]bool{"NoSchedule": false, "NoExecute": true}, evicts); diff != "" {
		t.Errorf("which of the taints evicts, -want +got:\n%s", diff)
	}
}

// Only a pod that a claim is reserved for can use its devices.
func TestTaintsLeaveOutPodsThatWait(t *testing.T) {
	v := inventoryWith(t, tc.Gate("DRADeviceTaints", true),
		tc.Pool(tc.Node1, tc.Device("gpu-0").TaintedSince("example.com/ecc", resourceapi.DeviceTaintEffectNoSchedule, tc.Taken().Add(-time.Hour))),
		tc.Claim("a", tc.GPUs("gpu", 1)).Holding("gpu-0").ReservedFor("p", "uid-p"), tc.Pod("p", tc.Using("a"), tc.RunningOn(tc.Node1)), tc.Pod("waits", tc.Using("a")))
	taints := v.Taints()
	if len(taints) != 1 || len(taints[0].Pods) != 1 || taints[0].Pods[0].Name != "p" {
		t.Errorf("the pods that use the device are %+v, want p alone", taints[0].Pods)
	}
}

func TestTaintsWhereSomethingIsHidden(t *testing.T) {
	of := func(hidden ...any) api.Taint {
		objects := append([]any{
			tc.Gate("DRADeviceTaints", true),
			tc.Pool(tc.Node1, tc.Device("gpu-0").TaintedSince("example.com/ecc", resourceapi.DeviceTaintEffectNoExecute, tc.Taken().Add(-time.Hour))),
		}, hidden...)
		return inventoryWith(t, objects...).Taints()[0]
	}
	if taint := of(); taint.ClaimsAreLowerBounds || taint.PodsAreLowerBounds {
		t.Errorf("%+v is not certain, although nothing is hidden", taint)
	}
	if taint := of(snapshot.Gap{Resource: snapshot.ResourcePods}); taint.ClaimsAreLowerBounds || !taint.PodsAreLowerBounds {
		t.Errorf("where pods are hidden: claims are lower bounds %t, pods %t; want the pods alone", taint.ClaimsAreLowerBounds, taint.PodsAreLowerBounds)
	}
	if taint := of(snapshot.Gap{Resource: snapshot.ResourceClaims}); !taint.ClaimsAreLowerBounds || !taint.PodsAreLowerBounds {
		t.Errorf("where claims are hidden: claims are lower bounds %t, pods %t; want both", taint.ClaimsAreLowerBounds, taint.PodsAreLowerBounds)
	}
}
