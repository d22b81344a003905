// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
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
	// Endpoint is the socket that was called, empty if none was found.
	Endpoint string `json:"endpoint,omitempty"`
	// Claims are the claims that the driver was called with, most often the first.
	Claims []Claim `json:"claims"`
	// Results are the results of all requirements, in the order in which they were tried.
	Results []Conformity `json:"results"`
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
}

// ConformOrder returns the order to prepare and unprepare a claim, which can be refused as
// any other. Nothing forces it.
func ConformOrder(driver string, claim *resourceapi.ResourceClaim) *Order {
	return &Order{Operation: PrepareOperation, Claim: claimOf(claim), Object: claim, Driver: driver, Cleanup: true}
}

func claimOf(claim *resourceapi.ResourceClaim) Claim {
	return Claim{Namespace: claim.Namespace, Name: claim.Name, UID: string(claim.UID)}
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
