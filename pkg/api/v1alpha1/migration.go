// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Migration says what has to change so that pods get from DRA drivers what device plugins give them.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Migration struct {
	metav1.TypeMeta `json:",inline"`

	// Source is the cluster or the file that was read.
	Source string `json:"source"`
	// Namespace is the namespace of the workloads and quotas; it is left out for all namespaces.
	Namespace string `json:"namespace,omitempty"`
	// Nodes are the nodes with hardware of device plugins or drivers, in groups of equal ones, the
	// largest group first.
	Nodes []MigrationNodes `json:"nodes"`
	// Workloads are the workloads that ask for extended resources, and bare pods.
	Workloads []MigrationWorkload `json:"workloads"`
	// Classes are the DeviceClasses that need one more field so that workloads stay as they are.
	Classes []MigrationClass `json:"classes,omitempty"`
	// Steps are the order in which nodes and workloads change, as the allocator decides with what
	// drivers are expected to publish. They are missing for one namespace, and Undecided says why
	// there are no more.
	Steps     []MigrationStep `json:"steps,omitempty"`
	Undecided string          `json:"undecided,omitempty"`
	// Kept are the nodes whose device plugins stay.
	Kept []MigrationKept `json:"kept,omitempty"`
	// NotMoved are the workloads that no step moves: not all of their pods fit after the last one, or
	// they are DaemonSets.
	NotMoved []ObjectRef `json:"notMoved,omitempty"`
	// Verified has a check for each step of an earlier plan, if one was given.
	Verified []MigrationCheck `json:"verified,omitempty"`
	// Quotas are the limits of extended resources.
	Quotas []MigrationQuota `json:"quotas,omitempty"`
	// Assumptions are the facts that could not be read or verified.
	Assumptions []string `json:"assumptions,omitempty"`
}

// MigrationNodes are nodes on which device plugins offer, and drivers publish, the same.
type MigrationNodes struct {
	// Count is the number of nodes, Names are the first ten.
	Count int      `json:"count"`
	Names []string `json:"names"`
	// Plugins are the extended resources of device plugins, by name.
	Plugins []PluginOffer `json:"plugins,omitempty"`
	// Drivers are the drivers with devices for one of the nodes, by name.
	Drivers []DriverOffer `json:"drivers,omitempty"`
}

// PluginOffer is the amount of an extended resource that a device plugin offers on a node.
type PluginOffer struct {
	// Resource is the name of the extended resource.
	Resource string `json:"resource"`
	// Allocatable counts what pods can get: with sharing, more than there are devices.
	Allocatable int64 `json:"allocatable"`
	// Sharing is the way in which the plugin divides devices, as far as its configuration and labels of
	// the node tell.
	Sharing PluginSharing `json:"sharing,omitempty"`
	// Contradiction says what labels of the node say about sharing or MIG, and what the configuration
	// says, where these differ.
	Contradiction string `json:"contradiction,omitempty"`
}

// PluginSharing is the way in which a device plugin divides devices.
type PluginSharing string

// Ways in which the device plugin of NVIDIA divides GPUs.
const (
	// SharingTimeSlicing means that several containers take turns on one GPU.
	SharingTimeSlicing PluginSharing = "time-slicing"
	// SharingMPS means that several containers use one GPU through MPS.
	SharingMPS PluginSharing = "mps"
	// SharingReplicas means that a GPU counts several times, and no label tells why.
	SharingReplicas PluginSharing = "replicas"
	// SharingMIG means that nvidia.com/gpu is a MIG device, by the strategy "single".
	SharingMIG PluginSharing = "mig-single"
)

// DriverOffer is the number of devices that a driver publishes for one node. Partitions count, so that
// it need not be the number of cards.
type DriverOffer struct {
	// Driver is the name of the driver.
	Driver string `json:"driver"`
	// Devices counts the devices that only this node can use.
	Devices int `json:"devices"`
	// SameAs are resources of device plugins of the node that are the same hardware, by their
	// names.
	SameAs []string `json:"sameAs,omitempty"`
}

// MigrationWay says what becomes of a workload.
type MigrationWay string

// The outcomes for workloads.
const (
	// MigrationUnchanged means that a DeviceClass serves the extended resources: nothing has to
	// change.
	MigrationUnchanged MigrationWay = "Unchanged"
	// MigrationClaims means that the workload has to ask by a ResourceClaimTemplate.
	MigrationClaims MigrationWay = "Claims"
	// MigrationUnknown means that no class or driver is known to have the hardware, or several are.
	MigrationUnknown MigrationWay = "Unknown"
	// MigrationNotPossible means that claims cannot ask for what the device plugin gives.
	MigrationNotPossible MigrationWay = "NotPossible"
)

// MigrationWorkload is a workload that asks for extended resources, or a bare pod.
type MigrationWorkload struct {
	Object ObjectRef `json:"object"`
	// Pods counts its pods.
	Pods int `json:"pods"`
	// Asks has the resources that one pod asks for, by container.
	Asks []MigrationAsk `json:"asks"`
	// Way says what becomes of it, and Reason why.
	Way    MigrationWay `json:"way"`
	Reason string       `json:"reason"`
	// Notes are facts to know before the change.
	Notes []string `json:"notes,omitempty"`
	// Verdict is the allocator's verdict about one pod with the claim, in place of the present
	// pods, and Summary says why. They are missing unless Way is Claims, and beyond 50 workloads.
	Verdict Verdict `json:"verdict,omitempty"`
	Summary string  `json:"summary,omitempty"`
	// Templates are the manifests of ResourceClaimTemplates that have to be created, one for each resource: a container cannot name two requests of
	// one claim. Edits are the changes of the workload and Commands do both; all are missing unless
	// Way is Claims.
	Templates []json.RawMessage `json:"templates,omitempty"`
	Edits     []Edit            `json:"edits,omitempty"`
	Commands  []string          `json:"commands,omitempty"`
	// Diff has the templates and the edits as a unified diff, of the fields that have to do with devices.
	// It is missing unless it was asked for.
	Diff string `json:"diff,omitempty"`
}

// MigrationClass is a DeviceClass with which workloads stay as they are, once it has their resource as
// extendedResourceName: the scheduler takes the device plugin on nodes that have one, and makes claims
// on the others.
type MigrationClass struct {
	// Class is the name of the DeviceClass, Resource the extended resource.
	Class    string `json:"class"`
	Resource string `json:"resource"`
	// Devices counts the devices that the class selects now, and Workloads the workloads that stay as
	// they are, of those that need claims else.
	Devices   int `json:"devices"`
	Workloads int `json:"workloads"`
	// Command adds the field.
	Command string `json:"command"`
}

// MigrationStep switches nodes from their device plugins to a driver, and then moves workloads.
type MigrationStep struct {
	// Nodes are the nodes, Resources the extended resources that they offer no longer.
	Nodes     []string `json:"nodes"`
	Resources []string `json:"resources"`
	// Driver publishes Devices devices for each of the nodes, as many as it does for node Like; without
	// that name, it publishes them already. No devices means that it is not known what it will publish.
	Driver  string `json:"driver"`
	Devices int    `json:"devices"`
	Like    string `json:"like,omitempty"`
	// Offered counts the devices that the device plugins offer on each of the nodes.
	Offered int `json:"offered"`
	// Evicted counts the pods with devices that leave the nodes and are created again, Deleted counts
	// pods that nothing creates again.
	Evicted int `json:"evicted"`
	Deleted int `json:"deleted,omitempty"`
	// Moves are the workloads whose pods all fit then, with claims.
	Moves []ObjectRef `json:"moves,omitempty"`
	// Waiting counts the evicted pods that have no node after this step, WaitingPods are the first
	// ten.
	Waiting     int         `json:"waiting"`
	WaitingPods []ObjectRef `json:"waitingPods,omitempty"`
	// Commands switch the nodes, and Back brings the device plugin back.
	Commands []string `json:"commands"`
	Back     []string `json:"back"`
}

// MigrationState says how far a step of an earlier plan is.
type MigrationState string

// The states of steps.
const (
	// MigrationTaken means that nodes and workloads are as the plan says.
	MigrationTaken MigrationState = "Taken"
	// MigrationNotTaken means that the step was not begun.
	MigrationNotTaken MigrationState = "NotTaken"
	// MigrationDiffers means that the step was begun, and some of it is not as the plan says.
	MigrationDiffers MigrationState = "Differs"
)

// MigrationCheck is the comparison of a step of an earlier plan with the cluster.
type MigrationCheck struct {
	// Step is the number of the step in the plan, from 1.
	Step int `json:"step"`
	// State says how far it is.
	State MigrationState `json:"state"`
	// Findings are the differences from the plan, in words.
	Findings []string `json:"findings,omitempty"`
}

// MigrationKept is a node whose device plugin stays.
type MigrationKept struct {
	// Node is the name of the node, Reason says why its device plugin stays.
	Node   string `json:"node"`
	Reason string `json:"reason"`
}

// MigrationAsk is the amount of an extended resource that a container asks for.
type MigrationAsk struct {
	Container string `json:"container"`
	// Init is true for an init container that ends before the other containers start.
	Init bool `json:"init,omitempty"`
	// Resource is the extended resource.
	Resource string `json:"resource"`
	// Count is the amount of it.
	Count int64 `json:"count"`
	// Class is the DeviceClass that serves it, empty if none is known.
	Class string `json:"class,omitempty"`
}

// MigrationQuota is a limit of an extended resource in a ResourceQuota.
type MigrationQuota struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Resource is the limited resource as the quota names it, Hard the limit.
	Resource string `json:"resource"`
	Hard     int64  `json:"hard"`
	// Becomes is the same limit for claims, empty if no class is known; Reason says why none is.
	Becomes string `json:"becomes,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Commands add the limit for claims beside the present one.
	Commands []string `json:"commands,omitempty"`
}
