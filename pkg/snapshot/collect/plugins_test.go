// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func TestCollectDaemonSets(t *testing.T) {
	set := func(name, path string) map[string]any {
		return object(name, map[string]any{
			"spec": map[string]any{"updateStrategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": 2}}, "template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "main", "args": []any{"gpu.example.com"}}},
				"volumes":    []any{map[string]any{"name": "v", "hostPath": map[string]any{"path": path}}},
			}}},
			"status": map[string]any{"desiredNumberScheduled": 2, "numberReady": 1},
		})
	}
	const path = "/apis/apps/v1/daemonsets"
	s := mustCollect(t, start(t, smallCluster().with(apiServer{
		path: listOf("apps/v1", "DaemonSet", set("gpu/plugin", "/var/lib/kubelet/plugins_registry"), set("logs/agent", "/var/log")),
	})), Options{})
	expect(t, "workloads", []string{"Workload gpu/plugin"}, named("Workload", s.Workloads))
	plugin := s.Workloads[0]
	if names, _ := plugin.KubeletPlugin(); plugin.Kind != "DaemonSet" || *plugin.Daemon != (snapshot.DaemonStatus{Desired: 2, Ready: 1}) || names[0] != "gpu.example.com" {
		t.Errorf("got %+v", plugin)
	}
	if u := plugin.Update; u == nil || u.Type != "RollingUpdate" || u.RollingUpdate.MaxSurge.IntValue() != 2 || u.RollingUpdate.MaxUnavailable != nil {
		t.Errorf("update strategy %+v", u)
	}

	fresh := set("gpu/plugin", "/var/lib/kubelet/plugins_registry")
	fresh["metadata"] = map[string]any{"namespace": "gpu", "name": "plugin", "generation": 1}
	s = mustCollect(t, start(t, smallCluster().with(apiServer{path: listOf("apps/v1", "DaemonSet", fresh)})), Options{})
	if daemon := s.Workloads[0].Daemon; daemon != nil {
		t.Errorf("counts of a DaemonSet that its controller has not seen: %+v", daemon)
	}

	s = mustCollect(t, start(t, smallCluster().with(apiServer{path: forbid()})), Options{})
	expect(t, "gaps", []string{"daemonsets.apps[]: this user may not list daemonsets.apps at the cluster scope"}, gapTexts(s))
}

// TestCollectJobs reads Jobs only where one has a pod with claims on a node, and keeps
// those that end by themselves.
func TestCollectJobs(t *testing.T) {
	const path = "/apis/batch/v1/jobs"
	pod := func(node string) apiServer {
		return apiServer{"/api/v1/pods": listOf("v1", "Pod", object("ml/train-0", map[string]any{
			"metadata": map[string]any{"namespace": "ml", "name": "train-0", "ownerReferences": []any{map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j", "controller": true}}},
			"spec":     map[string]any{"nodeName": node, "resourceClaims": []any{map[string]any{"name": "gpu", "resourceClaimName": "gpu"}}},
		}))}
	}
	job := func(name string, seconds any) map[string]any {
		return object(name, map[string]any{
			"spec":   map[string]any{"activeDeadlineSeconds": seconds, "template": map[string]any{}},
			"status": map[string]any{"startTime": "2026-09-01T12:00:00Z"},
		})
	}
	jobs := smallCluster().with(apiServer{path: listOf("batch/v1", "Job", job("ml/train", 3600), job("ml/endless", nil))})
	s := mustCollect(t, start(t, jobs.with(pod("n1"))), Options{Ends: true})
	expect(t, "workloads", []string{"Workload ml/train"}, named("Workload", s.Workloads))
	if limit := s.Workloads[0].Limit; s.Workloads[0].Kind != "Job" || limit.ActiveDeadlineSeconds != 3600 || limit.StartTime.Hour() != 12 {
		t.Errorf("got %+v", s.Workloads[0])
	}
	forbidden := jobs.with(apiServer{path: forbid()})
	s = mustCollect(t, start(t, forbidden.with(pod("n1"))), Options{Ends: true, AllNamespaces: true})
	expect(t, "gaps", []string{"jobs.batch[]: this user may not list jobs.batch at the cluster scope"}, gapTexts(s))
	for what, opts := range map[string]Options{"": {Ends: true, AllNamespaces: true}, "n1": {AllNamespaces: true}} {
		s = mustCollect(t, start(t, forbidden.with(pod(what))), opts)
		expect(t, "gaps where no Job matters", nil, gapTexts(s))
	}
}

func TestCollectQueued(t *testing.T) {
	gated := map[string]any{"spec": map[string]any{"schedulingGates": []any{map[string]any{"name": "kueue.x-k8s.io/admission"}}}}
	workload := object("ml/pod-train", map[string]any{
		"metadata": map[string]any{"namespace": "ml", "name": "pod-train", "ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "train-0", "uid": "u"}}},
		"spec":     map[string]any{"queueName": "team", "podSets": []any{}},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "no quota"}}},
	})
	const path = "/apis/kueue.x-k8s.io/v1beta1/namespaces/ml/workloads"
	kueue := smallCluster().with(apiServer{
		"/api/v1/pods":                 listOf("v1", "Pod", object("ml/train-0", gated)),
		"/api/v1/namespaces/ml/events": listOf("v1", "Event"),
		path:                           listOf("kueue.x-k8s.io/v1beta1", "Workload", workload),
	})
	target := Options{Target: &snapshot.Argument{Resource: "pod", Name: "train-0"}}
	count := func(answers apiServer, opts Options) int {
		s := mustCollect(t, start(t, answers), opts)
		expect(t, "gaps", nil, gapTexts(s))
		return len(s.Queued)
	}

	s := mustCollect(t, start(t, kueue), target)
	found := s.QueuedBy("ml", "", s.Queued[0].OwnerReferences)
	if found == nil || found.Spec.QueueName != "team" || found.Condition("QuotaReserved").Message != "no quota" {
		t.Errorf("got %+v", s.Queued)
	}
	s = mustCollect(t, start(t, kueue.with(apiServer{path: forbid()})), target)
	expect(t, "gaps", []string{"workloads.kueue.x-k8s.io[]: this user may not list workloads.kueue.x-k8s.io in namespace ml"}, gapTexts(s))
	if n := len(s.Queued); n != 0 {
		t.Errorf("without the right: got %d", n)
	}
	const queues, clusterQueues = "/apis/kueue.x-k8s.io/v1beta1/namespaces/ml/localqueues/team", "/apis/kueue.x-k8s.io/v1beta1/clusterqueues/all"
	queue := object("ml/team", map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "LocalQueue", "spec": map[string]any{"clusterQueue": "all"}})
	all := object("all", map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "spec": map[string]any{"stopPolicy": "Hold"}})
	s = mustCollect(t, start(t, kueue.with(apiServer{queues: queue, clusterQueues: all})), target)
	if len(s.Outlines) != 2 || s.Outlines[0].Spec.StopPolicy != "Hold" || s.Outlines[1].Spec.ClusterQueue != "all" {
		t.Errorf("queues: got %+v", s.Outlines)
	}
	s = mustCollect(t, start(t, kueue.with(apiServer{queues: queue, clusterQueues: forbid()})), target)
	expect(t, "gaps", []string{"clusterqueues.kueue.x-k8s.io[]: this user may not get clusterqueues.kueue.x-k8s.io at the cluster scope"}, gapTexts(s))
	if n := count(kueue, Options{}); n != 0 {
		t.Errorf("without a target: got %d", n)
	}
	if n := count(kueue.with(apiServer{"/api/v1/pods": listOf("v1", "Pod", object("ml/train-0"))}), target); n != 0 {
		t.Errorf("of a pod that is not Kueue's: got %d", n)
	}
}
