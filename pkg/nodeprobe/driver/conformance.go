// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Conformance reports whether a driver does what the kubelet and the scheduler rely on.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Conformance struct {
	metav1.TypeMeta `json:",inline"`

	Driver string `json:"driver"`
	// Software has the versions that the results hold for.
	Software *Software `json:"software,omitempty"`
	// Endpoint is the socket that was called, empty if none was found.
	Endpoint string `json:"endpoint,omitempty"`
	// Claims are the claims that the driver was called with, most often the first.
	Claims []Claim `json:"claims"`
	// Results are the results of all requirements, in the order in which they were tried.
	Results []Conformity `json:"results"`
}

// Software has the versions of a driver and of what it was tested with. Each is empty if it
// is not known.
type Software struct {
	// Images are the images of the containers of the pod whose process serves the endpoint.
	Images []string `json:"images,omitempty"`
	// Services are the versions of services that the driver advertises.
	Services []string `json:"services,omitempty"`
	// Kubernetes is the version of the API server, Kubelet the version of the node's
	// kubelet.
	Kubernetes string `json:"kubernetes,omitempty"`
	Kubelet    string `json:"kubelet,omitempty"`
	// ContainerRuntime is the name and version of the node's container runtime.
	ContainerRuntime string `json:"containerRuntime,omitempty"`
	// OperatingSystem is the node's operating system and architecture, such as "linux/amd64".
	OperatingSystem string `json:"operatingSystem,omitempty"`
	// Program is the version of the program that tested the driver.
	Program string `json:"program,omitempty"`
}

// Conformity is the result of one requirement.
type Conformity struct {
	// Name is stable, such as "conform/prepare-twice".
	Name  string     `json:"name"`
	State node.State `json:"state"`
	// Message is one line about the result. Unknown is also used where a driver may choose,
	// and for what was not tried; the message says which.
	Message string `json:"message"`
	// Source is the origin of the requirement.
	Source string `json:"source"`
	// Needs is the missing thing if the requirement was not tried, else empty.
	Needs Need `json:"needs,omitempty"`
	// Exchanges are the calls that prepared and unprepared claims for it, in their order.
	Exchanges []Exchange `json:"exchanges,omitempty"`
}

// Need is something that it takes to try a requirement.
type Need string

const (
	// NeedDriver is an instance of the driver that registers and answers.
	NeedDriver Need = "Driver"
	// NeedPrepared is a claim that the driver prepares.
	NeedPrepared Need = "PreparedClaim"
	// NeedUnprepared is a claim that the driver unprepares.
	NeedUnprepared Need = "UnpreparedClaim"
	// NeedSecond is a second claim with devices of the driver.
	NeedSecond Need = "SecondClaim"
	// NeedUnallocated is a claim without devices.
	NeedUnallocated Need = "UnallocatedClaim"
	// NeedForeign is a claim with devices of other drivers.
	NeedForeign Need = "ForeignClaim"
	// NeedRestart is a way to restart the driver.
	NeedRestart Need = "Restart"
	// NeedStop is a way to stop the driver.
	NeedStop Need = "Stop"
	// NeedCluster is a cluster with the slices of the driver. Some requirements take one that
	// can be read again.
	NeedCluster Need = "Cluster"
)

// Exchange is a call of the driver and its reply.
type Exchange struct {
	// Service is the version of the API, Method the method that was called.
	Service string `json:"service"`
	Method  string `json:"method"`
	// Error is the error of the whole call.
	Error string `json:"error,omitempty"`
	// Claims are the claims that were sent, with their replies.
	Claims []ClaimReply `json:"claims"`
}

// ClaimReply is the reply of a driver for one claim.
type ClaimReply struct {
	Claim `json:",inline"`

	// Replied is true if the reply has the claim.
	Replied bool `json:"replied"`
	// Error is the error for the claim.
	Error string `json:"error,omitempty"`
	// Devices are the devices that the driver prepared for the claim.
	Devices []PreparedDevice `json:"devices,omitempty"`
}

// Checks returns the results as checks.
func (c *Conformance) Checks() []node.Check {
	checks := make([]node.Check, 0, len(c.Results))
	for _, r := range c.Results {
		checks = append(checks, node.Check{Name: r.Name, State: r.State, Message: r.Message})
	}
	return checks
}

// ConformOptions configure the test of a driver.
//
// +k8s:deepcopy-gen=false
type ConformOptions struct {
	CallOptions

	// Claims have devices of the driver on this node, and nobody uses them. There is
	// at least one.
	Claims []*resourceapi.ResourceClaim
	// Unallocated is a claim without devices, Foreign a claim with devices, but none of the
	// driver. Each may be nil.
	Unallocated, Foreign *resourceapi.ResourceClaim
	// Cluster is the cluster, nil for none. Reread reads it again; nil if that is not
	// possible.
	Cluster *snapshot.Snapshot
	Reread  func(context.Context) (*snapshot.Snapshot, error)
	// Restart and Stop restart and stop the driver, and wait for that; nil if nobody knows
	// how to.
	Restart, Stop func(context.Context) error
	// Settle limits the time until the driver has registered again, or has stopped; 0 means
	// a minute.
	Settle time.Duration
	// RemovesSlices is true if the driver promises to remove its slices when it is stopped.
	RemovesSlices bool
	// Program is the version of the program that tests the driver.
	Program string
}

// ConformOrder returns the order to prepare and unprepare a claim, which can be refused as
// any other. Nothing forces it.
func ConformOrder(driver string, claim *resourceapi.ResourceClaim) *Order {
	return &Order{Operation: PrepareOperation, Claim: claimOf(claim), Object: claim, Driver: driver, Cleanup: true}
}

func claimOf(claim *resourceapi.ResourceClaim) Claim {
	return Claim{Namespace: claim.Namespace, Name: claim.Name, UID: string(claim.UID)}
}

// RefuseConform returns reasons not to test a driver with claims in a place. Nothing makes
// it touch the claims of pods.
func RefuseConform(driver string, opts *ConformOptions, here Place) []Refusal {
	var refusals []Refusal
	add := func(claim *resourceapi.ResourceClaim, list ...Refusal) {
		for _, r := range list {
			r.Reason = "claim " + claim.Namespace + "/" + claim.Name + ": " + r.Reason
			if !slices.Contains(refusals, r) {
				refusals = append(refusals, r)
			}
		}
	}
	for _, claim := range opts.Claims {
		add(claim, ConformOrder(driver, claim).Refuse(opts.Cluster, here)...)
	}
	if claim := opts.Unallocated; claim != nil && (claim.Status.Allocation != nil || len(claim.Status.ReservedFor) > 0) {
		add(claim, Refusal{"it is allocated", "the driver is to refuse a claim that is not, and may take devices from a pod"})
	}
	if claim := opts.Foreign; claim != nil && len(claim.Status.ReservedFor) > 0 {
		add(claim, Refusal{"it is in use", "what a driver does with a claim of others is not known"})
	}
	if claim := opts.Foreign; claim != nil && len((&Order{Object: claim}).results(driver)) > 0 {
		add(claim, Refusal{"it has devices of driver " + driver, "the driver is to give nothing for a claim of others, and may take devices from a pod"})
	}
	return refusals
}

// Names of the requirements, in the order in which they are tested.
const (
	conformRegistration = "conform/registration"
	conformVersions     = "conform/versions"
	conformGetInfo      = "conform/get-info"
	conformSlices       = "conform/slices"
	conformHealth       = "conform/health"
	conformPrepare      = "conform/prepare"
	conformCDI          = "conform/cdi"
	conformTwice        = "conform/prepare-twice"
	conformReplaced     = "conform/prepare-replaced"
	conformUnallocated  = "conform/prepare-unallocated"
	conformForeign      = "conform/prepare-foreign"
	conformErrors       = "conform/errors-per-claim"
	conformRestart      = "conform/restart"
	conformGeneration   = "conform/generation"
	conformUnprepare    = "conform/unprepare"
	conformGone         = "conform/unprepare-twice"
	conformUnknown      = "conform/unprepare-unknown"
	conformSeveral      = "conform/several-claims"
	conformStop         = "conform/stop"
	conformCleanup      = "conform/cleanup"
)

// Sources of requirements.
const (
	kep          = "KEP-4381"
	protoPrepare = "k8s.io/kubelet/pkg/apis/dra/v1/api.proto, NodePrepareResourcesResponse"
	protoDevice  = "k8s.io/kubelet/pkg/apis/dra/v1/api.proto, Device"
	protoRevert  = "k8s.io/kubelet/pkg/apis/dra/v1/api.proto, NodeUnprepareResourcesResponse"
	protoInfo    = "k8s.io/kubelet/pkg/apis/pluginregistration/v1/api.proto"
	helper       = "k8s.io/dynamic-resource-allocation/kubeletplugin, "
)
