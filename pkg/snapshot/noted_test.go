// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"strings"
	"testing"
)

// TestDroppedFields loads objects with the manifest that was applied.
func TestDroppedFields(t *testing.T) {
	load := func(t *testing.T, kind, spec, applied string) *Snapshot {
		t.Helper()
		return mustLoad(t, fmt.Sprintf(`{"apiVersion":"resource.k8s.io/v1","kind":%q,"metadata":{"name":"o","namespace":"ml","annotations":{"kubectl.kubernetes.io/last-applied-configuration":%q}},"spec":%s}`,
			kind, applied, spec))
	}
	manifest := func(version, kind, spec string) string {
		return fmt.Sprintf(`{"apiVersion":"resource.k8s.io/%s","kind":%q,"metadata":{"name":"o"},"spec":%s}`, version, kind, spec)
	}
	const plain = `{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","allocationMode":"ExactCount","count":1}}]}}`
	for name, tc := range map[string]struct {
		kind, spec, applied string
		want                string
	}{
		"toleration": {
			"ResourceClaim", plain,
			manifest("v1", "ResourceClaim", `{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","tolerations":[{"operator":"Exists"}]}}]}}`),
			"spec.devices.requests[0].exactly.tolerations DRADeviceTaints",
		},
		"admin access of an older version": {
			"ResourceClaim", plain,
			manifest("v1beta1", "ResourceClaim", `{"devices":{"requests":[{"name":"r","deviceClassName":"c","adminAccess":true}]}}`),
			"spec.devices.requests[0].exactly.adminAccess DRAAdminAccess",
		},
		"template": {
			"ResourceClaimTemplate", `{"spec":` + plain + `}`,
			manifest("v1", "ResourceClaimTemplate", `{"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","capacity":{"requests":{"memory":"1Gi"}}}}]}}}`),
			"spec.spec.devices.requests[0].exactly.capacity DRAConsumableCapacity",
		},
		"class": {
			"DeviceClass", `{}`, manifest("v1", "DeviceClass", `{"extendedResourceName":"example.com/gpu"}`),
			"spec.extendedResourceName DRAExtendedResource",
		},
		"slice": {
			"ResourceSlice",
			`{"driver":"d.example.com","nodeName":"n","pool":{"name":"n","resourceSliceCount":1},"devices":[{"name":"a"},{"name":"b"}]}`,
			manifest("v1", "ResourceSlice", `{"driver":"d.example.com","nodeName":"n","pool":{"name":"n","resourceSliceCount":1},"devices":[{"name":"a"},{"name":"b","taints":[{"key":"k","effect":"NoExecute"}]}]}`),
			"spec.devices[1].taints DRADeviceTaints",
		},
		"the same": {"ResourceClaim", plain, manifest("v1", "ResourceClaim", plain), ""},
		"a field without a gate": {
			"ResourceClaim", plain,
			manifest("v1", "ResourceClaim", `{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","selectors":[{"cel":{"expression":"true"}}]}}]}}`), "",
		},
		"another list": {
			"ResourceClaim", plain,
			manifest("v1", "ResourceClaim", `{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}},{"name":"s","exactly":{"deviceClassName":"c","adminAccess":true}}]}}`), "",
		},
		"no manifest": {"ResourceClaim", plain, `{"apiVersion":`, ""},
		"not v1":      {"ResourceClaim", plain, manifest("v9", "ResourceClaim", plain), ""},
		"not a claim": {"ResourceClaim", plain, manifest("v1", "DeviceClass", `{"extendedResourceName":"example.com/gpu"}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := load(t, tc.kind, tc.spec, tc.applied)
			var got []string
			add := func(fields []DroppedField) {
				for _, field := range fields {
					got = append(got, field.Path+" "+field.Gate)
				}
			}
			for _, o := range s.Claims {
				add(DroppedFields(o))
			}
			for _, o := range s.Templates {
				add(DroppedFields(o))
			}
			for _, o := range s.Classes {
				add(DroppedFields(o))
			}
			for _, o := range s.Slices {
				add(DroppedFields(o))
			}
			if strings.Join(got, ", ") != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestKubeletPlugin(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, spec string
		names      string
		plugin     bool
	}{
		"registers": {
			"DaemonSet", `
      containers:
      - name: plugin
        command: [gpu-plugin, --driver-name=gpu.example.com]
        args: ["--config=/etc/gpu.yaml"]
        env: [{name: NIC_DRIVER, value: nic.example.com}, {name: TOKEN, value: s3cr3t}]
      volumes: [{name: r, hostPath: {path: /var/lib/kubelet/plugins_registry/}}]`,
			"gpu.example.com,gpu.yaml,nic.example.com", true,
		},
		"directory of its own": {"DaemonSet", `
      containers: [{name: plugin}]
      volumes: [{name: p, hostPath: {path: /data/kubelet/plugins/gpu.example.com}}]`, "gpu.example.com", true},
		"device plugin": {"DaemonSet", `
      containers: [{name: plugin, args: [gpu.example.com]}]
      volumes: [{name: p, hostPath: {path: /var/lib/kubelet/device-plugins}}]`, "", false},
		"agent": {"DaemonSet", `
      containers: [{name: agent, args: [gpu.example.com]}]`, "", false},
		"another kind": {"Deployment", `
      containers: [{name: plugin}]
      volumes: [{name: r, hostPath: {path: /var/lib/kubelet/plugins_registry}}]`, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustLoad(t, fmt.Sprintf("apiVersion: apps/v1\nkind: %s\nmetadata: {name: p, namespace: kube-system}\nspec:\n  template:\n    spec:%s\nstatus: {desiredNumberScheduled: 3, numberReady: 2}\n", tc.kind, tc.spec))
			names, plugin := s.Workloads[0].KubeletPlugin()
			if plugin != tc.plugin || strings.Join(names, ",") != tc.names {
				t.Errorf("got %q, %v", names, plugin)
			}
			if args := s.Workloads[0].Template.Spec.Containers[0].Args; len(args) > 0 {
				t.Errorf("kept arguments %q", args)
			}
			if status := s.Workloads[0].Daemon; tc.kind == "DaemonSet" && (status == nil || *status != DaemonStatus{Desired: 3, Ready: 2}) || tc.kind != "DaemonSet" && status != nil {
				t.Errorf("got status %+v", status)
			}
		})
	}
}

func TestCollectDaemonSets(t *testing.T) {
	set := func(name, path string) map[string]any {
		return object(name, map[string]any{
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "main", "args": []any{"gpu.example.com"}}},
				"volumes":    []any{map[string]any{"name": "v", "hostPath": map[string]any{"path": path}}},
			}}},
			"status": map[string]any{"desiredNumberScheduled": 2, "numberReady": 1},
		})
	}
	const path = "/apis/apps/v1/daemonsets"
	s := mustCollect(t, start(t, smallCluster().with(apiServer{
		path: listOf("apps/v1", "DaemonSet", set("gpu/plugin", "/var/lib/kubelet/plugins_registry"), set("logs/agent", "/var/log")),
	})), CollectOptions{})
	expect(t, "workloads", []string{"Workload gpu/plugin"}, named("Workload", s.Workloads))
	plugin := s.Workloads[0]
	if names, _ := plugin.KubeletPlugin(); plugin.Kind != "DaemonSet" || *plugin.Daemon != (DaemonStatus{Desired: 2, Ready: 1}) || names[0] != "gpu.example.com" {
		t.Errorf("got %+v", plugin)
	}

	s = mustCollect(t, start(t, smallCluster().with(apiServer{path: forbid()})), CollectOptions{})
	expect(t, "gaps", []string{"daemonsets.apps[]: this user may not list daemonsets.apps at the cluster scope"}, gapTexts(s))
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
	target := CollectOptions{Target: &ObjectRef{Resource: "pod", Name: "train-0"}}
	count := func(answers apiServer, opts CollectOptions) int {
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
	if n := count(kueue, CollectOptions{}); n != 0 {
		t.Errorf("without a target: got %d", n)
	}
	if n := count(kueue.with(apiServer{"/api/v1/pods": listOf("v1", "Pod", object("ml/train-0"))}), target); n != 0 {
		t.Errorf("of a pod that is not Kueue's: got %d", n)
	}
}
