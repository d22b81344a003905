// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func redactedPlugins() []Redaction {
	return []Redaction{
		redacted[snapshot.ClusterPolicy](`metadata  meta ClusterPolicy`),
		redacted[snapshot.ClusterPolicyPluginConfig](`
			name     name ConfigMap
			default  nodeTaint`),
		redacted[corev1.ConfigMap](`
			metadata  meta ConfigMap
			data      pluginConfigs`),
	}
}

// PluginConfig is a configuration of NVIDIA's device plugin, with what decides how it offers GPUs
// (api/config/v1 of NVIDIA/k8s-device-plugin).
type PluginConfig struct {
	Version string        `json:"version"`
	Flags   PluginFlags   `json:"flags"`
	Sharing PluginSharing `json:"sharing"`
}

// PluginFlags has the strategy for MIG devices: none, single or mixed.
type PluginFlags struct {
	MIGStrategy string `json:"migStrategy,omitempty"`
}

// PluginSharing says which resources several containers share. MPS counts before time-slicing.
type PluginSharing struct {
	TimeSlicing *PluginReplicas `json:"timeSlicing,omitempty"`
	MPS         *PluginReplicas `json:"mps,omitempty"`
}

// PluginReplicas says how often each device of a resource is offered. With RenameByDefault, the resource
// gets the suffix ".shared"; the plugin ignores other names.
type PluginReplicas struct {
	RenameByDefault bool            `json:"renameByDefault,omitempty"`
	Resources       []PluginReplica `json:"resources"`
}

// PluginReplica is a resource, and how often each of its devices is offered.
type PluginReplica struct {
	Name     string `json:"name"`
	Replicas int    `json:"replicas"`
}

// ParsePluginConfig reads a configuration of NVIDIA's device plugin; nil for any other text. It has no
// text but names of resources of nvidia.com and the known strategies.
func ParsePluginConfig(text string) *PluginConfig {
	config := &PluginConfig{}
	if !strings.Contains(text, "version") || yaml.Unmarshal([]byte(text), config) != nil || config.Version != "v1" {
		return nil
	}
	config.Flags.MIGStrategy = knownStrategy(config.Flags.MIGStrategy)
	for _, replicas := range []*PluginReplicas{config.Sharing.TimeSlicing, config.Sharing.MPS} {
		if replicas != nil {
			replicas.Resources = slices.DeleteFunc(replicas.Resources, func(r PluginReplica) bool {
				return r.Name != "nvidia.com/gpu" && !isMIGResource(r.Name)
			})
		}
	}
	return config
}

// knownStrategy returns a strategy for MIG devices, empty if there is no such one.
func knownStrategy(strategy string) string {
	if slices.Contains([]string{"none", "single", "mixed"}, strategy) {
		return strategy
	}
	return ""
}

// isMIGResource reports whether a name is one of a MIG device, such as nvidia.com/mig-1g.10gb.
func isMIGResource(name string) bool {
	profile, found := strings.CutPrefix(name, "nvidia.com/mig-")
	return found && strings.Trim(profile, "0123456789gb.me+") == ""
}

// stripConfigMap keeps the configurations of NVIDIA's device plugin, without the settings that decide
// nothing here. It has no data afterwards if there were none.
func stripConfigMap(object *corev1.ConfigMap) {
	object.BinaryData, object.Immutable = nil, nil
	kept := map[string]string{}
	for name, text := range object.Data {
		if config := ParsePluginConfig(text); config != nil {
			// Structs of texts and numbers can be encoded.
			encoded, _ := json.Marshal(config)
			kept[name] = string(encoded)
		}
	}
	object.Data = kept
	if len(kept) == 0 {
		object.Data = nil
	}
}

// pluginConfigs keeps a ConfigMap with configurations of NVIDIA's device plugin, and no other one.
func pluginConfigs(object *corev1.ConfigMap, err error) (metav1.Object, error) {
	if err != nil {
		return nil, nil //nolint:nilerr // it is not a configuration
	}
	stripConfigMap(object)
	if object.Data == nil {
		return nil, nil
	}
	return untyped(object, nil)
}
