// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// labelConfig is the label with the name of the configuration of a node.
const labelConfig = "nvidia.com/device-plugin.config"

// defaultConfig is the name of the configuration that the device plugin takes if none was chosen (the
// fallback strategy "named").
const defaultConfig = "default"

// settings is the configuration of NVIDIA's device plugin on a node.
type settings struct {
	kinds.PluginConfig
	// source says where it is from.
	source string
}

// plugins knows how the device plugins of a cluster are configured.
type plugins struct {
	snap *snapshot.Snapshot
	// configured has the known settings by node.
	configured map[string]configured
}

func newPlugins(snap *snapshot.Snapshot) *plugins {
	return &plugins{snap: snap, configured: map[string]configured{}}
}

// settingsOf returns the configuration of NVIDIA's device plugin on a node, or why it is not known. The
// strategy of a ClusterPolicy for MIG devices counts before the configuration (NewConfig in
// api/config/v1/config.go of NVIDIA/k8s-device-plugin: variables count before files).
func (p *plugins) settingsOf(node *corev1.Node) (s *settings, unknown string) {
	if s, found := p.configured[node.Name]; found {
		return s.settings, s.unknown
	}
	s, unknown = p.readSettings(node)
	p.configured[node.Name] = configured{s, unknown}
	return s, unknown
}

// configured is a remembered answer of settingsOf.
type configured struct {
	settings *settings
	unknown  string
}

func (p *plugins) readSettings(node *corev1.Node) (s *settings, unknown string) {
	for _, resource := range []string{snapshot.ResourceClusterPolicies, snapshot.ResourcePluginConfigs} {
		if why := p.snap.Unknown(resource, ""); why != "" {
			return nil, resource + ": " + why
		}
	}
	s = &settings{}
	var policy *snapshot.ClusterPolicy
	for _, found := range p.snap.ClusterPolicies {
		if enabled := found.Spec.DevicePlugin.Enabled; policy == nil && (enabled == nil || *enabled) {
			policy, s.source = found, "ClusterPolicy "+found.Name
		}
	}
	config, key := p.configMapOf(node, policy), node.Labels[labelConfig]
	if config == nil && policy != nil && policy.Spec.DevicePlugin.Config.Name != "" {
		return nil, fmt.Sprintf("the snapshot does not have ConfigMap %s, which ClusterPolicy %s names", policy.Spec.DevicePlugin.Config.Name, policy.Name)
	}
	if config == nil && policy == nil {
		return nil, "there is no ClusterPolicy, and the pods of the device plugin mount no configuration"
	}
	if config != nil {
		switch {
		case key != "":
		case policy != nil:
			key = policy.Spec.DevicePlugin.Config.Default
		case len(config.Data) == 1:
			key = slices.Collect(maps.Keys(config.Data))[0]
		default:
			key = defaultConfig
		}
		text, found := config.Data[key]
		switch {
		case found:
			s.PluginConfig = *kinds.ParsePluginConfig(text)
			s.source = fmt.Sprintf("%s of ConfigMap %s/%s", key, config.Namespace, config.Name)
		case key != "" && (policy == nil || node.Labels[labelConfig] != ""):
			return nil, fmt.Sprintf("ConfigMap %s/%s has no configuration %s", config.Namespace, config.Name, key)
		}
	}
	if policy != nil {
		s.Flags.MIGStrategy = cmp.Or(policy.Spec.MIG.Strategy, s.Flags.MIGStrategy)
	}
	return s, ""
}

// configMapOf returns the ConfigMap with the configurations for a node: the ClusterPolicy names it, or a
// device plugin on the node mounts it.
func (p *plugins) configMapOf(node *corev1.Node, policy *snapshot.ClusterPolicy) *corev1.ConfigMap {
	named := func(name, namespace string) *corev1.ConfigMap {
		at := slices.IndexFunc(p.snap.PluginConfigs, func(c *corev1.ConfigMap) bool {
			return c.Name == name && (namespace == "" || c.Namespace == namespace)
		})
		if at < 0 {
			return nil
		}
		return p.snap.PluginConfigs[at]
	}
	if policy != nil {
		return named(policy.Spec.DevicePlugin.Config.Name, "")
	}
	if len(p.snap.PluginConfigs) == 0 {
		return nil
	}
	for _, pod := range p.snap.Pods {
		if pod.Spec.NodeName != node.Name {
			continue
		}
		for _, name := range snapshot.MountedByPlugin(pod) {
			if config := named(name, pod.Namespace); config != nil {
				return config
			}
		}
	}
	return nil
}

// sharing returns how the configuration divides the devices of a resource. That MIG devices are called
// nvidia.com/gpu follows from labels alone: the strategy "single" does so where a node has such devices.
func (s *settings) sharing(resource corev1.ResourceName) api.PluginSharing {
	shares := func(r *kinds.PluginReplicas) bool {
		return r != nil && slices.ContainsFunc(r.Resources, func(replica kinds.PluginReplica) bool {
			return replica.Replicas > 1 && replica.Name == strings.TrimSuffix(string(resource), ".shared")
		})
	}
	switch {
	case s.Sharing.MPS != nil && shares(s.Sharing.MPS):
		return api.SharingMPS
	case s.Sharing.MPS == nil && shares(s.Sharing.TimeSlicing):
		return api.SharingTimeSlicing
	default:
		return ""
	}
}

// sharingOn returns how the device plugin divides the devices of a resource on a node, by its
// configuration and by labels, and what these two say if it is not the same. While they differ, devices
// are taken to be divided.
func (p *plugins) sharingOn(node *corev1.Node, resource corev1.ResourceName) (found api.PluginSharing, contradiction string) {
	labeled := sharing(node.Labels, resource)
	if !strings.HasPrefix(string(resource), "nvidia.com/") {
		return labeled, ""
	}
	s, unknown := p.settingsOf(node)
	if unknown != "" {
		return labeled, ""
	}
	set := s.sharing(resource)
	text := func(s api.PluginSharing) string { return cmp.Or(string(s), "no sharing") }
	switch {
	case labeled == api.SharingMIG && set == "" || labeled == api.SharingReplicas && set != "":
	case resource == resourceGPU && discovered(node) && labeled != set:
		contradiction = fmt.Sprintf("labels say %s, and %s says %s", text(labeled), s.source, text(set))
	}
	if strategy := node.Labels[labelMIGStrategy]; contradiction == "" && resource == resourceGPU && strategy != "" && s.Flags.MIGStrategy != "" && strategy != s.Flags.MIGStrategy {
		contradiction = fmt.Sprintf("labels say MIG strategy %s, and %s says %s", strategy, s.source, s.Flags.MIGStrategy)
	}
	return cmp.Or(set, labeled), contradiction
}

// notConfigured returns the reason why the sharing of GPUs by the device plugin is unknown on some
// nodes, where the labels lack it, too. It is empty if there are no such nodes.
func (p *plugins) notConfigured() string {
	for _, node := range p.snap.Nodes {
		if quantity := node.Status.Allocatable[resourceGPU]; quantity.IsZero() || discovered(node) {
			continue
		}
		if _, unknown := p.settingsOf(node); unknown != "" {
			return fmt.Sprintf("the device plugin of NVIDIA does not share the GPUs of nodes without labels that tell it, such as %s; its configuration is not known: %s", node.Name, unknown)
		}
	}
	return ""
}

// offers returns what device plugins offer on a node, sorted by name.
func (p *plugins) offers(node *corev1.Node) []api.PluginOffer {
	var list []api.PluginOffer
	for _, name := range slices.Sorted(maps.Keys(node.Status.Allocatable)) {
		quantity := node.Status.Allocatable[name]
		if quantity.IsZero() || !cluster.IsExtendedResource(name) {
			continue
		}
		offer := api.PluginOffer{Resource: string(name), Allocatable: quantity.Value()}
		offer.Sharing, offer.Contradiction = p.sharingOn(node, name)
		list = append(list, offer)
	}
	return list
}

// The labels of NVIDIA's GPU feature discovery, and the resource that they describe.
const (
	labelReplicas    = "nvidia.com/gpu.replicas"
	labelStrategy    = "nvidia.com/gpu.sharing-strategy"
	labelMIGStrategy = "nvidia.com/mig.strategy"
	labelProduct     = "nvidia.com/gpu.product"
	resourceGPU      = corev1.ResourceName("nvidia.com/gpu")
	// migInfix stands between the GPU and the profile in the product of a MIG device.
	migInfix = "-MIG-"
)

// sharing returns how NVIDIA's device plugin divides the GPUs behind a resource, by labels. These
// describe nvidia.com/gpu, and nvidia.com/gpu.shared, which replicas may be called.
func sharing(labels map[string]string, name corev1.ResourceName) api.PluginSharing {
	if name != resourceGPU && name != resourceGPU+".shared" {
		return ""
	}
	replicas, err := strconv.Atoi(labels[labelReplicas])
	product := labels[labelProduct]
	switch shared := err == nil && replicas > 1 || strings.HasSuffix(product, "-SHARED"); {
	case shared && labels[labelStrategy] == string(api.SharingTimeSlicing):
		return api.SharingTimeSlicing
	case shared && labels[labelStrategy] == string(api.SharingMPS):
		return api.SharingMPS
	case shared:
		return api.SharingReplicas
	case labels[labelMIGStrategy] == "single" && strings.Contains(product, migInfix):
		return api.SharingMIG
	default:
		return ""
	}
}

// discovered reports whether labels of feature discovery tell how GPUs of a node are shared: the product
// of shared GPUs says so.
func discovered(node *corev1.Node) bool {
	return node.Labels[labelReplicas] != "" || node.Labels[labelProduct] != ""
}
