// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"strconv"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// Findings describe the CDI directories of a node. Fields are only ever added.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Findings struct {
	metav1.TypeMeta `json:",inline"`

	// Node is the name of the node in the cluster, empty if not known.
	Node string `json:"node,omitempty"`
	// Directories are in the order of their priority, the lowest first: of a
	// device that is in several, the last one counts.
	Directories []Directory `json:"directories"`
	// Specs are the specs in all directories, including unusable ones.
	Specs []Spec `json:"specs"`
	// Claims are the claims that pods of this node use or that devices are named after.
	Claims []Claim `json:"claims,omitempty"`
	// Resolved are the requested devices.
	Resolved []Resolution `json:"resolved,omitempty"`
	Checks   []node.Check `json:"checks"`
}

// Resolution is the result of looking up one CDI device.
type Resolution struct {
	// ID is vendor/class=name.
	ID string `json:"id"`
	// Edits are all that a runtime does for it, nil if there is an error.
	Edits *Edits `json:"edits,omitempty"`
	// Error says why it cannot be resolved.
	Error string `json:"error,omitempty"`
	// Unknown means that an unread spec may have it.
	Unknown bool `json:"unknown,omitempty"`
}

// Directory is a directory that runtimes read specs from.
type Directory struct {
	// Path is the directory, Exists reports whether it exists, Specs counts its spec files.
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
	Specs  int    `json:"specs"`
	// Error says why it could not be read.
	Error string `json:"error,omitempty"`
	// NotRead means that the directory was not read as a whole, so that runtimes may find
	// further specs there.
	NotRead bool `json:"notRead,omitempty"`
}

// Spec is a file with devices.
type Spec struct {
	// Path is the path of the file.
	Path string `json:"path"`
	// Target is the path of the file if Path is a link.
	Target string `json:"target,omitempty"`
	// Version is the version of the CDI format.
	Version string `json:"version,omitempty"`
	// Kind is vendor/class.
	Kind    string   `json:"kind,omitempty"`
	Devices []Device `json:"devices,omitempty"`
	// Edits are made to a container with any of the devices.
	Edits Edits `json:"edits"`
	// Error says why runtimes do not use the file, or why it was not read.
	Error string `json:"error,omitempty"`
	// NotRead means that the file was not read: runtimes may use it.
	NotRead bool `json:"notRead,omitempty"`
}

// Device is a device that a container can ask for by its ID.
type Device struct {
	// ID is vendor/class=name, Name the last part of it.
	ID   string `json:"id"`
	Name string `json:"name"`
	// ClaimUID is the UID of the claim that the device is named after, empty if there is
	// none.
	ClaimUID string `json:"claimUID,omitempty"`
	// ShadowedBy is the file that has the same device with a higher priority.
	ShadowedBy string `json:"shadowedBy,omitempty"`
	// ConflictsWith is a file that has the same device with the same priority:
	// runtimes then use neither.
	ConflictsWith string `json:"conflictsWith,omitempty"`
	// Edits are made to a container with this device.
	Edits Edits `json:"edits"`
}

// Edits are the changes that a runtime makes to a container.
type Edits struct {
	// Spec is the file that a device was resolved from.
	Spec        string       `json:"spec,omitempty"`
	DeviceNodes []DeviceNode `json:"deviceNodes,omitempty"`
	Mounts      []Mount      `json:"mounts,omitempty"`
	// Env is NAME=value.
	Env        []string    `json:"env,omitempty"`
	Hooks      []Hook      `json:"hooks,omitempty"`
	NetDevices []NetDevice `json:"netDevices,omitempty"`
	// AdditionalGIDs are groups of the process.
	AdditionalGIDs []uint32 `json:"additionalGids,omitempty"`
	// IntelRDT is the class of service, empty if none is set.
	IntelRDT string `json:"intelRdt,omitempty"`
}

// Presence reports whether a path named by a spec exists on the node.
type Presence string

const (
	// Present exists.
	Present Presence = "Present"
	// Absent does not exist, and the container does not start without it.
	Absent Presence = "Absent"
	// NotNeeded does not exist, and need not: the spec says enough to create it.
	NotNeeded Presence = "NotNeeded"
	// Different exists, but is not as the spec says.
	Different Presence = "Different"
	// NotSeen could not be looked at.
	NotSeen Presence = "NotSeen"
)

// DeviceNode is a device file.
type DeviceNode struct {
	// Path is the path in the container, HostPath the path on the node.
	Path     string `json:"path"`
	HostPath string `json:"hostPath"`
	// Type is b, c, u or p, Number major:minor; empty if the spec leaves them to
	// the node.
	Type   string `json:"type,omitempty"`
	Number string `json:"number,omitempty"`
	// Permissions are of r, w and m.
	Permissions string   `json:"permissions,omitempty"`
	State       Presence `json:"state"`
	// Found says what exists on the node instead, or why it could not be seen.
	Found string `json:"found,omitempty"`
}

// Mount is a mount.
type Mount struct {
	// HostPath is the path on the node, ContainerPath the path in the container. Type and
	// Options are as in mount(8).
	HostPath      string   `json:"hostPath"`
	ContainerPath string   `json:"containerPath"`
	Type          string   `json:"type,omitempty"`
	Options       []string `json:"options,omitempty"`
	// State reports whether HostPath exists; Found says what exists instead, or why it
	// could not be seen.
	State Presence `json:"state"`
	Found string   `json:"found,omitempty"`
}

// Hook is a program that the runtime starts on the node.
type Hook struct {
	// Name is the stage at which the hook runs: "createContainer".
	Name string `json:"name"`
	// Path is the program on the node, Args are its arguments.
	Path string   `json:"path"`
	Args []string `json:"args,omitempty"`
	// State reports whether the program exists; Found says what exists instead, or why it
	// could not be seen.
	State Presence `json:"state"`
	Found string   `json:"found,omitempty"`
}

// CommandLine returns the program with its arguments except the first, which is its own
// name. An argument with a space in it is quoted.
func (h *Hook) CommandLine() string {
	words := []string{h.Path}
	for _, arg := range h.Args[min(1, len(h.Args)):] {
		if arg == "" || strings.ContainsFunc(arg, unicode.IsSpace) {
			arg = strconv.Quote(arg)
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// NetDevice is a network interface that is moved into the container.
type NetDevice struct {
	// HostInterface is its name on the node, Name its name in the container.
	HostInterface string `json:"hostInterface"`
	Name          string `json:"name"`
}

// ClaimState says which devices of a claim exist.
type ClaimState string

const (
	// ClaimHasSpec is a claim with specs for all its devices.
	ClaimHasSpec ClaimState = "HasSpec"
	// ClaimLacksSpec is a claim with devices without a spec: containers with it do not
	// start.
	ClaimLacksSpec ClaimState = "LacksSpec"
	// ClaimNeedsNone is a claim to which drivers gave no CDI device.
	ClaimNeedsNone ClaimState = "NeedsNone"
	// ClaimGone is a deleted claim whose devices still exist.
	ClaimGone ClaimState = "Gone"
	// ClaimNotHere is a claim that no pod of this node uses, though its devices are here.
	ClaimNotHere ClaimState = "NotHere"
	// ClaimUnknown is a claim of which nothing can be known.
	ClaimUnknown ClaimState = "Unknown"
)

// Claim is a claim with the devices that are named after it.
type Claim struct {
	UID       string `json:"uid"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Devices are the IDs that are named after the claim, or that the kubelet hands to the
	// runtime for it. Missing are the IDs in no spec.
	Devices []string   `json:"devices,omitempty"`
	Missing []string   `json:"missing,omitempty"`
	State   ClaimState `json:"state"`
	// Reason is one sentence, unless all is well.
	Reason string `json:"reason,omitempty"`
}

// Handed has the CDI devices that the kubelet hands to the runtime, by the UID of the
// claim: nil for a claim that the kubelet knows, but has no devices for, and empty for a
// claim whose devices need no CDI.
type Handed map[string][]string

// Names of checks.
const (
	checkDirectories = "cdi/directories"
	checkSpecs       = "cdi/specs"
	checkConflicts   = "cdi/conflicts"
	checkDeviceNodes = "cdi/device-nodes"
	checkMounts      = "cdi/mounts"
	checkHooks       = "cdi/hooks"
	checkClaims      = "cdi/claims"
)
