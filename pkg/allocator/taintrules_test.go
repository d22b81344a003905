// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
)

// taintRule selects by driver, pool and device; an empty one selects any.
func taintRule(name, driver, pool, device string) *resourceapi.DeviceTaintRule {
	rule := &resourceapi.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: &resourceapi.DeviceTaintSelector{},
			Taint:          resourceapi.DeviceTaint{Key: name, Effect: resourceapi.DeviceTaintEffectNoSchedule},
		},
	}
	for _, field := range []struct {
		value  string
		target **string
	}{{driver, &rule.Spec.DeviceSelector.Driver}, {pool, &rule.Spec.DeviceSelector.Pool}, {device, &rule.Spec.DeviceSelector.Device}} {
		if field.value != "" {
			*field.target = &field.value
		}
	}
	return rule
}

// TestTaintRulesAsTracker compares with the code that kube-scheduler runs. No
// device is matched by two rules, because their order is random there.
func TestTaintRulesAsTracker(t *testing.T) {
	noSelector := taintRule("nothing", "", "", "")
	noSelector.Spec.DeviceSelector = nil
	snap := cluster(
		slice("a-1", driverA, "pool-1", device("d1").tainted("own", resourceapi.DeviceTaintEffectNoExecute), device("d2")),
		slice("a-2", driverA, "pool-2", device("d1"), device("d2")),
		slice("b-1", driverB, "pool-1", device("d1"), device("d2"), device("d3")),
		taintRule("by-pool", driverA, "pool-2", ""),
		taintRule("by-device", driverA, "pool-1", "d1"),
		taintRule("any-pool", driverB, "", "d2"),
		taintRule("any-driver", "", "", "d3"),
		taintRule("other-driver", "c.example.com", "", ""),
		noSelector,
	)

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := fake.NewClientset()
	for _, slice := range snap.Slices {
		if _, err := client.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, rule := range snap.TaintRules {
		if _, err := client.ResourceV1().DeviceTaintRules().Create(ctx, rule, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	upstream, err := tracker.StartTracker(ctx, tracker.Options{
		EnableDeviceTaintRules: true,
		SliceInformer:          factory.Resource().V1().ResourceSlices(),
		TaintInformer:          factory.Resource().V1().DeviceTaintRules(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Stop()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), upstream.HasSynced) {
		t.Fatal("the tracker did not sync")
	}
	want, err := upstream.ListPatchedResourceSlices()
	if err != nil {
		t.Fatal(err)
	}
	sortObjects(want)

	got := patchedSlices(snap, true)
	if diff := gocmp.Diff(specs(want), specs(got)); diff != "" {
		t.Errorf("differs from the tracker (-want +got):\n%s", diff)
	}
	if got[0] == snap.Slices[0] || got[1] == snap.Slices[1] {
		t.Error("slices with new taints are not copies")
	}
	if diff := gocmp.Diff(snap.Slices, patchedSlices(snap, false)); diff != "" {
		t.Errorf("rules off (-want +got):\n%s", diff)
	}
}

// specs leaves out the metadata, to which the API server adds something.
func specs(slices []*resourceapi.ResourceSlice) map[string]resourceapi.ResourceSliceSpec {
	all := map[string]resourceapi.ResourceSliceSpec{}
	for _, slice := range slices {
		all[slice.Name] = slice.Spec
	}
	return all
}

func TestTaintRulesComeInTheOrderOfTheirNames(t *testing.T) {
	snap := cluster(slice("s", driverA, "pool", device("d")), taintRule("b", "", "", ""), taintRule("a", "", "", ""))
	var keys []string
	for _, taint := range patchedSlices(snap, true)[0].Spec.Devices[0].Taints {
		keys = append(keys, taint.Key)
	}
	if diff := gocmp.Diff([]string{"a", "b"}, keys); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
