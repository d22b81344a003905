// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// ofRevision makes a pod one of a revision of Deployment train.
func ofRevision(hash string, ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.CreationTimestamp = metav1.NewTime(tc.Taken().Add(-ago))
		p.Labels = map[string]string{"pod-template-hash": hash, "app": "train"}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "train-" + hash, UID: "uid-rs", Controller: ptr.To(true)}}
	}
}

// TestRollout asks about a new pod of a Deployment whose old pods have all devices.
func TestRollout(t *testing.T) {
	const deletes = "and the Deployment deletes an old pod only when a new one is ready"
	terminating := func(p *corev1.Pod) {
		p.DeletionTimestamp = ptr.To(metav1.NewTime(tc.Taken().Add(30 * time.Second)))
	}
	withStrategy := func(surge int32) any {
		return existing("Deployment", 2, func(w *snapshot.Workload) {
			w.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}}
			w.Update = &snapshot.Update{RollingUpdate: &snapshot.RollingUpdate{MaxSurge: ptr.To(intstr.FromInt32(surge))}}
		})
	}
	tests := map[string]struct {
		needs   int64
		old     []func(*corev1.Pod)
		more    []any
		kind    string
		says    string
		command string
		none    bool
	}{
		"its pod": {
			kind: api.KindPod, says: "The devices are allocated to pod train-old-0 of the earlier revision of Deployment train, " + deletes,
			command: `kubectl patch deployment train -n ` + tc.Namespace + ` -p '{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1,"maxSurge":0}}}}'`,
		},
		"the Deployment": {
			kind: "Deployment", more: []any{withStrategy(1)}, says: deletes, command: `"rollingUpdate":{"maxUnavailable":1,"maxSurge":0}`,
		},
		"which needs those of two": {
			kind: api.KindPod, needs: 2, says: "pods train-old-0, train-old-1 of the earlier revision", command: `"rollingUpdate":{"maxUnavailable":2,"maxSurge":0}`,
		},
		"without surge": {kind: "Deployment", more: []any{withStrategy(0)}, says: deletes, none: true},
		"one terminates": {
			kind: api.KindPod, old: []func(*corev1.Pod){terminating}, says: "The devices are still allocated to pod train-old-0 of the earlier revision of Deployment train, which is terminating: the pod gets them when it is gone", none: true,
		},
		"three are not enough": {kind: api.KindPod, needs: 3, none: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			parts := []any{
				tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...), tc.Template("one", tc.GPUs("gpu", 1)),
				tc.Claim("new-gpu", tc.GPUs("gpu", max(test.needs, 1))), tc.Pod("train-new-0", tc.Using("new-gpu"), ofRevision("new", time.Minute)),
			}
			for i := range 2 {
				pod := fmt.Sprintf("train-old-%d", i)
				changes := []func(*corev1.Pod){tc.Using(pod + "-gpu"), tc.RunningOn("n1"), ofRevision("old", time.Duration(20-i)*time.Minute)}
				if i == 0 {
					changes = append(changes, test.old...)
				}
				parts = append(parts, tc.Pod(pod, changes...), tc.Claim(pod+"-gpu", tc.GPUs("gpu", 1)).Holding(fmt.Sprintf("n1/gpu-%d", i)).ReservedFor(pod, "uid-"+pod))
			}
			target := Options{Object: api.Ref(test.kind, tc.Namespace, "train-new-0")}
			if test.kind == "Deployment" {
				target.Object.Name = "train"
			}
			snap := tc.Cluster(append(parts, test.more...)...)
			e, err := Explain(t.Context(), snap, target)
			if err != nil {
				t.Fatal(err)
			}
			if e.Verdict != api.DoesNotFit || !strings.Contains(e.Summary, test.says) {
				t.Errorf("%s: %s", e.Verdict, e.Summary)
			}
			rolls := len(e.Remedies) > 0 && strings.Contains(e.Remedies[0].Change, "delete an old pod before it creates a new one")
			for _, r := range e.Remedies {
				if rolls && strings.HasPrefix(r.Change, "wait until claim") {
					t.Errorf("waiting does not help: %s", r.Change)
				}
			}
			if said := e.Outlook.Message; rolls && !strings.HasPrefix(said, "It fits on n1 once the Deployment deletes pod") {
				t.Errorf("the outlook is %s", said)
			}
			switch {
			case rolls == test.none:
				t.Errorf("the remedies are %+v", e.Remedies)
			case rolls && !strings.Contains(strings.Join(e.Remedies[0].Commands, "\n"), test.command):
				t.Errorf("the commands are %q", e.Remedies[0].Commands)
			}
		})
	}
}

// TestRolloutOfOne: a Deployment of one replica has the remedies of its new pod.
func TestRolloutOfOne(t *testing.T) {
	for name, terminates := range map[string]bool{"works": false, "terminates": true} {
		snap := tc.Cluster(tc.Nodes("n1"), tc.Pool("n1", tc.Devices(2)...), tc.Template("one", tc.GPUs("gpu", 1)),
			existing("Deployment", 1, func(w *snapshot.Workload) {
				w.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}}
			}),
			tc.Claim("new-gpu", tc.GPUs("gpu", 2)), tc.Pod("train-new-0", tc.Using("new-gpu"), ofRevision("new", time.Minute)),
			tc.Claim("old-gpu", tc.GPUs("gpu", 1)).Holding("n1/gpu-0").ReservedFor("train-old-0", string(tc.UID("train-old-0"))),
			tc.Pod("train-old-0", tc.Using("old-gpu"), tc.RunningOn("n1"), ofRevision("old", time.Hour), func(p *corev1.Pod) {
				if terminates {
					p.DeletionTimestamp = ptr.To(metav1.NewTime(tc.Taken().Add(30 * time.Second)))
				}
			}))
		answers := explainEach(t, snap, "Deployment/train", "Pod/train-new-0")
		of, pod := answers["Deployment/train"], answers["Pod/train-new-0"]
		if !terminates && (len(of.Remedies) == 0 || len(pod.Remedies) == 0 || of.Remedies[0].Change != pod.Remedies[0].Change) {
			t.Errorf("%s: the Deployment has %+v, its pod %+v", name, of.Remedies, pod.Remedies)
		}
		if of.Outlook.Message != pod.Outlook.Message {
			t.Errorf("%s: %s, and %s", name, of.Outlook.Message, pod.Outlook.Message)
		}
	}
}

// TestRolloutOfDaemonSet: a DaemonSet with maxSurge waits for its old pod on the same node alone.
func TestRolloutOfDaemonSet(t *testing.T) {
	of := func(hash, node string, ago time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(tc.Taken().Add(-ago))
			p.Labels = map[string]string{"controller-revision-hash": hash}
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "uid-ds", Controller: ptr.To(true)}}
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}}}}
		}
	}
	parts := []any{tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(1)...), tc.Claim("new-gpu", tc.GPUs("gpu", 1)), tc.Pod("agent-new", tc.Using("new-gpu"), of("new", "n2", time.Minute))}
	for _, node := range []string{"n1", "n2"} {
		name := "agent-" + node
		parts = append(parts, tc.Pod(name, tc.Using(name), tc.RunningOn(node), of("old", node, time.Hour)), tc.Claim(name, tc.GPUs("gpu", 1)).Holding(node+"/gpu-0").ReservedFor(name, string(tc.UID(name))))
	}
	e, err := Explain(t.Context(), tc.Cluster(parts...), Options{Object: api.Ref(api.KindPod, tc.Namespace, "agent-new")})
	if err != nil {
		t.Fatal(err)
	}
	const says, command = "The devices are allocated to pod agent-n2 of the earlier revision of DaemonSet agent, and the DaemonSet deletes an old pod only when a new one is ready",
		`kubectl patch daemonset agent -n ml -p '{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1,"maxSurge":0}}}}'`
	if !strings.Contains(e.Summary, says) || len(e.Remedies) == 0 || len(e.Remedies[0].Commands) != 1 || e.Remedies[0].Commands[0] != command {
		t.Errorf("%s %+v", e.Summary, e.Remedies)
	}
}
