// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// Findings hold the kubelet's report about the devices of its pods. Fields are only ever
// added.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Findings struct {
	metav1.TypeMeta `json:",inline"`

	// Node is the name of the node in the cluster, empty if not known.
	Node string `json:"node,omitempty"`
	// Socket is the kubelet's socket.
	Socket string `json:"socket"`
	// Pods are the pods with a claim, a device, or exclusive CPUs or memory; Others counts
	// the rest.
	Pods   []Pod `json:"pods"`
	Others int   `json:"others"`
	// TopologyManagerPolicy is the policy of the kubelet's Topology Manager, by its arguments
	// and configuration; empty if not known.
	TopologyManagerPolicy string `json:"topologyManagerPolicy,omitempty"`
	// Allocatable are the devices of device plugins that the kubelet gives out, including
	// devices in use.
	Allocatable []Resource   `json:"allocatable,omitempty"`
	Checks      []node.Check `json:"checks"`
}

// GivenOut returns the devices of device plugins that the kubelet gives out, by resource;
// nil if it could not be asked.
func (f *Findings) GivenOut() map[string][]string {
	if !f.answered(checkAllocatable) {
		return nil
	}
	return idsOf(map[string][]string{}, f.Allocatable)
}

// InUse returns the devices of device plugins that containers have, by resource; nil if the
// kubelet could not be asked.
func (f *Findings) InUse() map[string][]string {
	if !f.answered(checkList) {
		return nil
	}
	used := map[string][]string{}
	for i := range f.Pods {
		for _, c := range f.Pods[i].Containers {
			idsOf(used, c.Devices)
		}
	}
	return used
}

// answered reports whether the kubelet answered the call of a check.
func (f *Findings) answered(check string) bool {
	return slices.ContainsFunc(f.Checks, func(c node.Check) bool { return c.Name == check && c.State == node.OK })
}

// idsOf adds devices to a list of them by resource, each once, and returns it.
func idsOf(ids map[string][]string, resources []Resource) map[string][]string {
	for _, r := range resources {
		ids[r.Name] = append(ids[r.Name], r.IDs...)
		slices.Sort(ids[r.Name])
		ids[r.Name] = slices.Compact(ids[r.Name])
	}
	return ids
}

// Pod is a pod as the kubelet knows it.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Containers are the containers with a claim, a device, or exclusive CPUs or memory.
	Containers []Container `json:"containers,omitempty"`
}

// Container is a container that runs, or restarts, with its pod; the kubelet does not
// report init containers that end before.
type Container struct {
	Name   string  `json:"name"`
	Claims []Claim `json:"claims,omitempty"`
	// Devices are the devices of device plugins.
	Devices []Resource `json:"devices,omitempty"`
	// CPUs are the exclusive CPUs of the container.
	CPUs   []int64  `json:"cpus,omitempty"`
	Memory []Memory `json:"memory,omitempty"`
	// Alignment compares the NUMA nodes of all of these. It is absent if the container has no
	// devices of claims, or nothing else, or if no place of a device is known.
	Alignment *Alignment `json:"alignment,omitempty"`
}

// Alignment compares the NUMA nodes of the devices, CPUs and memory of a container.
type Alignment struct {
	State AlignmentState `json:"state"`
	// Parts are the compared devices, CPUs and memory, by kind and NUMA nodes.
	Parts []AlignedPart `json:"parts"`
	// Required names the attributes numaNode and pcieRoot that constraints of the claims
	// require to be the same for devices of the claim. No claim can require it of CPUs.
	Required []string `json:"required,omitempty"`
}

// AlignmentState is the result of a comparison of NUMA nodes.
type AlignmentState string

// States of an alignment.
const (
	// Aligned means that there is a NUMA node that has all parts.
	Aligned AlignmentState = "Aligned"
	// NotAligned means that there is none.
	NotAligned AlignmentState = "NotAligned"
	// AlignmentUndetermined means that the NUMA nodes of some parts are not known, and
	// the others are aligned.
	AlignmentUndetermined AlignmentState = "Undetermined"
)

// AlignedPart is a part of what a container has, with one place.
type AlignedPart struct {
	// Kind is the kind of the names.
	Kind PartKind `json:"kind"`
	// Names are devices as driver/pool/device, a list of CPUs, types of memory, or resources of
	// device plugins.
	Names []string `json:"names"`
	// NUMANodes are the NUMA nodes that are close to a device, or that have the CPUs or the
	// memory; empty if not known.
	NUMANodes []int64 `json:"numaNodes,omitempty"`
}

// PartKind is the kind of a part of what a container has.
type PartKind string

// Kinds of parts.
const (
	// PartDevices are devices of claims.
	PartDevices PartKind = "Devices"
	// PartCPUs are exclusive CPUs.
	PartCPUs PartKind = "CPUs"
	// PartMemory is exclusive memory.
	PartMemory PartKind = "Memory"
	// PartPluginDevices are devices of device plugins.
	PartPluginDevices PartKind = "PluginDevices"
)

// Claim is a claim whose devices the kubelet gives to a container.
type Claim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID is from the cluster, empty if it has no such claim.
	UID     string   `json:"uid,omitempty"`
	Devices []Device `json:"devices,omitempty"`
}

// Device is a device of a claim.
type Device struct {
	Driver  string `json:"driver"`
	Pool    string `json:"pool"`
	Device  string `json:"device"`
	ShareID string `json:"shareID,omitempty"`
	// CDIDevices are the CDI devices that the kubelet names with the device. With each
	// device of a driver it also names the CDI devices of the devices before it
	// (GetDynamicResources, pkg/kubelet/cm/container_manager_linux.go).
	CDIDevices []string `json:"cdiDevices,omitempty"`
}

// Resource is a set of devices of a device plugin.
type Resource struct {
	// Name is the name of the resource: "example.com/nic".
	Name string `json:"name"`
	// IDs are the plugin's names of the devices.
	IDs []string `json:"ids"`
	// NUMANodes are their NUMA nodes, if the plugin reports them.
	NUMANodes []int64 `json:"numaNodes,omitempty"`
}

// Memory is exclusive memory of a container.
type Memory struct {
	// Type is memory or hugepages-SIZE, Bytes its amount.
	Type  string `json:"type"`
	Bytes uint64 `json:"bytes"`
	// NUMANodes are its NUMA nodes.
	NUMANodes []int64 `json:"numaNodes,omitempty"`
}
