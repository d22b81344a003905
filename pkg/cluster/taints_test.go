// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
)

// TestTaintRulesAsTracker compares with the code that kube-scheduler runs. No
// device is matched by two rules, because their order is random there.
func TestTaintRulesAsTracker(t *testing.T) {
	noSelector := tc.TaintRule("nothing", "", "", "")
	noSelector.Spec.DeviceSelector = nil
	snap := tc.Snapshot(
		tc.Slice("a-1", tc.DriverA, "pool-1", tc.Device("d1").Tainted("own", resourceapi.DeviceTaintEffectNoExecute), tc.Device("d2")),
		tc.Slice("a-2", tc.DriverA, "pool-2", tc.Device("d1"), tc.Device("d2")),
		tc.Slice("b-1", tc.DriverB, "pool-1", tc.Device("d1"), tc.Device("d2"), tc.Device("d3")),
		tc.TaintRule("by-pool", tc.DriverA, "pool-2", ""),
		tc.TaintRule("by-device", tc.DriverA, "pool-1", "d1"),
		tc.TaintRule("any-pool", tc.DriverB, "", "d2"),
		tc.TaintRule("any-driver", "", "", "d3"),
		tc.TaintRule("other-driver", "c.example.com", "", ""),
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
	tc.SortObjects(want)

	got := patchedSlices(snap, true, false)
	if diff := gocmp.Diff(specs(want), specs(got)); diff != "" {
		t.Errorf("differs from the tracker (-want +got):\n%s", diff)
	}
	if got[0] == snap.Slices[0] || got[1] == snap.Slices[1] {
		t.Error("slices with new taints are not copies")
	}
	if diff := gocmp.Diff(snap.Slices, patchedSlices(snap, false, true)); diff != "" {
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
	snap := tc.Snapshot(tc.Slice("s", tc.DriverA, "pool", tc.Device("d")), tc.TaintRule("b", "", "", ""), tc.TaintRule("a", "", "", ""))
	var keys []string
	for _, taint := range patchedSlices(snap, true, false)[0].Spec.Devices[0].Taints {
		keys = append(keys, taint.Key)
	}
	if diff := gocmp.Diff([]string{"a", "b"}, keys); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestExtendedEvictions asks about a pod whose device is one of an extended resource.
func TestExtendedEvictions(t *testing.T) {
	for version, want := range map[string]int{"v1.35.10": 0, "v1.36.6": 0, "v1.37.1": 0, "v1.37.2": 1, "": 1} {
		snap := tc.Cluster(tc.Gate(GateDeviceTaints, true), tc.Gate(GateDeviceTaintRules, true), tc.Nodes("n1"),
			tc.Pool("n1", tc.Device("d").TaintedSince("example.com/ecc", resourceapi.DeviceTaintEffectNoExecute, tc.Taken())),
			tc.Claim("c", tc.GPUs("r", 1)).OwnedBy("Pod", "p").ForExtendedResources().Holding("n1/d").ReservedFor("p", "uid-p"),
			tc.Pod("p", tc.RunningOn("n1"), func(p *corev1.Pod) {
				p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "c"}
			}))
		snap.ServerVersion = version
		if got := New(snap).Taints.PodEvictions(snap.Pods[0]); len(got) != want {
			t.Errorf("%s: %d evictions, want %d: %v", version, len(got), want, got)
		}
	}
}

// TestOpenRulesEvictNobody covers a rule without a selector, which only the scheduler of
// some releases takes for all devices.
func TestOpenRulesEvictNobody(t *testing.T) {
	rule := tc.TaintRule("open", "", "", "")
	rule.Spec.DeviceSelector = nil
	rule.Spec.Taint.Effect, rule.Spec.Taint.TimeAdded = resourceapi.DeviceTaintEffectNoExecute, &metav1.Time{Time: tc.Taken()}
	for version, tainted := range map[string]int{"v1.36.6": 1, "v1.37.0": 1, "v1.37.1": 0} {
		snap := tc.Cluster(tc.Gate(GateDeviceTaints, true), tc.Gate(GateDeviceTaintRules, true), tc.Nodes("n1"), tc.Pool("n1", tc.Device("d")), rule,
			tc.Claim("c", tc.GPUs("r", 1)).Holding("n1/d").ReservedFor("p", "uid-p"), tc.Pod("p", tc.Using("c"), tc.RunningOn("n1")))
		snap.ServerVersion = version
		c := New(snap)
		if got := len(c.Pools.Devices()[0].Taints); got != tainted || len(c.Taints.SelectedBy(rule)) != tainted || c.Taints.TaintsAll(rule) != (tainted == 1) {
			t.Errorf("%s: %d taints, selected %v", version, got, c.Taints.SelectedBy(rule))
		}
		if got := c.Taints.PodEvictions(snap.Pods[0]); len(got) > 0 {
			t.Errorf("%s: evicted %v", version, got)
		}
	}
}
