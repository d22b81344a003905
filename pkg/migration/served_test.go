// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// node returns a node with one resource, or none if the quantity is "".
func node(name, resourceName, quantity string, labels map[string]string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if quantity != "" {
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceName(resourceName): resource.MustParse(quantity)}
	}
	return n
}

// TestServed groups nodes with the same offers, and finds hardware that is offered twice.
func TestServed(t *testing.T) {
	snap := &snapshot.Snapshot{
		Nodes: []*corev1.Node{
			node("both", "nvidia.com/gpu", "2", nil),
			node("cpu", "cpu", "64", nil),
			node("driver", "nvidia.com/gpu", "0", nil),
			node("nic", "example.com/nic", "2", nil),
			node("plugin-1", "nvidia.com/gpu", "8", nil),
			node("plugin-2", "nvidia.com/gpu", "8", nil),
		},
		Slices: []*resourceapi.ResourceSlice{
			tc.Slice("both", "gpu.nvidia.com", "both", tc.Devices(2)...).OnNode("both").ResourceSlice,
			tc.Slice("driver", "gpu.nvidia.com", "driver", tc.Devices(4)...).OnNode("driver").ResourceSlice,
			tc.Slice("fabric", "fabric.example.com", "fabric", tc.Devices(1)...).OnAllNodes().ResourceSlice,
			tc.Slice("nic", "gpu.nvidia.com", "nic", tc.Devices(1)...).OnNode("nic").ResourceSlice,
		},
	}
	gpu := []api.PluginOffer{{Resource: "nvidia.com/gpu", Allocatable: 8}}
	want := []api.MigrationNodes{
		{Count: 2, Names: []string{"plugin-1", "plugin-2"}, Plugins: gpu},
		{
			Count: 1, Names: []string{"both"}, Plugins: []api.PluginOffer{{Resource: "nvidia.com/gpu", Allocatable: 2}},
			Drivers: []api.DriverOffer{{Driver: "gpu.nvidia.com", Devices: 2, SameAs: []string{"nvidia.com/gpu"}}},
		},
		{Count: 1, Names: []string{"driver"}, Drivers: []api.DriverOffer{{Driver: "gpu.nvidia.com", Devices: 4}}},
		{
			Count: 1, Names: []string{"nic"}, Plugins: []api.PluginOffer{{Resource: "example.com/nic", Allocatable: 2}},
			Drivers: []api.DriverOffer{{Driver: "gpu.nvidia.com", Devices: 1}},
		},
	}
	if diff := cmp.Diff(want, served(cluster.New(snap), newPlugins(snap))); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
}

// TestSharing tells sharing from labels alone, and nothing from a strategy without replicas.
func TestSharing(t *testing.T) {
	for name, test := range map[string]struct {
		resource string
		labels   map[string]string
		want     api.PluginSharing
	}{
		"no labels":           {"nvidia.com/gpu", nil, ""},
		"one replica":         {"nvidia.com/gpu", map[string]string{labelReplicas: "1", labelStrategy: "none"}, ""},
		"time-slicing":        {"nvidia.com/gpu", map[string]string{labelReplicas: "4", labelStrategy: "time-slicing"}, api.SharingTimeSlicing},
		"renamed":             {"nvidia.com/gpu.shared", map[string]string{labelReplicas: "4", labelStrategy: "time-slicing"}, api.SharingTimeSlicing},
		"MPS":                 {"nvidia.com/gpu", map[string]string{labelReplicas: "4", labelStrategy: "mps"}, api.SharingMPS},
		"an older plugin":     {"nvidia.com/gpu", map[string]string{labelReplicas: "4"}, api.SharingReplicas},
		"product alone":       {"nvidia.com/gpu", map[string]string{labelProduct: "Tesla-T4-SHARED"}, api.SharingReplicas},
		"not a number":        {"nvidia.com/gpu", map[string]string{labelReplicas: "many"}, ""},
		"MIG as nvidia/gpu":   {"nvidia.com/gpu", map[string]string{labelMIGStrategy: "single", labelProduct: "A100-SXM4-40GB-MIG-1g.5gb"}, api.SharingMIG},
		"whole GPU, strategy": {"nvidia.com/gpu", map[string]string{labelMIGStrategy: "single", labelProduct: "A100-SXM4-40GB"}, ""},
		"another resource":    {"amd.com/gpu", map[string]string{labelReplicas: "4"}, ""},
	} {
		if got := sharing(test.labels, corev1.ResourceName(test.resource)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestConfigured knows how the device plugin divides GPUs by its configuration, and says where labels of
// nodes differ from it.
func TestConfigured(t *testing.T) {
	policy := func(name, chosen string) []*snapshot.ClusterPolicy {
		p := &snapshot.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: "policy"}}
		p.Spec.MIG.Strategy, p.Spec.DevicePlugin.Config.Name, p.Spec.DevicePlugin.Config.Default = "single", name, chosen
		return []*snapshot.ClusterPolicy{p}
	}
	disabled := policy("plugin", "sliced")
	disabled[0].Spec.DevicePlugin.Enabled = new(false)
	configs := []*corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "plugin"}, Data: map[string]string{
		"whole":  "version: v1",
		"sliced": "version: v1\nflags: {migStrategy: mixed}\nsharing: {timeSlicing: {renameByDefault: true, resources: [{name: nvidia.com/gpu, replicas: 4}]}}",
		"mps":    "version: v1\nsharing: {mps: {resources: [{name: nvidia.com/mig-1g.10gb, replicas: 2}]}, timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}",
	}}}
	mounts := func(node string) []*corev1.Pod {
		p := pod("plugin", nil, func(p *corev1.Pod) {
			p.Namespace, p.Spec.NodeName = "gpu-operator", node
			p.Spec.Volumes = []corev1.Volume{
				{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/kubelet/device-plugins"}}},
				{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "plugin"}}}},
			}
		})
		return []*corev1.Pod{p}
	}
	for name, test := range map[string]struct {
		policies []*snapshot.ClusterPolicy
		pods     []*corev1.Pod
		labels   map[string]string
		resource string
		want     api.PluginSharing
		// contradiction is one of labels and configuration, unknown is a part of the reason why the
		// configuration is not known.
		contradiction, unknown string
	}{
		"the default":                 {policies: policy("plugin", "sliced"), want: api.SharingTimeSlicing},
		"renamed":                     {policies: policy("plugin", "sliced"), resource: "nvidia.com/gpu.shared", want: api.SharingTimeSlicing},
		"the label":                   {policies: policy("plugin", "sliced"), labels: map[string]string{labelConfig: "whole"}, want: ""},
		"no default":                  {policies: policy("plugin", ""), want: ""},
		"MPS in place of time-slices": {policies: policy("plugin", "mps"), want: ""},
		"MPS of MIG devices":          {policies: policy("plugin", "mps"), resource: "nvidia.com/mig-1g.10gb", want: api.SharingMPS},
		"labels say the same":         {policies: policy("plugin", "sliced"), labels: map[string]string{labelReplicas: "4", labelStrategy: "time-slicing", labelMIGStrategy: "single"}, want: api.SharingTimeSlicing},
		"labels say less":             {policies: policy("plugin", "sliced"), labels: map[string]string{labelReplicas: "1"}, want: api.SharingTimeSlicing, contradiction: "labels say no sharing, and sliced of ConfigMap gpu-operator/plugin says time-slicing"},
		"labels say more":             {policies: policy("plugin", "whole"), labels: map[string]string{labelReplicas: "4", labelStrategy: "mps"}, want: api.SharingMPS, contradiction: "labels say mps, and whole of ConfigMap gpu-operator/plugin says no sharing"},
		"another strategy":            {policies: policy("plugin", "sliced"), labels: map[string]string{labelMIGStrategy: "mixed"}, want: api.SharingTimeSlicing, contradiction: "labels say MIG strategy mixed, and sliced of ConfigMap gpu-operator/plugin says single"},
		"a mount, without a default":  {pods: mounts("n"), unknown: "ConfigMap gpu-operator/plugin has no configuration default"},
		"a mount and a label":         {pods: mounts("n"), labels: map[string]string{labelConfig: "sliced"}, want: api.SharingTimeSlicing},
		"a mount on another node":     {pods: mounts("other"), unknown: "there is no ClusterPolicy"},
		"an operator without plugin":  {policies: disabled, unknown: "there is no ClusterPolicy"},
		"a missing ConfigMap":         {policies: policy("other", "sliced"), unknown: "the snapshot does not have ConfigMap other"},
		"an unknown label":            {policies: policy("plugin", "sliced"), labels: map[string]string{labelConfig: "none"}, unknown: "ConfigMap gpu-operator/plugin has no configuration none"},
		"another vendor":              {policies: policy("plugin", "sliced"), resource: "amd.com/gpu", want: ""},
	} {
		if test.resource == "" {
			test.resource = "nvidia.com/gpu"
		}
		n := node("n", "nvidia.com/gpu", "4", test.labels)
		p := newPlugins(&snapshot.Snapshot{
			Nodes: []*corev1.Node{n}, Pods: test.pods, ClusterPolicies: test.policies, PluginConfigs: configs,
			Listed: []string{snapshot.ResourceClusterPolicies, snapshot.ResourcePluginConfigs},
		})
		resource := corev1.ResourceName(test.resource)
		got, contradiction := p.sharingOn(n, resource)
		if got != test.want || contradiction != test.contradiction {
			t.Errorf("%s: %q, %q; want %q, %q", name, got, contradiction, test.want, test.contradiction)
		}
		if unknown := p.notConfigured(); (unknown != "") != (test.unknown != "") || !strings.Contains(unknown, test.unknown) {
			t.Errorf("%s: unknown: %q, want %q", name, unknown, test.unknown)
		}
	}
}
