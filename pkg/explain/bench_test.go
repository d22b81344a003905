// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// BenchmarkExplain asks about a claim that fits nowhere, in clusters of shapes
// that invite to look at everything once for each node. Times of the two sizes
// of a shape should differ as the sizes do.
func BenchmarkExplain(b *testing.B) {
	for _, shape := range []struct {
		name string
		make func(nodes int) *snapshot.Snapshot
	}{
		{"plain", func(nodes int) *snapshot.Snapshot { return fleet.Fleet(nodes, 8, 4*nodes) }},
		{"selector", func(nodes int) *snapshot.Snapshot { return fleet.Fleet(nodes, 8, 4*nodes) }},
		{"one-pool-for-all", onePoolForAll},
		{"one-pool-for-all-and-own", func(nodes int) *snapshot.Snapshot { return withShared(fleet.Fleet(nodes, 8, 4*nodes), 2*nodes) }},
		{"one-pool-incomplete", func(nodes int) *snapshot.Snapshot {
			snap := withShared(fleet.Fleet(nodes, 8, 4*nodes), 2*nodes)
			snap.Slices = snap.Slices[:len(snap.Slices)-1]
			return snap
		}},
		{"one-pool-slices-by-node", slicesByNode},
		{"one-pool-slices-by-node-incomplete", func(nodes int) *snapshot.Snapshot {
			snap := slicesByNode(nodes)
			snap.Slices = snap.Slices[1:]
			return snap
		}},
		{"per-device-names", func(nodes int) *snapshot.Snapshot {
			return perDeviceShape(nodes, func(d *resourceapi.Device, i int) { d.NodeName = ptr.To(fmt.Sprintf("node-%05d", i%nodes)) })
		}},
		{"per-device-selectors", func(nodes int) *snapshot.Snapshot {
			return perDeviceShape(nodes, func(d *resourceapi.Device, i int) {
				d.NodeSelector = labelled("example.com/rack", fmt.Sprintf("rack-%03d", i%16))
			})
		}},
		{"all-nodes-unsuitable", func(nodes int) *snapshot.Snapshot {
			snap := slicesByNode(nodes)
			for _, node := range snap.Nodes {
				node.Spec.Taints = []corev1.Taint{{Key: "example.com/down", Effect: corev1.TaintEffectNoSchedule}}
			}
			return snap
		}},
		{"pods-on-one-claim", func(nodes int) *snapshot.Snapshot { return podsOnOneClaim(fleet.Fleet(nodes, 8, 4*nodes), nodes) }},
	} {
		for _, size := range []int{500, 2000} {
			b.Run(fmt.Sprintf("%s/%d", shape.name, size), func(b *testing.B) {
				snap := shape.make(size)
				count := int64(9)
				if len(snap.Slices) > 0 && snap.Slices[0].Spec.NodeName == nil {
					count = 33
				}
				target := Options{Object: api.Ref(api.KindClaim, "waiting", "waiting")}
				claim := benchClaim(count)
				if shape.name == "selector" {
					claim.Spec.Devices.Requests[0].Exactly.Selectors = tc.CELSelectors(`device.driver == "` + fleet.Driver + `"`)
				}
				snap.Claims = append(snap.Claims, claim)
				if shape.name == "all-nodes-unsuitable" || shape.name == "pods-on-one-claim" {
					snap.Pods = append(snap.Pods, benchPod("waiting"))
					target.Object = api.Ref(api.KindPod, target.Object.Namespace, target.Object.Name)
				}
				for b.Loop() {
					e, err := Explain(b.Context(), snap, target)
					if err != nil {
						b.Fatal(err)
					}
					if e.Verdict == api.Fits || e.NodeCount != size {
						b.Fatalf("%s: %s", e.Verdict, e.Summary)
					}
				}
			})
		}
	}
}

func benchClaim(count int64) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "waiting", Name: "waiting", UID: "waiting"},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: fleet.Class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
			}}},
		}},
	}
}

func benchPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "waiting", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{
			Containers:     []corev1.Container{{Name: "main"}},
			ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To("waiting")}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// withShared adds a pool of devices that all nodes reach.
func withShared(snap *snapshot.Snapshot, devices int) *snapshot.Snapshot {
	template := fleet.Fleet(1, 1, 0).Slices[0]
	const most = 100
	for at := 0; at < devices; at += most {
		s := template.DeepCopy()
		s.Name, s.Spec.NodeName, s.Spec.AllNodes = fmt.Sprintf("shared-%05d", at), nil, ptr.To(true)
		s.Spec.Pool = resourceapi.ResourcePool{Name: "shared", Generation: 1, ResourceSliceCount: int64((devices + most - 1) / most)}
		s.Spec.Devices = nil
		for i := at; i < min(at+most, devices); i++ {
			d := template.Spec.Devices[0].DeepCopy()
			d.Name = fmt.Sprintf("far-%05d", i)
			d.Taints = []resourceapi.DeviceTaint{{Key: "example.com/broken", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
			s.Spec.Devices = append(s.Spec.Devices, *d)
		}
		snap.Slices = append(snap.Slices, s)
	}
	return snap
}

func onePoolForAll(nodes int) *snapshot.Snapshot {
	snap := fleet.Fleet(nodes, 8, 0)
	snap.Slices = nil
	return withShared(snap, 2*nodes)
}

// slicesByNode returns a pool with one slice for each node.
func slicesByNode(nodes int) *snapshot.Snapshot {
	snap := fleet.Fleet(nodes, 8, 0)
	for i, s := range snap.Slices {
		s.Spec.Pool = resourceapi.ResourcePool{Name: "one", Generation: 1, ResourceSliceCount: int64(nodes)}
		for j := range s.Spec.Devices {
			s.Spec.Devices[j].Name = fmt.Sprintf("gpu-%d-%d", i, j)
		}
	}
	return snap
}

// perDeviceShape returns a pool in which each device says which nodes it is for.
func perDeviceShape(nodes int, target func(d *resourceapi.Device, i int)) *snapshot.Snapshot {
	snap := onePoolForAll(nodes)
	i := 0
	for _, s := range snap.Slices {
		s.Spec.AllNodes, s.Spec.PerDeviceNodeSelection = nil, ptr.To(true)
		for j := range s.Spec.Devices {
			target(&s.Spec.Devices[j], i)
			i++
		}
	}
	return snap
}

func labelled(key, value string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}},
	}}}
}

// podsOnOneClaim adds pods that wait for the same claim.
func podsOnOneClaim(snap *snapshot.Snapshot, pods int) *snapshot.Snapshot {
	for i := range pods {
		snap.Pods = append(snap.Pods, benchPod(fmt.Sprintf("other-%05d", i)))
	}
	tc.SortObjects(snap.Pods)
	return snap
}

// BenchmarkMembers asks about gangs of equal pods. They share their answer; what grows
// with their number is to reserve the devices of each for the next.
func BenchmarkMembers(b *testing.B) {
	for _, count := range []int{1, 500, 1000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			snap := fleet.Fleet(500, 8, 1000)
			tc.Add(snap, append(members(count, "worker", "one"), podGroup(int32(count)), tc.Gates{"GenericWorkload"}, func(s *snapshot.Snapshot) {
				template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: "one"}}
				template.Spec.Spec = benchClaim(1).Spec
				s.Templates = append(s.Templates, template)
			})...)
			target := Options{Object: api.Ref(api.KindPodGroup, tc.Namespace, "workers")}
			for b.Loop() {
				c := cluster.New(snap)
				answers, err := ExplainEach(b.Context(), c, []Options{target})
				if err != nil || answers[0].Err != nil {
					b.Fatal(err, answers[0].Err)
				}
				if m := answers[0].Explanation.Members; m.FitNow != count {
					b.Fatalf("%d of %d fit", m.FitNow, count)
				}
			}
		})
	}
}
