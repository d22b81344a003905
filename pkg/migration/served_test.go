// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
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
	if diff := cmp.Diff(want, served(cluster.New(snap))); diff != "" {
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
