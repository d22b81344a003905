// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	devicepluginv1beta1 "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
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

// Records are the kubelet's records of the devices of device plugins, sorted, by resource. A
// map that is nil could not be read.
//
// +k8s:deepcopy-gen=false
type Records struct {
	// GivenOut are the devices that the kubelet gives out, InUse the devices that
	// containers have. Both are from its PodResources API.
	GivenOut, InUse map[string][]string
	// Registered are the healthy devices when the kubelet last wrote its checkpoint,
	// Recorded the devices that containers had.
	Registered, Recorded map[string][]string
}

// healthy returns the devices that the kubelet gives out, as far as that is known.
func (r *Records) healthy() map[string][]string {
	if r.GivenOut == nil {
		return r.Registered
	}
	return r.GivenOut
}

// compareDevices compares the device plugins with the kubelet's records, and these with the
// node and its slices.
func (f *Findings) compareDevices(snap *snapshot.Snapshot, around *node.Cluster, records *Records) {
	names := map[string]bool{}
	for _, known := range []map[string][]string{records.GivenOut, records.Registered} {
		for name := range known {
			names[name] = true
		}
	}
	restart := "restart its plugin"
	if pods := pluginPods(around); len(pods) > 0 {
		restart += " (" + english.JoinOr(pods) + ")"
	}
	for i := range f.DevicePlugins {
		f.DevicePlugins[i].find(f, records, restart)
	}
	var target *corev1.Node
	if snap != nil {
		target = snap.Node(f.Node)
	}
	for _, name := range sorted(names) {
		r := Resource{Name: name, GivenOut: countOf(records.GivenOut, name), Registered: countOf(records.Registered, name)}
		if target != nil {
			r.Allocatable = quantityOf(target.Status.Allocatable, name)
			r.Capacity = quantityOf(target.Status.Capacity, name)
		}
		f.Resources = append(f.Resources, r)
		f.judgeResource(&r, records, restart)
	}
	if target != nil {
		f.compareHardware(snap, target, records)
	}
}

func countOf(ids map[string][]string, name string) *int {
	if ids == nil {
		return nil
	}
	return new(len(ids[name]))
}

func quantityOf(list corev1.ResourceList, name string) *int64 {
	quantity, ok := list[corev1.ResourceName(name)]
	if !ok {
		return nil
	}
	return new(quantity.Value())
}

// pluginPods names the pods of the node that can reach the sockets of device plugins.
func pluginPods(around *node.Cluster) []string {
	if around == nil {
		return nil
	}
	var names []string
	for _, pod := range around.Pods {
		if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.HostPath != nil && path.Clean(v.HostPath.Path) == path.Clean(devicePluginsDir)
		}) {
			names = append(names, "pod "+pod.Namespace+"/"+pod.Name)
		}
	}
	return names
}

// find finds the resource of a device plugin that sent its devices.
func (p *DevicePlugin) find(f *Findings, records *Records, restart string) {
	if p.Answer != node.Answers {
		return
	}
	switch {
	case p.Devices == nil && records.GivenOut != nil && len(records.GivenOut)+len(records.Registered) == 0:
		f.bad(checkResources, p.Path, "a device plugin answers, and the kubelet gives out no device of any plugin: it is not registered, or has no healthy device; %s", restart)
		return
	case len(p.Devices) == 0:
		return
	}
	for _, source := range []struct {
		by    FoundBy
		known map[string][]string
	}{{ByPodResources, records.GivenOut}, {ByCheckpoint, records.Registered}, {ByCheckpoint, records.Recorded}} {
		var names []string
		for _, name := range sorted(source.known) {
			if slices.ContainsFunc(p.Devices, func(d PluginDevice) bool { return has(source.known[name], d.ID) }) {
				names = append(names, name)
			}
		}
		switch {
		case len(names) > 1:
			f.notKnown(checkResources, p.Path, "the resource of the device plugin is not known: %s have devices with its IDs", english.JoinAnd(names))
			return
		case len(names) == 1:
			p.Resource, p.FoundBy = names[0], source.by
			p.compare(f, records)
			return
		}
	}
	if records.GivenOut != nil && p.healthy() {
		f.bad(checkResources, p.Path, "stale: the device plugin reports %s, and the kubelet knows none of them: it is not registered; %s", english.Count(len(p.Devices), "device"), restart)
	}
}

// has reports whether an ID is in a sorted list.
func has(sorted []string, id string) bool {
	_, found := slices.BinarySearch(sorted, id)
	return found
}

// compare compares the devices that a plugin sent with the devices that the kubelet gives
// out, if there are any.
func (p *DevicePlugin) compare(f *Findings, records *Records) {
	switch {
	case len(records.GivenOut[p.Resource]) == 0 || p.Omitted > 0:
		return
	case slices.ContainsFunc(f.DevicePlugins, func(other DevicePlugin) bool { return other.Path != p.Path && other.Resource == p.Resource }):
		f.notKnown(checkResources, p.Path, "another device plugin has devices of %s, too: right while a plugin is updated, wrong if it stays so", p.Resource)
		return
	}
	var differ []string
	for _, d := range p.Devices {
		if d.healthy() != has(records.GivenOut[p.Resource], d.ID) {
			differ = append(differ, d.ID)
		}
	}
	if len(differ) > 0 {
		f.bad(checkResources, p.Path, "the device plugin and the kubelet differ in the health of devices of %s: %s", p.Resource, node.Sample(differ))
	}
}

// judgeResource compares the kubelet's records of a resource with each other and with the
// status of the node.
func (f *Findings) judgeResource(r *Resource, records *Records, restart string) {
	n := len(records.healthy()[r.Name])
	source := ""
	if records.GivenOut == nil {
		source = ", by its checkpoint"
	}
	stale := slices.IndexFunc(f.DevicePlugins, func(p DevicePlugin) bool { return p.Resource == r.Name && p.healthy() })
	switch {
	case n == 0 && stale >= 0:
		f.bad(checkResources, f.DevicePlugins[stale].Path, "stale: the device plugin reports healthy devices of %s, and the kubelet gives out none: it is not registered; %s", r.Name, restart)
	case n == 0 && len(records.Registered[r.Name]) > 0:
		f.bad(checkResources, "", "%s: the kubelet gives out no device, and had %d when it last wrote its checkpoint: no plugin is connected; %s", r.Name, len(records.Registered[r.Name]), restart)
	case n == 0:
		f.bad(checkResources, "", "%s: the kubelet gives out no device%s: no plugin has registered it since the kubelet was restarted, or all devices are unhealthy; %s", r.Name, source, restart)
	default:
		f.good(checkResources, "", "%s: the kubelet gives out %s%s", r.Name, english.Count(n, "device"), source)
	}
	if r.Allocatable != nil && r.Capacity != nil && n > 0 && *r.Capacity > *r.Allocatable {
		f.bad(checkHealthy, "", "%s: %d of %s unhealthy, by the status of the node", r.Name, *r.Capacity-*r.Allocatable, english.Count(int(*r.Capacity), "device"))
	}
	if r.GivenOut != nil && r.Allocatable != nil && int64(n) != *r.Allocatable {
		check := node.NotKnown(checkResources, "", "%s: the status of the node has another number of allocatable devices than the kubelet gives out; one of them may be older", r.Name)
		check.Found, check.Required = strconv.FormatInt(*r.Allocatable, 10), strconv.Itoa(n)
		f.Checks = append(f.Checks, check)
	}
	if records.Recorded == nil {
		return
	}
	if lost := slices.DeleteFunc(slices.Clone(records.InUse[r.Name]), func(id string) bool { return has(records.Recorded[r.Name], id) }); len(lost) > 0 {
		f.bad(checkResources, "", "%s: containers have devices that the kubelet's checkpoint does not have, and a kubelet that restarts gives out again: %s", r.Name, node.Sample(lost))
	}
}

// compareHardware finds devices that device plugins give out and that drivers publish for
// the node.
func (f *Findings) compareHardware(snap *snapshot.Snapshot, target *corev1.Node, records *Records) {
	hardware := newHardware()
	// given has the resource of each device by what identifies it.
	given := map[string]string{}
	for _, name := range sorted(records.healthy()) {
		for _, id := range records.healthy()[name] {
			for _, key := range hardware.keys(id) {
				given[key] = name
			}
		}
	}
	both := map[string]map[string][]string{}
	for _, slice := range snap.Slices {
		if len(given) == 0 || !reaches(slice, target) {
			continue
		}
		for i := range slice.Spec.Devices {
			device := &slice.Spec.Devices[i]
			name, identity := hardware.sharedBy(device, given)
			if name == "" {
				continue
			}
			if both[slice.Spec.Driver] == nil {
				both[slice.Spec.Driver] = map[string][]string{}
			}
			both[slice.Spec.Driver][name] = append(both[slice.Spec.Driver][name], fmt.Sprintf("%s (%s)", device.Name, identity))
		}
	}
	for _, driver := range sorted(both) {
		for _, name := range sorted(both[driver]) {
			devices := both[driver][name]
			slices.SortFunc(devices, english.CompareNames)
			f.bad(checkHardware, "", "driver %s and the device plugin of %s have the same hardware, and neither knows what the other gives out: %s", driver, name, node.Sample(devices))
		}
	}
}

// hardware finds UUIDs and PCI addresses in texts.
type hardware struct{ uuid, pci *regexp.Regexp }

func newHardware() *hardware {
	return &hardware{
		uuid: regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`),
		// A domain may have more than four digits.
		pci: regexp.MustCompile(`[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]`),
	}
}

// keys returns the UUIDs and PCI addresses in a text: GPU-UUID::1, 00000000:01:00.0.
func (h *hardware) keys(text string) []string {
	text = strings.ToLower(text)
	return slices.Concat(h.uuid.FindAllString(text, -1), h.pci.FindAllString(text, -1))
}

// sharedBy returns the resource that also has a device, and the attribute that identifies
// it; given has resources by UUIDs and PCI addresses.
func (h *hardware) sharedBy(device *resourceapi.Device, given map[string]string) (resource, identity string) {
	for _, name := range slices.Sorted(maps.Keys(device.Attributes)) {
		value := device.Attributes[name].StringValue
		if value == nil {
			continue
		}
		for _, key := range h.keys(*value) {
			if given[key] != "" {
				return given[key], *value
			}
		}
	}
	return "", ""
}
