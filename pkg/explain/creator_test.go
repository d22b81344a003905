// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// existing returns a workload that an API server has, whose pods use template one.
func existing(kind string, replicas int32, changes ...func(*snapshot.Workload)) any {
	return func(s *snapshot.Snapshot) {
		pod := &corev1.Pod{}
		fromTemplate("one")(pod)
		w := &snapshot.Workload{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: kind},
			ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: "train", UID: "train", Generation: 1},
			Template:   corev1.PodTemplateSpec{Spec: pod.Spec}, Replicas: &replicas, ObservedGeneration: ptr.To[int64](1),
		}
		if kind == snapshot.KindJob {
			w.APIVersion, w.ObservedGeneration = "batch/v1", nil
		}
		for _, change := range changes {
			change(w)
		}
		s.Workloads = append(s.Workloads, w)
	}
}

// failedCreate returns what the controller of the workload has reported some minutes ago.
func failedCreate(kind, message string, ago time.Duration) any {
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: tc.Namespace, Name: "train.1", UID: "event"},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: tc.Namespace, Name: "train", UID: "train"},
		Type:           corev1.EventTypeWarning, Reason: "FailedCreate", Message: message, Count: 12,
		FirstTimestamp: metav1.NewTime(tc.Taken().Add(-8 * time.Minute)), LastTimestamp: metav1.NewTime(tc.Taken().Add(-ago)),
	}
	return func(s *snapshot.Snapshot) { s.Events = append(s.Events, event) }
}

// stored returns the quota of the namespace.
func stored(hard, used string) any {
	return func(s *snapshot.Snapshot) {
		s.Quotas = append(s.Quotas, &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: "none"},
			Status:     corev1.ResourceQuotaStatus{Hard: tc.ResourceList(strings.Fields(hard)...), Used: tc.ResourceList(strings.Fields(used)...)},
		})
	}
}

func replicaFailure(message string) func(*snapshot.Workload) {
	return func(w *snapshot.Workload) {
		w.Conditions = []metav1.Condition{
			{Type: "Available", Status: metav1.ConditionFalse, Reason: "MinimumReplicasUnavailable"},
			{Type: "ReplicaFailure", Status: metav1.ConditionTrue, Reason: "FailedCreate", Message: message, LastTransitionTime: metav1.NewTime(tc.Taken().Add(-5 * time.Minute))},
		}
	}
}

// replica returns a pod of the workload that was created some minutes ago.
func replica(kind, name string, ago time.Duration, changes ...func(*corev1.Pod)) *corev1.Pod {
	return tc.Pod(name, append([]func(*corev1.Pod){tc.Using(name + "-gpu"), func(p *corev1.Pod) {
		p.CreationTimestamp = metav1.NewTime(tc.Taken().Add(-ago))
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "train", UID: "train", Controller: ptr.To(true)}}
	}}, changes...)...)
}

func ready(status corev1.ConditionStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: status})
	}
}

// TestCreatesNoPods asks about workloads that lack pods, whose devices are available.
func TestCreatesNoPods(t *testing.T) {
	const (
		account  = `pods "train-0" is forbidden: error looking up service account test/robot: serviceaccount "robot" not found`
		priority = `pods "train-" is forbidden: no PriorityClass with name urgent was found`
		quota    = `pods "train-" is forbidden: exceeded quota: none, requested: pods=1,requests.cpu=500m, used: pods=0,requests.cpu=1, limited: pods=0,requests.cpu=1`
		limits   = `pods "train-" is forbidden: maximum cpu usage per Container is 1, but limit is 2`
	)
	robot := func(w *snapshot.Workload) { w.Template.Spec.ServiceAccountName = "robot" }
	running := func(name, device string, changes ...func(*corev1.Pod)) []any {
		return []any{
			replica("StatefulSet", name, 20*time.Minute, append(changes, tc.RunningOn("n1"))...),
			tc.Claim(name+"-gpu", tc.GPUs("gpu", 1)).Holding("n1/"+device).ReservedFor(name, "uid-"+name),
		}
	}
	tests := map[string]struct {
		parts    []any
		kind     string
		verdict  api.Verdict
		code     api.Code
		says     []string
		commands []string
	}{
		"Deployment, ServiceAccount": {
			kind: "Deployment", parts: []any{existing("Deployment", 3, robot, replicaFailure(account))}, code: api.PodRefused,
			says:     []string{"The API server refuses the pods of the Deployment: " + account + " (for 5m)"},
			commands: []string{"kubectl create serviceaccount robot -n " + tc.Namespace, "kubectl annotate deployment train -n " + tc.Namespace + " --overwrite dra.kubectl.dev/retry="},
		},
		"StatefulSet, ServiceAccount": {
			kind: "StatefulSet", parts: []any{existing("StatefulSet", 3, robot), failedCreate("StatefulSet", "create Pod train-0 in StatefulSet train failed error: "+account, time.Minute)},
			code: api.PodRefused, says: []string{"the API server refuses the pods of the StatefulSet: " + account + " (12 times in 8m, last 60s ago)"},
			commands: []string{"kubectl create serviceaccount robot -n " + tc.Namespace},
		},
		"Job, PriorityClass": {
			kind: "Job", parts: []any{existing("Job", 1, func(w *snapshot.Workload) { w.Template.Spec.PriorityClassName = "urgent" }), failedCreate("Job", "Error creating: "+priority, time.Minute)},
			code: api.PodRefused, says: []string{"the API server refuses the pods of the Job: " + priority}, commands: []string{"kubectl create priorityclass urgent --value=0"},
		},
		"DaemonSet, quota": {
			kind: "DaemonSet", parts: []any{existing("DaemonSet", 0, func(w *snapshot.Workload) {
				w.Replicas, w.Daemon = nil, &snapshot.DaemonStatus{Desired: 2}
			}), failedCreate("DaemonSet", "Error creating: "+quota, time.Minute)},
			code: api.QuotaExceeded, says: []string{"the API server refuses the pods of the DaemonSet: " + quota},
			commands: []string{`kubectl patch resourcequota none -n ` + tc.Namespace + ` --type=merge -p '{"spec":{"hard":{"pods":"2","requests.cpu":"2"}}}'`},
		},
		"StatefulSet, quota that is used up since": {
			kind: "StatefulSet", parts: []any{existing("StatefulSet", 1), failedCreate("StatefulSet", quota, time.Minute), stored("pods=3 requests.cpu=9", "pods=3 requests.cpu=1")},
			code: api.QuotaExceeded, commands: []string{`kubectl patch resourcequota none -n ` + tc.Namespace + ` --type=merge -p '{"spec":{"hard":{"pods":"4"}}}'`},
		},
		"StatefulSet, quota that allows it since": {
			kind: "StatefulSet", parts: []any{existing("StatefulSet", 1), failedCreate("StatefulSet", quota, time.Minute), stored("pods=3 requests.cpu=9", "pods=1 requests.cpu=1")},
			code: api.QuotaExceeded, commands: []string{"\nkubectl annotate statefulset train -n " + tc.Namespace + " --overwrite dra.kubectl.dev/retry="},
		},
		"ReplicaSet, LimitRange": {
			kind: "ReplicaSet", parts: []any{existing("ReplicaSet", 1, replicaFailure(limits))}, code: api.LimitRangeViolated, says: []string{limits},
		},
		"one pod of three is refused": {
			kind: "StatefulSet", parts: append(running("train-0", "gpu-0", ready(corev1.ConditionTrue)), existing("StatefulSet", 3), failedCreate("StatefulSet", account, time.Minute)),
			code: api.PodRefused, says: []string{"the API server refuses the pods of the StatefulSet"},
		},
		"refused before its pods were created": {
			kind: "StatefulSet", parts: append(running("train-0", "gpu-0", ready(corev1.ConditionTrue)), existing("StatefulSet", 1), failedCreate("StatefulSet", account, 30*time.Minute)),
			verdict: api.Allocated,
		},
		"refused before its last pod was created": {
			kind: "StatefulSet", parts: append(running("train-0", "gpu-0", ready(corev1.ConditionTrue)), existing("StatefulSet", 2), failedCreate("StatefulSet", account, 30*time.Minute)),
			verdict: api.Allocated,
		},
		"of an earlier object of that name": {
			kind: "Job", parts: []any{existing("Job", 1, func(w *snapshot.Workload) { w.UID = "another" }), failedCreate("Job", account, time.Minute)}, verdict: api.Fits,
		},
		"paused": {
			kind: "Deployment", parts: []any{existing("Deployment", 2, func(w *snapshot.Workload) { w.Paused = true })}, code: api.NoPods,
			says: []string{"the Deployment is paused (spec.paused is true)"}, commands: []string{"kubectl rollout resume deployment train -n " + tc.Namespace},
		},
		"scaled to 0": {
			kind: "StatefulSet", parts: []any{existing("StatefulSet", 0)}, code: api.NoPods,
			says: []string{"the StatefulSet is scaled to 0 (spec.replicas is 0)"}, commands: []string{"kubectl scale statefulset train -n " + tc.Namespace + " --replicas=1"},
		},
		"no parallelism": {
			kind: "Job", parts: []any{existing("Job", 0)}, code: api.NoPods, says: []string{"spec.parallelism is 0"},
			commands: []string{"kubectl patch job train -n " + tc.Namespace + ` --type=merge -p '{"spec":{"parallelism":1}}'`},
		},
		"not observed": {
			kind: "Deployment", parts: []any{existing("Deployment", 2, func(w *snapshot.Workload) { w.Generation = 2 })}, code: api.NoPods,
			says: []string{"has not acted on the Deployment as it is"},
		},
		"no node for a DaemonSet": {
			kind: "DaemonSet", parts: []any{existing("DaemonSet", 0, func(w *snapshot.Workload) {
				w.Replicas, w.Daemon = nil, &snapshot.DaemonStatus{}
				w.Template.Spec.NodeSelector = map[string]string{"gpu": "yes"}
			})}, verdict: api.DoesNotFit, says: []string{"the DaemonSet creates no pods: no node is suitable for them (its nodeSelector is gpu=yes)"},
		},
		"behind a pod that is not ready": {
			kind: "StatefulSet", parts: append(running("train-0", "gpu-0", ready(corev1.ConditionFalse)), existing("StatefulSet", 3, func(w *snapshot.Workload) { w.Ordered = true })),
			code: api.NoPods, says: []string{"pod train-0 is not ready, and the StatefulSet creates its next pod only when it is ready"},
			commands: []string{"kubectl describe pod train-0 -n " + tc.Namespace},
		},
		"all at the same time": {
			kind: "StatefulSet", parts: append(running("train-0", "gpu-0", ready(corev1.ConditionFalse)), existing("StatefulSet", 3)), verdict: api.Allocated,
		},
		"no progress": {
			kind: "Deployment", parts: []any{existing("Deployment", 2, func(w *snapshot.Workload) {
				w.Conditions = []metav1.Condition{{Type: "Progressing", Status: metav1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: `ReplicaSet "train-1" has timed out progressing.`}}
			})}, code: api.NoPods, says: []string{`makes no progress: ReplicaSet "train-1" has timed out progressing`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			parts := append([]any{tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(4)...), tc.Template("one", tc.GPUs("gpu", 1))}, test.parts...)
			e, err := Explain(t.Context(), tc.Cluster(parts...), Options{Object: api.Ref(test.kind, tc.Namespace, "train")})
			if err != nil {
				t.Fatal(err)
			}
			want := test.verdict
			if want == "" {
				want = api.Blocked
			}
			if e.Verdict != want || test.code != "" && e.Code != test.code {
				t.Errorf("%s %s, want %s %s: %s", e.Verdict, e.Code, want, test.code, e.Summary)
			}
			for _, said := range test.says {
				if !strings.Contains(strings.ToLower(e.Summary), strings.ToLower(said)) {
					t.Errorf("the summary lacks %q: %s", said, e.Summary)
				}
			}
			if want == api.Blocked && strings.Contains(e.Summary, "then:") {
				t.Errorf("nothing follows: %s", e.Summary)
			}
			if want == api.Allocated && (strings.Contains(e.Summary, "refuses") || strings.Contains(e.Summary, "creates")) {
				t.Errorf("it says what is over: %s", e.Summary)
			}
			commands := "\n"
			for _, step := range e.NextSteps {
				commands += strings.Join(step.Commands, "\n") + "\n"
			}
			for _, command := range test.commands {
				if !strings.Contains(commands, command) {
					t.Errorf("no step has %q:\n%s", command, commands)
				}
			}
		})
	}
}

// TestMembersOfRefusedPods: what would make all pods fit is not looked for where none is created.
func TestMembersOfRefusedPods(t *testing.T) {
	snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(4)...), tc.Template("one", tc.GPUs("gpu", 1)), existing("StatefulSet", 2), stored("pods=0", "pods=0"),
		failedCreate("StatefulSet", `pods "train-0" is forbidden: exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0`, time.Minute))
	e := explainEach(t, snap, "StatefulSet/train")["StatefulSet/train"]
	if e.Verdict != api.Blocked || len(e.Members.Prospects) > 0 {
		t.Errorf("%s: %+v", e.Verdict, e.Members)
	}
	for _, step := range e.NextSteps {
		if strings.Contains(step.Text, "ask for less") {
			t.Errorf("a quota that allows none leaves nothing to ask for: %s", step.Text)
		}
	}
}
