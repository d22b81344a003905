// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"cmp"
	"context"
	"slices"
	"time"

	devicepluginv1beta1 "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

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

// healthy reports whether the plugin sent a healthy device.
func (p *DevicePlugin) healthy() bool {
	return slices.ContainsFunc(p.Devices, func(d PluginDevice) bool { return d.healthy() })
}

const (
	// maxPluginDevices limits how many devices of a plugin are kept, and maxID the bytes of
	// an ID, maxNUMANodes the NUMA nodes of a device.
	maxPluginDevices = 4096
	maxID            = 256
	maxNUMANodes     = 64
)

// ask asks a device plugin for its options, and for its devices if list is true. Nothing is
// allocated.
func (p *DevicePlugin) ask(ctx context.Context, host *node.Host, dir string, timeout time.Duration, list bool) {
	p.looked(host)
	// The stream of devices only ends with its context.
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	started := time.Now()
	c, err := dial(ctx, host, p.Path, dir)
	if err != nil {
		p.outcome(0, err)
		return
	}
	defer c.close()
	client := devicepluginv1beta1.NewDevicePluginClient(c)
	options, err := client.GetDevicePluginOptions(ctx, &devicepluginv1beta1.Empty{})
	if err != nil {
		p.outcome(0, c.failed(err))
		return
	}
	p.outcome(time.Since(started), nil)
	p.PreStartRequired, p.PreferredAllocation = options.GetPreStartRequired(), options.GetGetPreferredAllocationAvailable()
	if !list {
		return
	}
	stream, err := client.ListAndWatch(ctx, &devicepluginv1beta1.Empty{})
	if err != nil {
		p.outcome(0, c.failed(err))
		return
	}
	first, err := stream.Recv()
	if err != nil {
		p.outcome(0, c.failed(err))
		return
	}
	p.keep(first.GetDevices())
}

// keep keeps the devices of a list, as far as they are within the limits.
func (p *DevicePlugin) keep(devices []*devicepluginv1beta1.Device) {
	p.Devices = []PluginDevice{}
	for _, d := range devices {
		if len(p.Devices) == maxPluginDevices || len(d.GetID()) > maxID {
			p.Omitted++
			continue
		}
		device := PluginDevice{ID: d.GetID(), Health: clip(d.GetHealth())}
		for _, numa := range d.GetTopology().GetNodes() {
			if len(device.NUMANodes) < maxNUMANodes {
				device.NUMANodes = append(device.NUMANodes, numa.GetID())
			}
		}
		p.Devices = append(p.Devices, device)
	}
	slices.SortStableFunc(p.Devices, func(a, b PluginDevice) int { return cmp.Or(english.CompareNames(a.ID, b.ID), cmp.Compare(a.ID, b.ID)) })
}
