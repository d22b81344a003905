// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// Preparation records the calls of drivers for a claim.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Preparation struct {
	metav1.TypeMeta `json:",inline"`

	Operation Operation `json:"operation"`
	Claim     Claim     `json:"claim"`
	// Refusals are the reasons against it. If it was carried out, it was forced.
	Refusals []Refusal `json:"refusals,omitempty"`
	// Calls are the requests and replies, in their order.
	Calls  []*Call      `json:"calls"`
	Checks []node.Check `json:"checks"`
}

// Call is a request to a driver and its reply.
type Call struct {
	Driver string `json:"driver"`
	// Endpoint is the socket that was called.
	Endpoint string `json:"endpoint"`
	// Service is the version of the API, Method the method that was called.
	Service string `json:"service"`
	Method  string `json:"method"`
	// Request are the claims that were sent.
	Request []Claim `json:"request"`
	// DryRun means that the call was not made.
	DryRun bool `json:"dryRun,omitempty"`
	// Millis is its duration.
	Millis float64 `json:"millis"`
	// Error is the error of the call or of the claim.
	Error string `json:"error,omitempty"`
	// Replied are the UIDs in the reply.
	Replied []string `json:"replied,omitempty"`
	// Devices are the devices that the driver prepared for the claim.
	Devices []PreparedDevice `json:"devices,omitempty"`
}

// PreparedDevice is a device in the reply of a driver.
type PreparedDevice struct {
	// Requests are the requests of the claim; none means all.
	Requests []string `json:"requests,omitempty"`
	Pool     string   `json:"pool"`
	Device   string   `json:"device"`
	ShareID  string   `json:"shareID,omitempty"`
	// CDI are the names for the container runtime.
	CDI []CDIDevice `json:"cdi,omitempty"`
}

// CDIDevice is a name for the container runtime and its resolution.
type CDIDevice struct {
	// ID is vendor/class=name.
	ID string `json:"id"`
	// Edits are the changes to the container, nil if they were not looked for or not found.
	Edits *Edits `json:"edits,omitempty"`
	// Error says why it does not resolve.
	Error string `json:"error,omitempty"`
}

// Edits are the changes that a CDI device makes to a container.
type Edits struct {
	// Spec is the file with the device.
	Spec        string       `json:"spec,omitempty"`
	DeviceNodes []DeviceNode `json:"deviceNodes,omitempty"`
	// Mounts are "host:container", Env "NAME=value", Hooks
	// "name: path argument …".
	Mounts []string `json:"mounts,omitempty"`
	Env    []string `json:"env,omitempty"`
	Hooks  []string `json:"hooks,omitempty"`
}

// DeviceNode is a device file that a container gets.
type DeviceNode struct {
	// Path is the path in the container, HostPath the path on the node.
	Path     string `json:"path"`
	HostPath string `json:"hostPath"`
	// State reports whether the node has the file that the container needs. Message says
	// what is wrong, or why it could not be seen.
	State   node.State `json:"state"`
	Message string     `json:"message,omitempty"`
}

// Resolver returns a function that looks up CDI devices in the node's present specs; the
// error says why one does not resolve.
//
// +k8s:deepcopy-gen=false
type Resolver func(ctx context.Context) (find func(id string) (*Edits, error))

// Names of checks.
const (
	checkFind       = "prepare/driver"
	checkCall       = "prepare/call"
	checkVersion    = "prepare/version"
	checkReply      = "prepare/reply"
	checkAllocated  = "prepare/devices"
	checkCDI        = "prepare/cdi"
	checkIdempotent = "prepare/idempotent"
	checkCleanup    = "prepare/cleanup"
)

func (p *Preparation) good(name, path, format string, args ...any) {
	p.Checks = append(p.Checks, node.Good(name, path, format, args...))
}

func (p *Preparation) bad(name, path, format string, args ...any) {
	p.Checks = append(p.Checks, node.Bad(name, path, format, args...))
}

func (p *Preparation) notKnown(name, path, format string, args ...any) {
	p.Checks = append(p.Checks, node.NotKnown(name, path, format, args...))
}

// DefaultCallTimeout limits a call of a driver, as for the kubelet.
const DefaultCallTimeout = 45 * time.Second
