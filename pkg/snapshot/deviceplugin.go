// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	devicepluginv1beta1 "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// ClusterPolicy is the configuration of NVIDIA's GPU Operator, with the part that decides how its device
// plugin offers GPUs (api/nvidia/v1/clusterpolicy_types.go of NVIDIA/gpu-operator).
type ClusterPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ClusterPolicySpec `json:"spec"`
}

// ClusterPolicySpec has the settings of the device plugin.
type ClusterPolicySpec struct {
	MIG          ClusterPolicyMIG    `json:"mig"`
	DevicePlugin ClusterPolicyPlugin `json:"devicePlugin"`
}

// ClusterPolicyMIG is the strategy for MIG devices, which counts before one in the configuration of the
// device plugin.
type ClusterPolicyMIG struct {
	Strategy string `json:"strategy,omitempty"`
}

// ClusterPolicyPlugin has the settings of the device plugin. It is enabled if Enabled is nil.
type ClusterPolicyPlugin struct {
	Enabled *bool                     `json:"enabled,omitempty"`
	Config  ClusterPolicyPluginConfig `json:"config"`
}

// ClusterPolicyPluginConfig names the ConfigMap with the configurations of the device plugin, and the
// configuration for nodes whose label names none.
type ClusterPolicyPluginConfig struct {
	Name    string `json:"name,omitempty"`
	Default string `json:"default,omitempty"`
}

// DeepCopy returns a copy that shares nothing with the policy.
func (p *ClusterPolicy) DeepCopy() *ClusterPolicy {
	c := *p
	p.DeepCopyInto(&c.ObjectMeta)
	if enabled := p.Spec.DevicePlugin.Enabled; enabled != nil {
		c.Spec.DevicePlugin.Enabled = new(*enabled)
	}
	return &c
}

// ClusterPolicyKind returns the kind of ClusterPolicies.
func ClusterPolicyKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "nvidia.com", Version: "v1", Kind: "ClusterPolicy"}
}

// MountedByPlugin returns the names of the ConfigMaps that the pod of a device plugin mounts; none for other
// pods.
func MountedByPlugin(pod *corev1.Pod) []string {
	plugin := false
	var names []string
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.HostPath != nil && path.Clean(v.HostPath.Path) == path.Clean(devicepluginv1beta1.DevicePluginPath) {
			plugin = true
		}
		if v.ConfigMap != nil && v.ConfigMap.Name != "" {
			names = append(names, v.ConfigMap.Name)
		}
	}
	if !plugin {
		return nil
	}
	return names
}
