// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	devicepluginv1beta1 "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registerv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// Findings are the plugins of a node and whether they answer.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Findings struct {
	metav1.TypeMeta `json:",inline"`

	// Node is the name that the node has in the cluster, empty if unknown.
	Node string `json:"node,omitempty"`
	// Plugins are the plugins that register with the kubelet, by socket.
	Plugins []Plugin `json:"plugins"`
	// Others are the sockets in the directory for plugins that no registration names.
	Others []Socket `json:"others,omitempty"`
	// DevicePlugins are the sockets of device plugins.
	DevicePlugins []DevicePlugin `json:"devicePlugins,omitempty"`
	// Resources are the resources of device plugins, by name.
	Resources []Resource   `json:"resources,omitempty"`
	Checks    []node.Check `json:"checks"`
}

// Plugin is a plugin that registers with the kubelet.
type Plugin struct {
	// Registration is the socket in plugins_registry.
	Registration Socket `json:"registration"`
	// Type is DRAPlugin, CSIPlugin or DevicePlugin. If the socket did not answer, it is
	// empty, as all that follows.
	Type string `json:"type,omitempty"`
	// Name is the name of the driver.
	Name string `json:"name,omitempty"`
	// Endpoint is the socket that the kubelet calls.
	Endpoint string `json:"endpoint,omitempty"`
	// Versions are the services that it advertises, such as v1.DRAPlugin.
	Versions []string `json:"versions,omitempty"`
	// Service is the socket at the endpoint of a DRA driver.
	Service *Socket `json:"service,omitempty"`
}

// IsDRA reports whether it is a DRA driver.
func (p *Plugin) IsDRA() bool { return p.Type == registerv1.DRAPlugin }

// DevicePlugin is the socket of a device plugin, and its answers.
type DevicePlugin struct {
	Socket `json:",inline"`

	// Resource is the extended resource of the plugin, empty if not known: a plugin names
	// it only to the kubelet. FoundBy says how it was found.
	Resource string  `json:"resource,omitempty"`
	FoundBy  FoundBy `json:"foundBy,omitempty"`
	// PreStartRequired and PreferredAllocation are the options of the plugin: the kubelet
	// calls PreStartContainer, and GetPreferredAllocation.
	PreStartRequired    bool `json:"preStartRequired,omitempty"`
	PreferredAllocation bool `json:"preferredAllocation,omitempty"`
	// Devices are the first list of devices that the plugin sent, nil if it was not asked
	// for it.
	Devices []PluginDevice `json:"devices,omitempty"`
	// Omitted counts devices that the plugin sent and that are not in Devices.
	Omitted int `json:"omitted,omitempty"`
}

// healthy reports whether the plugin sent a healthy device.
func (p *DevicePlugin) healthy() bool {
	return slices.ContainsFunc(p.Devices, func(d PluginDevice) bool { return d.healthy() })
}

// FoundBy is the source in which the devices of a plugin have the name of their resource.
type FoundBy string

const (
	// ByPodResources means that the kubelet gives out the devices under that name now.
	ByPodResources FoundBy = "PodResources"
	// ByCheckpoint means that only the kubelet's checkpoint has the devices.
	ByCheckpoint FoundBy = "Checkpoint"
)

// PluginDevice is a device that a device plugin sent.
type PluginDevice struct {
	// ID is the plugin's name of the device.
	ID string `json:"id"`
	// Health is Healthy or Unhealthy.
	Health string `json:"health"`
	// NUMANodes are the NUMA nodes of the device, if the plugin reports them.
	NUMANodes []int64 `json:"numaNodes,omitempty"`
}

// healthy reports whether the kubelet gives out the device.
func (d *PluginDevice) healthy() bool { return d.Health == devicepluginv1beta1.Healthy }

// Resource is an extended resource of device plugins that the kubelet knows.
type Resource struct {
	Name string `json:"name"`
	// GivenOut counts the healthy devices of the kubelet, Registered the devices in its
	// checkpoint; nil if that could not be read.
	GivenOut   *int `json:"givenOut,omitempty"`
	Registered *int `json:"registered,omitempty"`
	// Allocatable and Capacity are from the status of the node, nil if it has none.
	// Capacity includes unhealthy devices.
	Allocatable *int64 `json:"allocatable,omitempty"`
	Capacity    *int64 `json:"capacity,omitempty"`
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: api.APIVersion, Kind: kind}
}

const (
	// parallel is how many sockets are asked at the same time.
	parallel = 8
	// maxVersions limits how many services of a plugin are kept, and maxName the length of
	// its name.
	maxVersions = 32
	maxName     = 253
)

const (
	// maxPluginDevices limits how many devices of a plugin are kept, and maxID the bytes of
	// an ID, maxNUMANodes the NUMA nodes of a device.
	maxPluginDevices = 4096
	maxID            = 256
	maxNUMANodes     = 64
)

// Names of checks.
const (
	checkRegistry   = "plugins/registry"
	checkRegistered = "plugins/registration"
	checkEndpoint   = "plugins/endpoint"
	checkVersions   = "plugins/versions"
	checkDuplicates = "plugins/duplicates"
	checkOthers     = "plugins/unregistered"
	checkAccess     = "plugins/permissions"
	checkSlices     = "plugins/slices"
	checkUsers      = "plugins/users"
	checkDevices    = "plugins/device-plugins"
	checkHealthy    = "plugins/device-health"
	checkResources  = "plugins/resources"
	checkHardware   = "plugins/hardware"
)

// drivers returns the plugins that are DRA drivers, by name.
func (f *Findings) drivers() map[string][]*Plugin {
	byName := map[string][]*Plugin{}
	for i := range f.Plugins {
		if p := &f.Plugins[i]; p.IsDRA() {
			byName[p.Name] = append(byName[p.Name], p)
		}
	}
	return byName
}

func (f *Findings) good(name, path, format string, args ...any) {
	f.Checks = append(f.Checks, node.Good(name, path, format, args...))
}

func (f *Findings) bad(name, path, format string, args ...any) {
	f.Checks = append(f.Checks, node.Bad(name, path, format, args...))
}

func (f *Findings) notKnown(name, path, format string, args ...any) {
	f.Checks = append(f.Checks, node.NotKnown(name, path, format, args...))
}

// silent adds the check of a socket that did not answer, and the consequence if nobody
// listens on it.
func (f *Findings) silent(name string, s *Socket, stale string) {
	if s.Answer == node.Stale {
		f.bad(name, s.Path, "stale: %s; %s", s.Message, stale)
		return
	}
	f.Checks = append(f.Checks, node.Check{Name: name, State: s.Answer.State(), Path: s.Path, Message: s.Message})
}

// speed says how fast a socket answered.
func speed(s *Socket) string { return fmt.Sprintf("answers in %.0f ms", max(s.AnswerMillis, 1)) }

// sorted returns the keys of a map, in order.
func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
