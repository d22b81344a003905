// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Operation is the call to a driver: prepare or unprepare.
type Operation string

const (
	// PrepareOperation makes the devices of a claim ready for containers.
	PrepareOperation Operation = "Prepare"
	// UnprepareOperation undoes that.
	UnprepareOperation Operation = "Unprepare"
)

// Claim names a claim as drivers get it.
type Claim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// Order is an operation on a claim.
//
// +k8s:deepcopy-gen=false
type Order struct {
	Operation Operation
	Claim     Claim
	// Object is the claim in the cluster, nil if it could not be looked up.
	Object *resourceapi.ResourceClaim
	// Driver limits the order to one driver. Empty means all drivers of the claim's
	// devices.
	Driver string
	// Cleanup unprepares the claim afterwards.
	Cleanup bool
	// Twice makes every call twice, as the kubelet may.
	Twice bool
	// DryRun finds the drivers and shows the calls, without making them.
	DryRun bool
}

// Refusal is a reason not to carry out an order, with the consequence if it is carried out
// all the same.
type Refusal struct {
	// Reason is one sentence.
	Reason string `json:"reason"`
	// Consequence is one sentence.
	Consequence string `json:"consequence"`
}

// Drivers returns the drivers of the order, by name.
func (o *Order) Drivers() []string {
	if o.Driver != "" {
		return []string{o.Driver}
	}
	var names []string
	for _, result := range o.results("") {
		names = append(names, result.Driver)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// results returns the allocated devices of a driver, of all for an empty name.
func (o *Order) results(driver string) []resourceapi.DeviceRequestAllocationResult {
	if o.Object == nil || o.Object.Status.Allocation == nil {
		return nil
	}
	var own []resourceapi.DeviceRequestAllocationResult
	for _, result := range o.Object.Status.Allocation.Devices.Results {
		if driver == "" || result.Driver == driver {
			own = append(own, result)
		}
	}
	return own
}

// Place is the place where an order is carried out.
//
// +k8s:deepcopy-gen=false
type Place struct {
	// Node is the name of the node in the cluster, BootID the ID of its kernel's boot. They
	// are empty if not known.
	Node, BootID string
}

// Refuse returns the reasons not to carry out an order in a place. snap is nil if no
// cluster was read.
func (o *Order) Refuse(snap *snapshot.Snapshot, here Place) []Refusal {
	claim := o.Object
	if claim == nil {
		return []Refusal{{
			"the claim could not be looked up, so nobody knows whether its devices are on this node or in use",
			"the driver gets a claim that it may know nothing of, or takes devices from a pod that uses them",
		}}
	}
	var refusals []Refusal
	add := func(reason, consequence string) { refusals = append(refusals, Refusal{reason, consequence}) }
	if uid := string(claim.UID); uid != o.Claim.UID {
		add(fmt.Sprintf("the claim %s/%s has the UID %s, not %s", claim.Namespace, claim.Name, uid, o.Claim.UID),
			"the driver works on a claim that does not exist any more")
	}
	if claim.Status.Allocation == nil {
		add("the claim is not allocated", "the driver gets a claim without devices: it fails, or what it does means nothing")
		return append(refusals, o.refuseInUse()...)
	}
	if where := o.elsewhere(snap, here); where != "" {
		add(where, "the driver here gets devices that it may not have; one that does not check hands out others in their place")
	}
	if o.Driver != "" && len(o.results(o.Driver)) == 0 {
		add(fmt.Sprintf("the claim has no device of driver %s, only of %s", o.Driver, strings.Join((&Order{Object: claim}).Drivers(), ", ")),
			"the driver gets a claim of another driver")
	}
	for _, driver := range o.Drivers() {
		if o.skipped(driver) {
			add(fmt.Sprintf("the kubelet does not make this call: all devices of driver %s skip it (skipNodeOperations)", driver),
				"the driver gets a call that it may not be made for")
		}
	}
	return append(refusals, o.refuseInUse()...)
}

// skipped reports whether the kubelet skips the call, because all devices of the driver say
// so (KEP-5945).
func (o *Order) skipped(driver string) bool {
	operation := resourceapi.SkipNodeOperationNodePrepareResources
	if o.Operation == UnprepareOperation {
		operation = resourceapi.SkipNodeOperationNodeUnprepareResources
	}
	results := o.results(driver)
	for _, result := range results {
		if !slices.Contains(result.SkipNodeOperations, operation) && !slices.Contains(result.SkipNodeOperations, resourceapi.SkipNodeOperationAll) {
			return false
		}
	}
	return len(results) > 0
}

// refuseInUse refuses a claim that is in use.
func (o *Order) refuseInUse() []Refusal {
	users := make([]string, 0, len(o.Object.Status.ReservedFor))
	for _, user := range o.Object.Status.ReservedFor {
		users = append(users, user.Resource+"/"+user.Name)
	}
	if len(users) == 0 {
		return nil
	}
	reason := "the claim is reserved for " + strings.Join(users, ", ")
	switch {
	case o.Operation == UnprepareOperation:
		return []Refusal{{reason, "the driver takes the devices away while the pod uses them, and the kubelet does not notice: the pod has to be deleted"}}
	case o.Cleanup:
		return []Refusal{{reason, "preparing again is harmless if the driver is idempotent, but --cleanup then takes the devices away from the pod"}}
	default:
		return []Refusal{{reason, "the driver prepares what the kubelet has prepared, or is about to: a driver that is not idempotent breaks the pod"}}
	}
}

// elsewhere says that the devices are not, or may not be, on this node; empty if they are.
func (o *Order) elsewhere(snap *snapshot.Snapshot, here Place) string {
	selector := o.Object.Status.Allocation.NodeSelector
	if selector == nil {
		return ""
	}
	if here.Node == "" {
		return "the name of this node is not known, so neither is whether the claim is allocated to it"
	}
	if snap == nil || snap.Node(here.Node) == nil {
		return fmt.Sprintf("node %s is not in what was read, so whether the claim is allocated to it is not known", here.Node)
	}
	target := snap.Node(here.Node)
	switch reported := target.Status.NodeInfo.BootID; {
	case !selects(selector, target):
		return fmt.Sprintf("the claim is not allocated to node %s but to %s", here.Node, selected(snap, o))
	case reported != "" && here.BootID != "" && reported != here.BootID:
		return fmt.Sprintf("the claim is allocated to node %s, whose boot ID is not that of this machine: it is another one, or was restarted since", here.Node)
	}
	return ""
}

// selected names the nodes that a claim is allocated to, or counts them.
func selected(snap *snapshot.Snapshot, o *Order) string {
	var names []string
	for _, candidate := range snap.Nodes {
		if selects(o.Object.Status.Allocation.NodeSelector, candidate) {
			names = append(names, candidate.Name)
		}
	}
	const shown = 5
	switch {
	case len(names) == 0:
		return "a node that is not in the cluster"
	case len(names) > shown:
		return fmt.Sprintf("%d others", len(names))
	}
	return strings.Join(names, ", ")
}

// RefusedError means that an order was not carried out.
//
// +k8s:deepcopy-gen=false
type RefusedError struct {
	Order    *Order
	Refusals []Refusal
}

// Error returns the first reason.
func (e *RefusedError) Error() string {
	verb := "prepare"
	if e.Order.Operation == UnprepareOperation {
		verb = "unprepare"
	}
	text := fmt.Sprintf("%s ResourceClaim %s/%s", verb, e.Order.Claim.Namespace, e.Order.Claim.Name)
	for i, r := range e.Refusals {
		if i == 0 {
			text += ": " + r.Reason
		} else {
			text += "; " + r.Reason
		}
	}
	return text
}
