// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestNodeIsGone says of a node that does not exist any more that it is gone, not that it is
// not ready, and how that concerns its pool.
func TestNodeIsGone(t *testing.T) {
	snap := *example(t)
	snap.Nodes = slices.DeleteFunc(slices.Clone(snap.Nodes), func(n *corev1.Node) bool { return n.Name == "mig-01" })
	snap.Slices = slices.DeleteFunc(slices.Clone(snap.Slices), func(s *resourceapi.ResourceSlice) bool { return s.Spec.Pool.Name == "gpu-09" })
	s := newSession(t, Options{Source: newMoving(&snap)}, 120, 40)
	s.shows("✗ node of pool mig-01 does not exist", "✗ 1 node gone")
	s.lacks("nodegone", "not ready")
}

// unhealthy returns the example with a taint on gpu-01/gpu-0, and with a kubelet that says
// that a device of pod serving/llm-1 is unhealthy.
func unhealthy(t *testing.T) *snapshot.Snapshot {
	t.Helper()
	snap := *example(t)
	snap.TaintRules = append(slices.Clone(snap.TaintRules), &resourceapi.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: "worn", UID: "worn"},
		Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: &resourceapi.DeviceTaintSelector{Pool: ptr.To("gpu-01"), Device: ptr.To("gpu-0")},
			Taint:          resourceapi.DeviceTaint{Key: "worn", Effect: resourceapi.DeviceTaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: testTime()}},
		},
	})
	snap.Pods = slices.Clone(snap.Pods)
	at := slices.IndexFunc(snap.Pods, func(p *corev1.Pod) bool { return p.Name == "llm-1" })
	pod := snap.Pods[at].DeepCopy()
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: pod.Spec.Containers[0].Name,
		AllocatedResourcesStatus: []corev1.ResourceStatus{{
			Name: "claim:" + corev1.ResourceName(pod.Spec.ResourceClaims[0].Name), Resources: []corev1.ResourceHealth{{ResourceID: "gpu.example.com/gpu-01/gpu-5", Health: corev1.ResourceHealthStatusUnhealthy}},
		}},
	}}
	snap.Pods[at] = pod
	return &snap
}

// TestUnhealthyDevice shows on a narrow terminal which devices in use are unhealthy or tainted,
// on the map that a node has such, and on the first page when it happened.
func TestUnhealthyDevice(t *testing.T) {
	source := newMoving(example(t))
	s := newSession(t, Options{Source: source}, 80, 24)
	source.set(unhealthy(t))
	s.changed()
	s.keys("4")
	s.keys("/", `"gpu-01 alloc`, "enter")
	for device, want := range map[string]string{"gpu-0": "Allocated, tainted ", "gpu-5": "Allocated, unhealthy ", "gpu-1": "Allocated  "} {
		if !slices.ContainsFunc(s.lines(), func(line string) bool { return strings.Contains(line, "gpu-01  "+device+"   "+want) }) {
			t.Errorf("%s is not %q:\n%s", device, want, s.screen())
		}
	}
	s.keys("2", "v")
	s.shows("›[█!] ▅▅▅! ▂▂▂▂", "! devices in trouble")
	s = newSession(t, Options{Source: source}, 120, 50)
	if !slices.ContainsFunc(s.lines(), func(line string) bool {
		return strings.Contains(line, "pod serving/llm-1, stage Running: Device") && strings.HasSuffix(line, " 1  admin")
	}) {
		t.Errorf("it does not say who can act for llm-1:\n%s", s.screen())
	}
	source.set(example(t))
	s.changed()
	s.shows("pod serving/llm-1 has healthy devices again")
}

// TestEventsOfYesterday covers a date in place of the time.
func TestEventsOfYesterday(t *testing.T) {
	now := testTime()
	source := newMoving(example(t))
	s := newSession(t, Options{Source: source, Now: func() time.Time { return now }}, 120, 50)
	snap := unhealthy(t)
	source.set(snap)
	s.changed()
	s.shows("09:30:00  pod serving/llm-1 has an unhealthy device", "09:30:00  taint rule worn was created")
	now = now.Add(15 * time.Hour)
	later := *snap
	later.TakenAt, later.TaintRules = now, snap.TaintRules[:len(snap.TaintRules)-1]
	source.set(&later)
	s.changed()
	s.shows("Sep 15    pod serving/llm-1 has an unhealthy device", "00:30:00  taint rule worn was deleted")
}

// TestDeploymentHasItsName calls equal pods of a Deployment after it, not after its ReplicaSet.
func TestDeploymentHasItsName(t *testing.T) {
	snap := example(t)
	of := snap.Pod("research", "notebook-0")
	var pods []*corev1.Pod
	for _, name := range []string{"infer-5c8-a", "infer-5c8-b"} {
		pod := of.DeepCopy()
		pod.Name, pod.UID, pod.Labels = name, types.UID(name), map[string]string{"pod-template-hash": "5c8"}
		pod.CreationTimestamp = metav1.Time{Time: testTime().Add(-24 * time.Hour)}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "infer-5c8", UID: "infer", Controller: ptr.To(true)}}
		pod.Status.ResourceClaimStatuses = nil
		pods = append(pods, pod)
	}
	s := newSession(t, Options{Source: newMoving(snap.With(&snapshot.Snapshot{Pods: pods}))}, 120, 40)
	s.shows("research/deployment/infer  2 × 1 gpu  ")
	s.keys("6")
	s.shows("research/deployment/infer ")
}

// TestPlaceableIsWhatStatusSays counts what can be placed as status does, on shared devices, too.
func TestPlaceableIsWhatStatusSays(t *testing.T) {
	s := newSession(t, Options{Source: newMoving(example(t))}, 120, 40)
	row := func(class string) string {
		for _, line := range s.lines() {
			if strings.HasPrefix(line, " "+class) {
				return strings.Join(strings.Fields(line[strings.LastIndex(line, "%"):])[:4], " ")
			}
		}
		return ""
	}
	for class, want := range map[string]string{"nic.example.com": "% 0 61 1", "gpu.example.com": "% 25 13 6", "gpu-partition.example.com": "% 7 3 1"} {
		if got := row(class); got != want {
			t.Errorf("%s: free, placeable and waiting are %q, want %q:\n%s", class, got, want, s.screen())
		}
	}
}
