// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func controller(apiVersion, kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, Controller: ptr.To(true)}}
}

// queuedWorkload returns one of Kueue in queue team, owned by a pod unless changed.
func queuedWorkload(conditions []metav1.Condition, changes ...func(*snapshot.QueuedWorkload)) any {
	return func(s *snapshot.Snapshot) {
		w := &snapshot.QueuedWorkload{
			ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: "queued", OwnerReferences: controller("v1", "Pod", "p")},
			Spec:       snapshot.QueuedWorkloadSpec{QueueName: "team"},
			Status:     snapshot.QueuedWorkloadStatus{Conditions: conditions},
		}
		for _, change := range changes {
			change(w)
		}
		s.Queued = append(s.Queued, w)
	}
}

func outline(kind, namespace, name string, change func(*snapshot.Outline)) any {
	return func(s *snapshot.Snapshot) {
		o := &snapshot.Outline{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Of: metav1.TypeMeta{APIVersion: "kueue.x-k8s.io/v1beta2", Kind: kind}}
		change(o)
		s.Outlines = append(s.Outlines, o)
	}
}

// kueueSays returns a condition in the words of Kueue v0.19.
func kueueSays(kind string, status metav1.ConditionStatus, reason, message string) []metav1.Condition {
	return []metav1.Condition{{Type: kind, Status: status, Reason: reason, Message: message}}
}

func TestAdmission(t *testing.T) {
	gate := func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: snapshot.KueueGate}} }
	waits := kueueSays("QuotaReserved", metav1.ConditionFalse, "Pending", "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 700m more needed")
	reserved := kueueSays("QuotaReserved", metav1.ConditionTrue, "QuotaReserved", "Quota reserved in ClusterQueue research")
	stopped := []any{
		outline("ClusterQueue", "", "research", func(o *snapshot.Outline) {
			o.Spec.StopPolicy = "Hold"
			o.Status.Conditions = kueueSays("Active", metav1.ConditionFalse, "Stopped", "Can't admit new workloads: is stopped.")
		}),
		outline("LocalQueue", tc.Namespace, "team", func(o *snapshot.Outline) {
			o.Spec.ClusterQueue = "research"
			o.Status.Conditions = kueueSays("Active", metav1.ConditionFalse, "ClusterQueueIsInactive", "Can't submit new workloads to clusterQueue")
		}),
	}
	check := func(state, message string) func(*snapshot.QueuedWorkload) {
		return func(w *snapshot.QueuedWorkload) {
			w.Status.Admission = &snapshot.QueuedAdmission{ClusterQueue: "research"}
			w.Status.AdmissionChecks = []snapshot.AdmissionCheck{{Name: "ready", State: "Ready"}, {Name: "nodes", State: state, Message: message}}
		}
	}
	jobSet := []any{
		func(s *snapshot.Snapshot) {
			s.Outlines = append(s.Outlines, &snapshot.Outline{
				ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: "train-workers-0", OwnerReferences: controller("jobset.x-k8s.io/v1alpha2", "JobSet", "train")},
				Of:         metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
			})
		},
		queuedWorkload(waits, func(w *snapshot.QueuedWorkload) {
			w.OwnerReferences = controller("jobset.x-k8s.io/v1alpha2", "JobSet", "train")
		}),
	}
	tests := map[string]struct {
		pod     []func(*corev1.Pod)
		more    []any
		stage   api.Stage
		verdict api.Verdict
		says    string
		step    string
		notStep string
	}{
		"waits for quota": {
			pod: []func(*corev1.Pod){gate}, more: []any{queuedWorkload(waits)}, stage: api.StageAdmission, verdict: api.Blocked,
			says: "Kueue has not admitted Workload " + tc.Namespace + "/queued of queue team: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 700m more needed (QuotaReserved, Pending); then: the allocator picks n1",
			step: "kubectl get workloads.kueue.x-k8s.io -n " + tc.Namespace,
		},
		"queue is stopped": {
			pod: []func(*corev1.Pod){gate}, more: append(stopped, queuedWorkload(kueueSays("QuotaReserved", metav1.ConditionFalse, "Inadmissible", "ClusterQueue research is inactive"))),
			stage: api.StageAdmission, verdict: api.Blocked,
			says: "ClusterQueue research is not active: Can't admit new workloads: is stopped (Active, Stopped)",
			step: `kubectl patch clusterqueues.kueue.x-k8s.io research --type=merge -p '{\"spec\":{\"stopPolicy\":\"None\"}}'`,
		},
		"check is pending": {
			pod: []func(*corev1.Pod){gate}, more: []any{queuedWorkload(reserved, check("Pending", "waiting for nodes"))}, stage: api.StageAdmission, verdict: api.Blocked,
			says: "quota is reserved in ClusterQueue research, and admission check nodes is Pending: waiting for nodes",
			step: "kubectl describe admissionchecks.kueue.x-k8s.io nodes",
		},
		"check is rejected": {
			pod: []func(*corev1.Pod){gate}, more: []any{queuedWorkload(reserved, check("Rejected", ""))}, stage: api.StageAdmission, verdict: api.Blocked,
			says: "admission check nodes is Rejected", step: "admission check nodes has rejected it",
		},
		"deactivated": {
			pod: []func(*corev1.Pod){gate}, stage: api.StageAdmission, verdict: api.Blocked,
			more: []any{queuedWorkload(append(kueueSays("Evicted", metav1.ConditionTrue, "Deactivated", "The workload is deactivated"), waits...), func(w *snapshot.QueuedWorkload) { w.Spec.Active = ptr.To(false) })},
			says: "it is deactivated (spec.active is false); it was evicted: The workload is deactivated (Evicted, Deactivated)",
			step: `kubectl patch workloads.kueue.x-k8s.io queued -n ` + tc.Namespace,
		},
		"unmapped class": {
			pod: []func(*corev1.Pod){gate}, stage: api.StageAdmission, verdict: api.Blocked,
			more: []any{queuedWorkload(kueueSays("QuotaReserved", metav1.ConditionFalse, "Inadmissible", `spec.podSets[0].template.spec.resourceClaims[0].resourceClaimTemplateName: Not found: "DeviceClass gpu is not mapped in DRA configuration for podset main"`))},
			says: "DeviceClass gpu is not mapped in DRA configuration", step: "kubectl rollout restart deployment kueue-controller-manager -n kueue-system",
		},
		"claim by name": {
			pod: []func(*corev1.Pod){gate}, stage: api.StageAdmission, verdict: api.Blocked,
			more: []any{queuedWorkload(kueueSays("QuotaReserved", metav1.ConditionFalse, "Inadmissible", "KueueDRAIntegration feature does not support use of resource claims"))},
			says: "does not support use of resource claims", step: "use a ResourceClaimTemplate in place of a ResourceClaim",
		},
		"no node of the topology has the devices": {
			pod: []func(*corev1.Pod){gate}, stage: api.StageAdmission, verdict: api.Blocked,
			more: []any{queuedWorkload(kueueSays("QuotaReserved", metav1.ConditionFalse, "TopologyPlacementFailed", `couldn't assign flavors to pod set main: topology "racks" doesn't allow to fit any of 1 pod(s). Total nodes: 2; excluded: draNoFit: 2`))},
			says: "excluded: draNoFit: 2 (QuotaReserved, TopologyPlacementFailed)", step: "Kueue looks again when slices, classes or claims change", notStep: "quota",
		},
		"no room in the topology": {
			pod: []func(*corev1.Pod){gate}, stage: api.StageAdmission, verdict: api.Blocked,
			more: []any{queuedWorkload(kueueSays("QuotaReserved", metav1.ConditionFalse, "TopologyPlacementFailed", `couldn't assign flavors to pod set main: topology "racks" doesn't allow to fit any of 1 pod(s). Total nodes: 2; excluded: resource "cpu": 2`))},
			says: `excluded: resource "cpu": 2 (QuotaReserved, TopologyPlacementFailed)`, step: "no part of its topology has room for the pods", notStep: "quota",
		},
		"workload of the JobSet above the Job": {
			pod: []func(*corev1.Pod){gate, func(p *corev1.Pod) { p.OwnerReferences = controller("batch/v1", "Job", "train-workers-0") }}, more: jobSet,
			stage: api.StageAdmission, verdict: api.Blocked, says: "Kueue has not admitted Workload",
		},
		"admitted, gate still there": {
			pod: []func(*corev1.Pod){gate}, more: []any{queuedWorkload(append(kueueSays("Admitted", metav1.ConditionTrue, "Admitted", "The workload is admitted"), reserved...))},
			stage: api.StageAdmission, verdict: api.Blocked, says: "Kueue has admitted Workload", step: "Kueue removes its scheduling gate",
		},
		"admitted":          {more: []any{queuedWorkload(append(kueueSays("Admitted", metav1.ConditionTrue, "Admitted", "The workload is admitted"), reserved...))}, stage: api.StageAllocation, verdict: api.Fits},
		"of a finished run": {more: []any{queuedWorkload(kueueSays("Finished", metav1.ConditionTrue, "Succeeded", ""))}, stage: api.StageAllocation, verdict: api.Fits},
		"no workload":       {pod: []func(*corev1.Pod){gate}, stage: api.StageAdmission, verdict: api.Blocked, says: "no Workload of Kueue is known for it", step: "check that the controller of Kueue runs"},
		"hidden workload":   {pod: []func(*corev1.Pod){gate}, more: []any{tc.Gap(snapshot.ResourceQueued, "may not")}, stage: api.StageAdmission, verdict: api.Blocked, says: "Kueue has not removed its scheduling gate kueue.x-k8s.io/admission; then"},
		"gate of another stage of Kueue": {
			pod: []func(*corev1.Pod){func(p *corev1.Pod) {
				p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/topology"}}
			}},
			stage: api.StageQueueing, verdict: api.Fits, says: "the scheduler waits until Kueue removes its scheduling gate kueue.x-k8s.io/topology",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			changes := append([]func(*corev1.Pod){tc.Using("want")}, test.pod...)
			parts := append([]any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim("want", tc.GPUs("gpu", 1)), tc.Pod("p", changes...)}, test.more...)
			e, err := Explain(t.Context(), tc.Cluster(parts...), Options{Object: api.Ref(api.KindPod, tc.Namespace, "p")})
			if err != nil {
				t.Fatal(err)
			}
			if e.Stage != test.stage || e.Verdict != test.verdict || !strings.Contains(strings.ToLower(e.Summary), strings.ToLower(test.says)) {
				t.Errorf("%s in stage %s: %s", e.Verdict, e.Stage, e.Summary)
			}
			if steps := asJSON(e.NextSteps); !strings.Contains(steps, test.step) {
				t.Errorf("%q is no step of %s", test.step, steps)
			} else if test.notStep != "" && strings.Contains(steps, test.notStep) {
				t.Errorf("%q is in %s", test.notStep, steps)
			}
		})
	}
}

// TestSuspended asks about workloads that have no pods.
func TestSuspended(t *testing.T) {
	tests := map[string]struct {
		labels map[string]string
		more   any
		code   api.Code
		stage  api.Stage
		says   string
	}{
		"by its user": {code: api.NoPods, says: "the Job is suspended (spec.suspend is true) and creates no pods"},
		"by Kueue": {
			labels: map[string]string{snapshot.KueueQueueLabel: "team"}, code: api.NotAdmitted, stage: api.StageAdmission, says: "no quota",
			more: queuedWorkload(kueueSays("QuotaReserved", metav1.ConditionFalse, "Pending", "no quota"), func(w *snapshot.QueuedWorkload) { w.OwnerReferences = controller("batch/v1", "Job", "train") }),
		},
		"by Kueue, hidden": {
			labels: map[string]string{snapshot.KueueQueueLabel: "team"}, code: api.NotAdmitted, stage: api.StageAdmission,
			more: tc.Gap(snapshot.ResourceQueued, "may not"), says: "the Job is suspended until Kueue admits it from queue team",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := func(s *snapshot.Snapshot) {
				if add, ok := deployment("train", "one").(func(*snapshot.Snapshot)); ok {
					add(s)
				}
				w := s.Workloads[0]
				w.APIVersion, w.Kind, w.Suspended, w.Labels = "batch/v1", "Job", true, test.labels
			}
			parts := []any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Template("one", tc.GPUs("gpu", 1)), job}
			if test.more != nil {
				parts = append(parts, test.more)
			}
			e, err := Explain(t.Context(), tc.Cluster(parts...), Options{Object: api.Ref("Job", tc.Namespace, "train")})
			if err != nil {
				t.Fatal(err)
			}
			if e.Verdict != api.Blocked || e.Code != test.code || e.Stage != test.stage || !strings.Contains(strings.ToLower(e.Summary), strings.ToLower(test.says)) {
				t.Errorf("%s %s in stage %q: %s", e.Verdict, e.Code, e.Stage, e.Summary)
			}
		})
	}
}
