// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// boundFor returns when the scheduler bound a pod.
func boundFor(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: ago(d)})
	}
}

// awaiting makes device gpu-0 of claim have wait for a condition since then, and leaves the
// pod without a node.
func awaiting(since time.Duration, failed bool) []any {
	parts := append(boundPod(), changeHave(func(c *resourceapi.ResourceClaim) {
		c.Status.Allocation.AllocationTimestamp = ptr.To(ago(since))
		c.Status.Allocation.Devices.Results[0].BindingConditions = []string{"attached"}
		c.Status.Allocation.Devices.Results[0].BindingFailureConditions = []string{"broken"}
		if failed {
			deviceCondition(c, "broken", metav1.ConditionTrue)
		}
	}))
	return append(parts, func(s *snapshot.Snapshot) {
		for _, pod := range s.Pods {
			pod.Spec.NodeName = ""
		}
	})
}

func deviceCondition(c *resourceapi.ResourceClaim, kind string, status metav1.ConditionStatus) {
	result := &c.Status.Allocation.Devices.Results[0]
	c.Status.Devices = append(c.Status.Devices, resourceapi.AllocatedDeviceStatus{
		Driver: result.Driver, Pool: result.Pool, Device: result.Device,
		Conditions: []metav1.Condition{{Type: kind, Status: status, Reason: "Because"}},
	})
}

func TestBlockedPods(t *testing.T) {
	gone := func(s *snapshot.Snapshot) { s.Slices = nil }
	unplugged := func(s *snapshot.Snapshot) {
		s.Slices[0] = s.Slices[0].DeepCopy()
		s.Slices[0].Spec.Devices = nil
	}
	unhealthy := func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(time.Hour)}},
			AllocatedResourcesStatus: []corev1.ResourceStatus{{Name: "claim:claim-0/gpu", Resources: []corev1.ResourceHealth{{ResourceID: "gpu-0", Health: corev1.ResourceHealthStatusUnhealthy}}}},
		}}
	}
	for name, test := range map[string]struct {
		cluster []any
		code    api.Code
		says    string
	}{
		"just bound":                       {boundPod(boundFor(10 * time.Second)), "", ""},
		"bound a while ago, nothing known": {boundPod(boundFor(5 * time.Minute)), api.PodNotStarted, "was bound to node n1 5m ago"},
		"its image is pulled":              {append(boundPod(boundFor(5*time.Minute)), warning("a", "Pulling", "x", time.Minute, func(e *corev1.Event) { e.Type = corev1.EventTypeNormal })), "", ""},
		"its sandbox is ready":             {boundPod(boundFor(5*time.Minute), sandboxIs(corev1.ConditionTrue, time.Minute)), "", ""},
		"the driver fails":                 {append(boundPod(boundFor(10*time.Second)), warning("a", "FailedPrepareDynamicResources", prepareFailed+"no", time.Second)), api.PreparationFailed, "cannot prepare"},
		"runs":                             {boundPod(running), "", ""},
		"runs, and its driver is away":     {append(boundPod(running), gone), "", ""},
		"waits for a driver that is away":  {append(boundPod(boundFor(5*time.Minute)), gone), api.PodNotStarted, "publishes nothing for node n1 any more"},
		"runs without its device":          {append(boundPod(running), unplugged), api.DeviceMissing, "of claim have is no longer in any ResourceSlice"},
		"its interface has moved": {append(boundPod(running), gone, changeHave(func(c *resourceapi.ResourceClaim) {
			deviceCondition(c, "Ready", metav1.ConditionTrue)
		})), "", ""},
		"runs with a sick device":           {boundPod(running, unhealthy), api.DeviceUnhealthy, "unhealthy"},
		"is about to be evicted":            {append(boundPod(running), tainted("broken", 10*time.Second)), api.EvictionDue, "broken"},
		"waits for a condition":             {awaiting(10*time.Second, false), "", ""},
		"waits for a condition too long":    {awaiting(5*time.Minute, false), api.BindingPending, "attached"},
		"a condition that ends the binding": {awaiting(10*time.Second, true), api.BindingPending, "broken"},
		"finished":                          {append(boundPod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), gone), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(test.cluster...)
			e := explainEach(t, snap, "Pod/p")["Pod/p"]
			if (e.Verdict == api.Blocked) != (test.code != "") || test.code != "" && (e.Code != test.code || !strings.Contains(e.Summary, test.says)) {
				t.Errorf("%s, code %q, want code %q with %q: %s", e.Verdict, e.Code, test.code, test.says, e.Summary)
			}
			facts := cluster.New(snap)
			listed := lifecycle.NewStages(facts).BlockedPods()
			if len(listed) != 0 != (test.code != "") {
				t.Fatalf("listed: %+v", listed)
			}
			if len(listed) == 1 && (listed[0].Code != e.Code || listed[0].Stage != e.Stage || listed[0].Summary != e.Summary) {
				t.Errorf("listed as %+v, explained as %s, %s: %s", listed[0], e.Code, e.Stage, e.Summary)
			}
		})
	}
}

func TestOwner(t *testing.T) {
	owned := func(kind, name, hash string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Labels:          map[string]string{"pod-template-hash": hash},
			OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: name, Controller: ptr.To(true)}},
		}}
	}
	for want, pod := range map[string]*corev1.Pod{
		"deployment/web":  owned("ReplicaSet", "web-5d4f", "5d4f"),
		"replicaset/web":  owned("ReplicaSet", "web", ""),
		"job/train":       owned("Job", "train", ""),
		"replicaset/we-b": owned("ReplicaSet", "we-b", "5d4f"),
		"":                {},
	} {
		if got := whatif.Owner(pod).Argument(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
