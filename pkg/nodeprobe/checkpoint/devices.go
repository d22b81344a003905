// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"hash/fnv"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	devicepluginv1beta1 "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/utils/dump"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// devicesFile is the same for every kubelet, whatever its root directory
// (kubeletDeviceManagerCheckpoint, pkg/kubelet/cm/devicemanager).
const devicesFile = devicepluginv1beta1.DevicePluginPath + "kubelet_internal_checkpoint"

// DeviceCheckpoint is the kubelet's kubelet_internal_checkpoint: the devices of device
// plugins, and the containers that have them.
type DeviceCheckpoint struct {
	// Path is the path of the file.
	Path string `json:"path"`
	// Checksum is nil if the file has fields that this program does not know.
	Checksum *Checksum `json:"checksum,omitempty"`
	// Modified is when the file was written.
	Modified *metav1.Time `json:"modified,omitempty"`
	// Resources are the resources of plugins that have registered, by name.
	Resources []DeviceResource `json:"resources,omitempty"`
	// Containers are the containers with devices, by pod, container and resource.
	Containers []DeviceContainer `json:"containers,omitempty"`
	// Error says why the file could not be read or understood.
	Error string `json:"error,omitempty"`
}

// DeviceResource has the healthy devices of a resource at the last change. It has none if
// the plugin has not registered again since the kubelet was restarted.
type DeviceResource struct {
	// Name is the extended resource: "example.com/nic".
	Name string `json:"name"`
	// IDs are the plugin's names of the devices.
	IDs []string `json:"ids"`
}

// DeviceContainer is a container with devices of one resource.
type DeviceContainer struct {
	// PodUID is the UID of the pod.
	PodUID string `json:"podUID"`
	// Namespace and Pod are from the cluster, empty if it has no such pod.
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	// Container is the name of the container in the pod.
	Container string `json:"container"`
	// Resource is the extended resource of the devices.
	Resource string       `json:"resource"`
	Devices  []NUMADevice `json:"devices"`
}

// NUMADevice is a device on a NUMA node. A device of several NUMA nodes occurs with each of
// them.
type NUMADevice struct {
	// ID is the plugin's name of the device.
	ID string `json:"id"`
	// NUMANode is the number of the NUMA node, nil if the plugin does not report it.
	NUMANode *int64 `json:"numaNode,omitempty"`
}

// ids returns the devices of a container, each once.
func (c *DeviceContainer) ids() []string {
	var ids []string
	for _, d := range c.Devices {
		ids = append(ids, d.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// The kubelet computes the checksum from the names of the types and fields of the content,
// and the name of their package (pkg/kubelet/cm/devicemanager/checkpoint): these three types
// must keep them.
type (
	checkpointData struct {
		PodDeviceEntries  []PodDevicesEntry
		RegisteredDevices map[string][]string
	}

	// PodDevicesEntry has the devices of one resource that a container has.
	//
	// +k8s:deepcopy-gen=false
	PodDevicesEntry struct {
		PodUID        string
		ContainerName string
		ResourceName  string
		DeviceIDs     DevicesPerNUMA
		AllocResp     []byte
	}

	// DevicesPerNUMA has devices by NUMA node, -1 for those without.
	//
	// +k8s:deepcopy-gen=false
	DevicesPerNUMA map[int64][]string
)

// deviceFile is kubelet_internal_checkpoint.
type deviceFile struct {
	Data     *checkpointData
	Checksum uint64
}

// parseDevices reads kubelet_internal_checkpoint into c. A wrong checksum is no error.
func parseDevices(data []byte, c *DeviceCheckpoint) error {
	var file deviceFile
	if err := json.Unmarshal(data, &file); err != nil {
		return node.JSONFault(err)
	}
	if file.Data == nil {
		return errors.New("it is no checkpoint: there is no Data in it")
	}
	// The checksum covers all fields, so it is not known with others.
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&deviceFile{}); err == nil {
		hash := fnv.New32a()
		// Writing to a hash does not fail.
		_, _ = hash.Write([]byte(dump.ForHash(*file.Data)))
		c.Checksum = &Checksum{Found: file.Checksum, Expected: uint64(hash.Sum32())}
	}
	for _, name := range slices.Sorted(maps.Keys(file.Data.RegisteredDevices)) {
		c.Resources = append(c.Resources, DeviceResource{Name: name, IDs: append([]string{}, slices.Sorted(slices.Values(file.Data.RegisteredDevices[name]))...)})
	}
	for _, entry := range file.Data.PodDeviceEntries {
		c.Containers = append(c.Containers, entry.container())
	}
	slices.SortStableFunc(c.Containers, func(a, b DeviceContainer) int {
		return cmp.Or(cmp.Compare(a.PodUID, b.PodUID), cmp.Compare(a.Container, b.Container), cmp.Compare(a.Resource, b.Resource))
	})
	return nil
}

func (e *PodDevicesEntry) container() DeviceContainer {
	c := DeviceContainer{PodUID: e.PodUID, Container: e.ContainerName, Resource: e.ResourceName, Devices: []NUMADevice{}}
	for _, numa := range slices.Sorted(maps.Keys(e.DeviceIDs)) {
		for _, id := range slices.Sorted(slices.Values(e.DeviceIDs[numa])) {
			device := NUMADevice{ID: id}
			if numa >= 0 {
				device.NUMANode = &numa
			}
			c.Devices = append(c.Devices, device)
		}
	}
	return c
}

// Checksum is a checksum in the file and the expected one. It is computed from what is in
// the file; a driver computes it from what it understands of that, and so one of another
// version may refuse a file that is intact.
type Checksum struct {
	// Of is the covered part: a version, or empty for the file.
	Of string `json:"of,omitempty"`
	// Found is the checksum in the file, Expected the computed one.
	Found    uint64 `json:"found"`
	Expected uint64 `json:"expected"`
}
