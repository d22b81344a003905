// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Case is a small random cluster where a pod waits for devices.
type Case struct {
	Seed     uint64
	Snapshot *snapshot.Snapshot
	// Features are the features that were added on purpose, in the order of [Features].
	Features []string
}

// Pod returns the waiting pod.
func (c *Case) Pod() *corev1.Pod { return c.Snapshot.Pod(Namespace, Waiting) }

// Claims returns the claims of the pod that exist and have no devices yet.
func (c *Case) Claims() []*resourceapi.ResourceClaim {
	var claims []*resourceapi.ResourceClaim
	for _, entry := range c.Pod().Spec.ResourceClaims {
		if claim := c.Snapshot.Claim(Namespace, *entry.ResourceClaimName); claim != nil && claim.Status.Allocation == nil {
			claims = append(claims, claim)
		}
	}
	return claims
}

// Names in a random cluster.
const (
	// Namespace and Waiting name the pod that waits, and the first of its claims.
	Namespace = "ml"
	Waiting   = "train"
	// Links is the second driver, and its class.
	Links = "nic.example.com"
	// fastClass selects devices of one model, anyClass has no selector.
	fastClass = "fast.example.com"
	anyClass  = "any.example.com"
	// extendedName is the extended resource of the class of Driver.
	extendedName = "example.com/gpu"
	// derivedName is an attribute that requests compute.
	derivedName = "derived/half"
	// missingClass does not exist, brokenSelector does not compile.
	missingClass   = "gpus.example.com"
	brokenSelector = "device.attributes["
)

// AllGates returns the feature gates that decide what the allocator can do.
func AllGates() []string {
	return []string{
		"DRAAdminAccess", "DRAPrioritizedList", "DRAPartitionableDevices", "DRADeviceTaints", "DRADeviceTaintRules",
		"DRAConsumableCapacity", "DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus", "DRAFractionalCapacityRange",
		"DRAListTypeAttributes", "DRADeviceCompatibilityGroups", "DRADerivedAttributes", "DRAOptionalNodeOperations",
	}
}
