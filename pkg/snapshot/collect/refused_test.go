// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestRefused reads the workloads with devices whose pods the API server refuses: a
// StatefulSet, and the Deployment of a ReplicaSet.
func TestRefused(t *testing.T) {
	template := map[string]any{"spec": map[string]any{"containers": []any{}, "resourceClaims": []any{map[string]any{"name": "gpu", "resourceClaimTemplateName": "one"}}}}
	plain := map[string]any{"spec": map[string]any{"containers": []any{}}}
	failed := func(apiVersion, kind, name string) map[string]any {
		return object("ml/"+name+".1", map[string]any{
			"reason": "FailedCreate", "type": "Warning", "message": "no",
			"involvedObject": map[string]any{"apiVersion": apiVersion, "kind": kind, "namespace": "ml", "name": name},
		})
	}
	workload := func(kind, name string, template, status map[string]any, owners ...any) map[string]any {
		return object("ml/"+name, map[string]any{
			"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"namespace": "ml", "name": name, "uid": name, "ownerReferences": owners},
			"spec": map[string]any{"template": template}, "status": status,
		})
	}
	const apps = "/apis/apps/v1/namespaces/ml/"
	cluster := smallCluster().with(apiServer{
		"/api/v1/namespaces/ml/events": listOf("v1", "Event", failed("apps/v1", "ReplicaSet", "train-1"), failed("apps/v1", "StatefulSet", "serve"), failed("apps/v1", "StatefulSet", "web"), failed("v1", "PersistentVolumeClaim", "disk")),
		apps + "replicasets/train-1": workload("ReplicaSet", "train-1", template, nil,
			map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "train", "uid": "train", "controller": true}),
		apps + "deployments/train": workload("Deployment", "train", template, map[string]any{"observedGeneration": 1, "conditions": []any{
			map[string]any{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no"},
		}}),
		apps + "statefulsets/serve": workload("StatefulSet", "serve", template, nil),
		apps + "statefulsets/web":   workload("StatefulSet", "web", plain, nil),
	})
	read := func(answers apiServer, opts Options) (*snapshot.Snapshot, []string) {
		s := mustCollect(t, start(t, answers), opts)
		var found []string
		for _, w := range s.Workloads {
			found = append(found, w.Kind+" "+w.Name)
		}
		for _, event := range s.Events {
			found = append(found, event.Name)
		}
		return s, found
	}
	s, found := read(cluster, Options{Namespace: "ml", Starting: true})
	expect(t, "gaps", nil, gapTexts(s))
	expect(t, "workloads and events", []string{"StatefulSet serve", "Deployment train", "serve.1"}, found)
	if c := s.Workloads[1].Conditions; len(c) != 1 || c[0].Message != "no" {
		t.Errorf("the conditions of the Deployment are %+v", c)
	}
	if _, found := read(cluster, Options{Namespace: "ml"}); len(found) > 0 {
		t.Errorf("read without being asked for: %v", found)
	}
	s, _ = read(cluster.with(apiServer{"/api/v1/namespaces/ml/events": forbid()}), Options{Namespace: "ml", Starting: true})
	expect(t, "gaps", []string{"events[]: this user may not list events in namespace ml"}, gapTexts(s))
}
