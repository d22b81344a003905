// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// Findings are the checkpoints of a node. Fields are only ever added.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Findings struct {
	metav1.TypeMeta `json:",inline"`

	// Node is the name of the node in the cluster, empty if not known.
	Node string `json:"node,omitempty"`
	// BootID is the ID of the running kernel's boot, empty if it could not be read.
	BootID string `json:"bootID,omitempty"`
	// Kubelet is dra_manager_state, nil if there is none.
	Kubelet *Checkpoint `json:"kubelet,omitempty"`
	// Drivers are the files of drivers, by path.
	Drivers []Checkpoint `json:"drivers"`
	// Devices is kubelet_internal_checkpoint, nil if there is none.
	Devices *DeviceCheckpoint `json:"devices,omitempty"`
	// Metadata are the files with which containers learn about their devices, by path.
	Metadata []Metadata   `json:"metadata,omitempty"`
	Checks   []node.Check `json:"checks"`
}

// Checkpoint is a file.
type Checkpoint struct {
	// Path is the path of the file.
	Path string `json:"path"`
	// Driver is the driver of the file, empty for the kubelet's.
	Driver string `json:"driver,omitempty"`
	// Versions are the versions of the content in the file.
	Versions []string `json:"versions,omitempty"`
	// Checksums are the checksums of the file and of each version in it.
	Checksums []Checksum `json:"checksums,omitempty"`
	// BootID is the boot ID when the driver last started.
	BootID string `json:"bootID,omitempty"`
	// Modified is when the file was written.
	Modified *metav1.Time `json:"modified,omitempty"`
	// OwnForm is true if the driver's format is not known here.
	OwnForm bool `json:"ownForm,omitempty"`
	// Claims are the claims in the file.
	Claims []Claim `json:"claims,omitempty"`
	// Error says why the file could not be read or understood.
	Error string `json:"error,omitempty"`
}

// Metadata is a file with which containers learn about the devices of one request
// (KEP-5304).
type Metadata struct {
	// Path is the path of the file.
	Path string `json:"path"`
	// Driver is the driver whose file it is.
	Driver string `json:"driver"`
	// Namespace, Name and UID identify the claim, according to the file.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"`
	// Request is the request of the claim.
	Request string `json:"request"`
	// Version is the version of the object that was read.
	Version string `json:"version,omitempty"`
	// Modified is when the file was written.
	Modified *metav1.Time `json:"modified,omitempty"`
	// Devices are the devices in the file.
	Devices []Device `json:"devices,omitempty"`
	// Error says why the file could not be read or understood.
	Error string `json:"error,omitempty"`
}

// OK reports whether a checksum is right.
func (c Checksum) OK() bool { return c.Found == c.Expected }

// ClaimState is how far the preparation of a claim has come. The NVIDIA driver has these
// names (cmd/gpu-kubelet-plugin/checkpointv.go); others are shown as they are.
type ClaimState string

const (
	// PrepareStarted is a claim whose preparation began and did not end.
	PrepareStarted ClaimState = "PrepareStarted"
	// PrepareCompleted is a prepared claim.
	PrepareCompleted ClaimState = "PrepareCompleted"
	// PrepareAborted is a claim whose preparation was given up.
	PrepareAborted ClaimState = "PrepareAborted"
	// NoDevices is a claim for which the kubelet has no devices: it is not prepared yet, or
	// its drivers gave it none. The kubelet does not write down which.
	NoDevices ClaimState = "NoDevices"
)

// Claim is a claim in a checkpoint.
type Claim struct {
	UID string `json:"uid"`
	// Namespace and Name are from the file, or else from the cluster.
	Namespace string     `json:"namespace,omitempty"`
	Name      string     `json:"name,omitempty"`
	State     ClaimState `json:"state"`
	// PodUIDs are the pods for which the kubelet keeps it.
	PodUIDs []string `json:"podUIDs,omitempty"`
	Devices []Device `json:"devices,omitempty"`
}

// Device is a device of a claim.
type Device struct {
	Driver  string `json:"driver"`
	Pool    string `json:"pool"`
	Device  string `json:"device"`
	ShareID string `json:"shareID,omitempty"`
	// Requests are the requests of the claim that got the device.
	Requests []string `json:"requests,omitempty"`
	// CDIDevices are the IDs that the runtime gets.
	CDIDevices []string `json:"cdiDevices,omitempty"`
}

// Handed returns the CDI devices that the kubelet hands to the runtime, by the UID of the
// claim; nil if its checkpoint is unreliable. They are nil for a claim without devices, see
// [NoDevices], and empty for a claim whose devices need no CDI.
func (f *Findings) Handed() map[string][]string {
	if f.Kubelet == nil || f.Kubelet.Error != "" {
		return nil
	}
	handed := map[string][]string{}
	for i := range f.Kubelet.Claims {
		claim := &f.Kubelet.Claims[i]
		var ids []string
		if claim.State != NoDevices {
			ids = []string{}
		}
		for _, d := range claim.Devices {
			ids = append(ids, d.CDIDevices...)
		}
		handed[claim.UID] = ids
	}
	return handed
}

// all returns the checkpoints that were read, the kubelet's first.
func (f *Findings) all() []*Checkpoint {
	var all []*Checkpoint
	if f.Kubelet != nil {
		all = append(all, f.Kubelet)
	}
	for i := range f.Drivers {
		all = append(all, &f.Drivers[i])
	}
	return all
}

// recent reports whether the file was written so recently that a preparation may still be
// under way.
func (c *Checkpoint) recent() bool {
	return c.Modified != nil && time.Since(c.Modified.Time) < underway
}

// compareDevices orders devices naturally: gpu-2 before gpu-10.
func compareDevices(a, b Device) int {
	return cmp.Or(strings.Compare(a.Driver, b.Driver), english.CompareNames(a.Pool, b.Pool), english.CompareNames(a.Device, b.Device))
}

// of reports whether a claim has devices of a driver.
func (c *Claim) of(driver string) bool {
	for i := range c.Devices {
		if c.Devices[i].Driver == driver {
			return true
		}
	}
	return false
}

// words returns the claim's name in messages.
func (c *Claim) words() string {
	if c.Name == "" {
		return "claim " + c.UID
	}
	return fmt.Sprintf("claim %s/%s", c.Namespace, c.Name)
}

// underway is the longest time of a preparation: the kubelet gives a driver 45 seconds
// (defaultClientCallTimeout, pkg/kubelet/cm/dra/plugin).
const underway = time.Minute

// Names of checks.
const (
	checkKubelet = "state/kubelet"
	checkDriver  = "state/driver"
	checkSum     = "state/checksum"
	checkBoot    = "state/boot"
	checkPrepare = "state/prepare"
	checkClaims  = "state/claims"
	checkPods    = "state/pods"
	checkBoth    = "state/kubelet-and-driver"
	// checkMetadata judges the metadata of devices for containers.
	checkMetadata = "state/metadata"
	checkDevices  = "state/device-plugins"
	checkHolders  = "state/device-pods"
)

// Recorded returns the devices of device plugins that containers have, by resource; nil if
// the checkpoint is missing or unreliable.
func (f *Findings) Recorded() map[string][]string {
	if f.Devices == nil || f.Devices.Error != "" {
		return nil
	}
	recorded := map[string][]string{}
	for i := range f.Devices.Containers {
		c := &f.Devices.Containers[i]
		recorded[c.Resource] = append(recorded[c.Resource], c.ids()...)
	}
	for _, ids := range recorded {
		slices.Sort(ids)
	}
	return recorded
}

// Registered returns the devices of each resource that device plugins have registered; nil
// if the checkpoint is missing or unreliable.
func (f *Findings) Registered() map[string][]string {
	if f.Devices == nil || f.Devices.Error != "" {
		return nil
	}
	registered := map[string][]string{}
	for _, r := range f.Devices.Resources {
		registered[r.Name] = r.IDs
	}
	return registered
}
