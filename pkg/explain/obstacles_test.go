// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestObstacles covers what keeps a pod from being placed though devices are available.
func TestObstacles(t *testing.T) {
	inGroup := func(p *corev1.Pod) {
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("workers")}
	}
	gang := func(minCount int32) any {
		return func(s *snapshot.Snapshot) {
			s.PodGroups = append(s.PodGroups, &schedulingapi.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: "workers"},
				Spec:       schedulingapi.PodGroupSpec{SchedulingPolicy: schedulingapi.PodGroupSchedulingPolicy{Gang: &schedulingapi.GangSchedulingPolicy{MinCount: minCount}}},
			})
		}
	}
	ofPriority := func(value int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Priority = &value }
	}
	basic := func(priority int32) any {
		return podGroup(0, func(g *schedulingapi.PodGroup) { g.Spec.Priority = &priority })
	}
	never := func(p *corev1.Pod) { p.Spec.PreemptionPolicy = ptr.To(corev1.PreemptNever) }
	withVolume := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	}
	volumeClaim := func(change func(*corev1.PersistentVolumeClaim)) any {
		return func(s *snapshot.Snapshot) {
			c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: "data", UID: "of-data"}}
			change(c)
			s.VolumeClaims = append(s.VolumeClaims, c)
		}
	}
	const gpus = "gpu.deviceclass.resource.k8s.io/devices"
	quota := func(s *snapshot.Snapshot) {
		list := func(quantity string) corev1.ResourceList {
			return corev1.ResourceList{gpus: resource.MustParse(quantity)}
		}
		s.Quotas = append(s.Quotas, &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: "gpus"}, Status: corev1.ResourceQuotaStatus{Hard: list("8"), Used: list("8")},
		})
	}
	devicesAnd := func(parts ...any) []any {
		return append([]any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...), tc.Claim("c", tc.GPUs("gpu", 1))}, parts...)
	}
	refused := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available",
		LastTransitionTime: metav1.NewTime(time.Date(2026, 7, 1, 11, 0, 0, 0, time.UTC)),
	}
	tests := map[string]struct {
		cluster []any
		verdict api.Verdict
		code    api.Code
		stage   api.Stage
		summary string
		assumed string
	}{
		"no group":                   {devicesAnd(tc.Pod("p", tc.Using("c"), inGroup)), api.Blocked, api.PodGroupMissing, api.StageQueueing, "PodGroup workers does not exist", ""},
		"hidden groups":              {devicesAnd(tc.Pod("p", tc.Using("c"), inGroup), tc.Gap(snapshot.ResourcePodGroups, "may not list")), api.Fits, "", api.StageAllocation, "not evaluated: PodGroup workers (may not list)", "PodGroup workers (may not list)"},
		"small gang":                 {devicesAnd(tc.Pod("p", tc.Using("c"), inGroup), gang(2)), api.Blocked, api.GangIncomplete, api.StageQueueing, "PodGroup workers has 1 pod, minCount is 2", ""},
		"gang too large":             {devicesAnd(tc.Claim("d", tc.GPUs("gpu", 2)), tc.Pod("p", tc.Using("c"), inGroup), tc.Pod("q", tc.Using("d"), inGroup), gang(2)), api.Blocked, api.GangIncomplete, api.StageAllocation, "1 of 2 pods of PodGroup workers fit, minCount is 2", ""},
		"gang":                       {devicesAnd(tc.Claim("d", tc.GPUs("gpu", 1)), tc.Pod("p", tc.Using("c"), inGroup), tc.Pod("q", tc.Using("d"), inGroup), gang(2)), api.Fits, "", api.StageAllocation, "The allocator picks n1.", ""},
		"priority of the gang":       {devicesAnd(tc.Pod("p", tc.Using("c"), inGroup, ofPriority(5)), gang(1)), api.Blocked, api.PodGroupMismatch, api.StageQueueing, "In PodGroup workers, pod p has priority 5 and the group has 0: kube-scheduler places no pod of a group whose priorities differ", ""},
		"priority of a basic group":  {devicesAnd(tc.Pod("p", tc.Using("c"), inGroup), basic(7)), api.Blocked, api.PodGroupMismatch, api.StageQueueing, "In PodGroup workers, pod p has priority 0 and the group has 7", ""},
		"the same priority":          {devicesAnd(tc.Pod("p", tc.Using("c"), inGroup, ofPriority(7)), basic(7)), api.Fits, "", api.StageAllocation, "The allocator picks n1.", ""},
		"priority of another member": {devicesAnd(tc.Pod("p", tc.Using("c"), inGroup), tc.Pod("q", inGroup, ofPriority(5)), gang(1)), api.Blocked, api.PodGroupMismatch, api.StageQueueing, "In PodGroup workers, pod q has priority 5 and the group has 0", ""},
		"priority of one that ended": {devicesAnd(tc.Pod("p", tc.Using("c"), inGroup), tc.Pod("q", inGroup, ofPriority(5), tc.InPhase(corev1.PodSucceeded)), gang(1)), api.Fits, "", api.StageAllocation, "The allocator picks n1.", ""},
		"preemption policies":        {devicesAnd(tc.Pod("p", tc.Using("c"), inGroup), tc.Pod("q", inGroup, never), gang(1)), api.Blocked, api.PodGroupMismatch, api.StageQueueing, "In PodGroup workers, pod q has preemption policy Never and pod p has PreemptLowerPriority", ""},
		"schedulers":                 {devicesAnd(tc.Pod("p", tc.Using("c"), inGroup), tc.Pod("q", inGroup, tc.RunningOn("n1"), func(p *corev1.Pod) { p.Spec.SchedulerName = "volcano" }), gang(1)), api.Blocked, api.PodGroupMismatch, api.StageQueueing, "In PodGroup workers, pod q has scheduler volcano and pod p has default-scheduler", ""},
		"no volume":                  {devicesAnd(tc.Pod("p", tc.Using("c"), withVolume)), api.Blocked, api.VolumeNotReady, api.StageNodeFit, "PersistentVolumeClaim data does not exist", ""},
		"unread volumes":             {devicesAnd(tc.Pod("p", tc.Using("c"), withVolume), func(s *snapshot.Snapshot) { s.Listed = nil }), api.Fits, "", api.StageAllocation, "not evaluated: volumes (the snapshot does not have them)", "volumes (the snapshot does not have them)"},
		"deleted volume":             {devicesAnd(tc.Pod("p", tc.Using("c"), withVolume), volumeClaim(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} })), api.Blocked, api.VolumeNotReady, api.StageNodeFit, "is being deleted", ""},
		"unbound volume":             {devicesAnd(tc.Pod("p", tc.Using("c"), withVolume), volumeClaim(func(*corev1.PersistentVolumeClaim) {})), api.Blocked, api.VolumeNotReady, api.StageNodeFit, "PersistentVolumeClaim data is not bound and has no StorageClass", ""},
		"quota of existing claims":   {devicesAnd(tc.Pod("p", tc.Using("c"), func(*corev1.Pod) {}), quota, func(s *snapshot.Snapshot) { s.Claims[0].UID = "of-c" }), api.Fits, "", api.StageAllocation, "The allocator picks n1.", ""},
		"quota of a new claim":       {devicesAnd(quota, func(s *snapshot.Snapshot) { s.Claims[0].UID, s.Claims[0].CreationTimestamp = "", metav1.Time{} }), api.Blocked, api.QuotaExceeded, api.StageClaimGeneration, "ResourceQuota gpus allows 8 of " + gpus + ": 8 used, 1 more needed", ""},
		"another scheduler":          {devicesAnd(tc.Pod("p", tc.Using("c"), func(p *corev1.Pod) { p.Spec.SchedulerName = "volcano" })), api.Fits, "", "", "not evaluated: the rules of scheduler volcano", ""},
		"the scheduler said no":      {devicesAnd(tc.Pod("p", tc.Using("c"), func(p *corev1.Pod) { p.Status.Conditions = []corev1.PodCondition{refused} })), api.Fits, "", api.StageAllocation, "the scheduler last said otherwise (2026-07-01T11:00:00Z)", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			target := Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")}
			snap := tc.Cluster(test.cluster...)
			if snap.Pod(tc.Namespace, "p") == nil {
				target = Options{Object: api.Ref(api.KindClaim, tc.Namespace, "c")}
			}
			e, err := Explain(t.Context(), snap, target)
			if err != nil {
				t.Fatal(err)
			}
			if e.Verdict != test.verdict || e.Code != test.code || test.stage != "" && e.Stage != test.stage || !strings.Contains(e.Summary, test.summary) {
				t.Errorf("%s %s in stage %s: %s", e.Verdict, e.Code, e.Stage, e.Summary)
			}
			if assumed := strings.Join(e.Assumptions, "; "); !strings.Contains(assumed, test.assumed) {
				t.Errorf("assumptions: %s", assumed)
			}
		})
	}
}

// TestClaimBeingDeleted never fits.
func TestClaimBeingDeleted(t *testing.T) {
	snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...), tc.Claim("c", tc.GPUs("gpu", 1)))
	snap.Claims[0].DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	e, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindClaim, tc.Namespace, "c")})
	if err != nil {
		t.Fatal(err)
	}
	if e.Verdict != api.Blocked || e.Code != api.ClaimNotReady || !strings.Contains(e.Summary, "terminating") {
		t.Errorf("%s %s: %s", e.Verdict, e.Code, e.Summary)
	}
}
