// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/testsnapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// TestDroppedFields loads objects with the manifest that was applied.
func TestDroppedFields(t *testing.T) {
	load := func(t *testing.T, kind, spec, applied string) *snapshot.Snapshot {
		t.Helper()
		return testsnapshot.Load(t, fmt.Sprintf(`{"apiVersion":"resource.k8s.io/v1","kind":%q,"metadata":{"name":"o","namespace":"ml","annotations":{"kubectl.kubernetes.io/last-applied-configuration":%q}},"spec":%s}`,
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
			add := func(fields []snapshot.DroppedField) {
				for _, field := range fields {
					got = append(got, field.Path+" "+field.Gate)
				}
			}
			for _, o := range s.Claims {
				add(snapshot.DroppedFields(o))
			}
			for _, o := range s.Templates {
				add(snapshot.DroppedFields(o))
			}
			for _, o := range s.Classes {
				add(snapshot.DroppedFields(o))
			}
			for _, o := range s.Slices {
				add(snapshot.DroppedFields(o))
			}
			if strings.Join(got, ", ") != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestPluginPod notes plugins of the kubelet that are in no DaemonSet.
func TestPluginPod(t *testing.T) {
	for kind, want := range map[string]string{"": "gpu.example.com", "ReplicaSet": "gpu.example.com", "DaemonSet": ""} {
		owner := ""
		if kind != "" {
			owner = fmt.Sprintf(", ownerReferences: [{apiVersion: apps/v1, kind: %s, name: p, uid: p, controller: true}]", kind)
		}
		s := testsnapshot.Load(t, fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: p, namespace: kube-system%s}
spec:
  containers: [{name: plugin}]
  volumes: [{name: p, hostPath: {path: /var/lib/kubelet/plugins/gpu.example.com}}]
`, owner))
		if names, _ := snapshot.Annotated(s.Pods[0], snapshot.KubeletPluginAnnotation); strings.Join(names, ",") != want {
			t.Errorf("pod of kind %q: names %q, want %q", kind, names, want)
		}
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
			s := testsnapshot.Load(t, fmt.Sprintf("apiVersion: apps/v1\nkind: %s\nmetadata: {name: p, namespace: kube-system}\nspec:\n  template:\n    spec:%s\nstatus: {desiredNumberScheduled: 3, numberReady: 2}\n", tc.kind, tc.spec))
			names, plugin := s.Workloads[0].KubeletPlugin()
			if plugin != tc.plugin || strings.Join(names, ",") != tc.names {
				t.Errorf("got %q, %v", names, plugin)
			}
			if args := s.Workloads[0].Template.Spec.Containers[0].Args; len(args) > 0 {
				t.Errorf("kept arguments %q", args)
			}
			if status := s.Workloads[0].Daemon; tc.kind == "DaemonSet" && (status == nil || *status != snapshot.DaemonStatus{Desired: 3, Ready: 2}) || tc.kind != "DaemonSet" && status != nil {
				t.Errorf("got status %+v", status)
			}
		})
	}
}

// TestVolumes strips volumes of all directories of a node but the one of device plugins.
func TestVolumes(t *testing.T) {
	for directory, kept := range map[string]string{
		"/var/lib/kubelet/device-plugins/": "/var/lib/kubelet/device-plugins/", "/var/lib/kubelet/device-plugins": "/var/lib/kubelet/device-plugins",
		"/var/lib/kubelet": "", "/srv/secret": "",
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: directory}}}}}}
		kinds.Strip(pod)
		if host := pod.Spec.Volumes[0].HostPath; host == nil || host.Path != kept {
			t.Errorf("of %s is left %+v, want %q", directory, host, kept)
		}
	}
}

// TestComponents notes what the pods of the control plane say about feature gates.
func TestComponents(t *testing.T) {
	const image = "registry.k8s.io/kube-scheduler:v1.37.1"
	for name, test := range map[string]struct {
		namespace, component, image string
		command                     []string
		want                        string
	}{
		"kubeadm":         {"kube-system", "kube-scheduler", image, []string{"kube-scheduler", "--feature-gates=DRADeviceTaints=false,Other=true"}, "kube-scheduler,version=v1.37.1,DRADeviceTaints=false"},
		"defaults":        {"kube-system", "kube-scheduler", image, []string{"kube-scheduler"}, "kube-scheduler,version=v1.37.1"},
		"a shell":         {"kube-system", "kube-scheduler", image, []string{"sh", "-c", "exec kube-scheduler --feature-gates 'kube:DRADeviceTaints=1' --v=2"}, "kube-scheduler,version=v1.37.1,DRADeviceTaints=true"},
		"a digest":        {"kube-system", "kube-scheduler", "localhost:5000/kube-scheduler@sha256:abc", []string{"kube-scheduler"}, "kube-scheduler"},
		"a tag, a digest": {"kube-system", "kube-scheduler", image + "@sha256:abc", []string{"kube-scheduler"}, "kube-scheduler,version=v1.37.1"},
		"another release": {"kube-system", "kube-scheduler", image, []string{"kube-scheduler", "--emulated-version=1.36"}, ""},
		"no arguments":    {"kube-system", "kube-scheduler", image, nil, ""},
		"somebody's":      {"default", "kube-scheduler", image, []string{"kube-scheduler"}, ""},
		"something else":  {"kube-system", "etcd", image, []string{"etcd"}, ""},
	} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace, Labels: map[string]string{"component": test.component}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Image: test.image, Command: test.command}}},
		}
		kinds.Strip(pod)
		if got := pod.Annotations[snapshot.ComponentAnnotation]; got != test.want {
			t.Errorf("%s: noted %q, want %q", name, got, test.want)
		}
	}
}
