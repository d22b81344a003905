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
			target := Options{Kind: test.kind, Namespace: tc.Namespace, Name: "train-new-0"}
			if test.kind == "Deployment" {
				target.Name = "train"
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
			switch {
			case rolls == test.none:
				t.Errorf("the remedies are %+v", e.Remedies)
			case rolls && !strings.Contains(strings.Join(e.Remedies[0].Commands, "\n"), test.command):
				t.Errorf("the commands are %q", e.Remedies[0].Commands)
			}
		})
	}
}
