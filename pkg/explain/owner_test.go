// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func ownedBy(apiVersion, kind, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.OwnerReferences = controller(apiVersion, kind, name) }
}

// known returns an object of which the snapshot has an outline.
func known(apiVersion, kind, name string, owners []metav1.OwnerReference, suspended bool) any {
	return func(s *snapshot.Snapshot) {
		s.Outlines = append(s.Outlines, &snapshot.Outline{
			ObjectMeta: metav1.ObjectMeta{Namespace: tc.Namespace, Name: name, OwnerReferences: owners},
			Of:         metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}, Spec: snapshot.OutlineSpec{Suspend: suspended},
		})
	}
}

// TestOwners asks about objects of kinds that this program does not know.
func TestOwners(t *testing.T) {
	const ray, jobset = "ray.io/v1", "jobset.x-k8s.io/v1alpha2"
	cluster := []any{
		tc.Pod("head", ownedBy(ray, "RayCluster", "r")),
		tc.Pod("worker-0", tc.Using("want"), ownedBy(ray, "RayCluster", "r")),
		tc.Pod("other", tc.Using("want"), ownedBy(ray, "RayCluster", "q")),
	}
	tests := map[string]struct {
		parts      []any
		kind, name string
		verdict    api.Verdict
		code       api.Code
		pods       int
		different  string
		says       string
	}{
		"direct, with a head": {parts: cluster, kind: "RayCluster", name: "r", verdict: api.Fits, pods: 1, different: "head"},
		"of a RayJob": {
			parts: append([]any{known(ray, "RayCluster", "r", controller(ray, "RayJob", "train"), false)}, cluster...),
			kind:  "RayJob", name: "train", verdict: api.Fits, pods: 1, different: "head",
		},
		"through a Job": {
			parts: []any{known("batch/v1", "Job", "train-w-0", controller(jobset, "JobSet", "train"), false), tc.Pod("a", tc.Using("want"), ownedBy("batch/v1", "Job", "train-w-0"))},
			kind:  "JobSet", name: "train", verdict: api.Fits, pods: 1,
		},
		"through the pod of a leader": {
			parts: []any{
				known("apps/v1", "StatefulSet", "lws", controller("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "lws"), false),
				known("apps/v1", "StatefulSet", "lws-0", controller("v1", "Pod", "lws-0"), false),
				tc.Pod("lws-0", ownedBy("apps/v1", "StatefulSet", "lws")), tc.Pod("lws-0-1", tc.Using("want"), ownedBy("apps/v1", "StatefulSet", "lws-0")),
			},
			kind: "LeaderWorkerSet", name: "lws", verdict: api.Fits, pods: 1, different: "lws-0",
		},
		"suspended": {parts: []any{known(jobset, "JobSet", "train", nil, true)}, kind: "JobSet", name: "train", verdict: api.Blocked, code: api.NoPods, says: "The JobSet is suspended (spec.suspend is true) and creates no pods."},
		"held by Kueue": {
			parts: []any{
				known(jobset, "JobSet", "train", nil, true),
				queuedWorkload(kueueSays("QuotaReserved", metav1.ConditionFalse, "Pending", "no quota"), func(w *snapshot.QueuedWorkload) { w.OwnerReferences = controller(jobset, "JobSet", "train") }),
			},
			kind: "JobSet", name: "train", verdict: api.Blocked, code: api.NotAdmitted, says: "Kueue has not admitted Workload ml/queued of queue team: no quota (QuotaReserved, Pending).",
		},
		"without the right to read what is between": {
			parts: []any{known(jobset, "JobSet", "train", nil, false), tc.Pod("a", tc.Using("want"), ownedBy("batch/v1", "Job", "train-w-0")), tc.Gap("jobs.batch", "this user may not get jobs.batch in namespace ml")},
			kind:  "JobSet", name: "train", verdict: api.Undetermined, code: api.NoPods, says: "The JobSet exists, and which pods belong to it is not known: this user may not get jobs.batch in namespace ml.",
		},
		"without the right to read it": {
			parts: append([]any{tc.Gap("rayclusters.ray.io", "this user may not get rayclusters.ray.io in namespace ml")}, cluster...), kind: "RayCluster", name: "r", verdict: api.Fits, pods: 1, different: "head",
		},
		"without pods": {parts: []any{known(jobset, "JobSet", "train", nil, false)}, kind: "JobSet", name: "train", verdict: api.Undetermined, code: api.NoPods, says: "The JobSet exists and has no pods"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			snap := tc.Cluster(append([]any{tc.Nodes("n1"), tc.Pool("n1", tc.Devices(1)...), tc.Claim("want", tc.GPUs("gpu", 1))}, test.parts...)...)
			snap.Sort()
			e, err := Explain(t.Context(), snap, Options{Object: api.Ref(test.kind, tc.Namespace, test.name)})
			if err != nil {
				t.Fatal(err)
			}
			different := ""
			if e.DifferentPods != nil {
				different = strings.Join(e.DifferentPods.Names, ",")
			}
			if e.Verdict != test.verdict || e.Code != test.code || e.PodCount != test.pods || different != test.different || !strings.Contains(e.Summary, test.says) {
				t.Errorf("%s %s, %d pods, without %q: %s", e.Verdict, e.Code, e.PodCount, different, e.Summary)
			}
		})
	}
	_, err := Explain(t.Context(), tc.Cluster(cluster...), Options{Object: api.Ref("RayCluster", tc.Namespace, "none")})
	if target := new(TargetError); !errors.As(err, &target) {
		t.Errorf("got %v", err)
	}
}

// TestHiddenOwners asks about objects that may not be read, and of which no pod is known:
// that is said for every kind, whatever its plural.
func TestHiddenOwners(t *testing.T) {
	for resource, kind := range map[string]string{
		"jobsets.jobset.x-k8s.io": "JobSet", "rayclusters.ray.io": "RayCluster", "leaderworkersets.leaderworkerset.x-k8s.io": "LeaderWorkerSet",
		"trainpolicies.example.com": "TrainPolicy", "gizmoes.example.com": "Gizmo", "jobs.batch": "Job", "deployments.apps": "Deployment",
	} {
		reason := "this user may not get " + resource + " in namespace ml"
		_, err := Explain(t.Context(), tc.Cluster(tc.Nodes("n1"), tc.Gap(resource, reason)), Options{Object: api.Ref(kind, tc.Namespace, "x")})
		target := new(TargetError)
		if !errors.As(err, &target) || target.Hint != "it may exist all the same: "+reason {
			t.Errorf("%s: %v, hint %q", kind, err, target.Hint)
		}
	}
}
