// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// List is printed for several items.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type List struct {
	metav1.TypeMeta `json:",inline"`

	Items []runtime.RawExtension `json:"items"`
}

// Group counts the items of a list that have something in common.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Group struct {
	metav1.TypeMeta `json:",inline"`

	// By is the common property, as for --by; Name is its value, empty for items without one.
	By   string `json:"by"`
	Name string `json:"name"`
	// Of is the kind of the items, and Count how many there are. An item with several values
	// is in several groups.
	Of    string `json:"of"`
	Count int    `json:"count"`
	// States counts the items by state, if they have one.
	States map[string]int `json:"states,omitempty"`
	// Devices counts the devices of the items by state; it is left out for items without
	// devices of their own.
	Devices *DeviceCounts `json:"devices,omitempty"`
}

// Slice is a ResourceSlice with its state.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Slice struct {
	metav1.TypeMeta `json:",inline"`

	Name   string `json:"name"`
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	// Node is the node that the slice names, empty if it names none; Scope says
	// in words which nodes its devices are for.
	Node  string `json:"node,omitempty"`
	Scope string `json:"scope"`
	// Generation is the generation of the slice, PoolGeneration the newest of the pool.
	Generation     int64 `json:"generation"`
	PoolGeneration int64 `json:"poolGeneration"`
	// Devices counts all devices of the slice, Free the devices in state Free.
	Devices int `json:"devices"`
	Free    int `json:"free"`
	// FreeIsUpperBound is true if fewer may be free, because not everything that takes
	// devices could be read.
	FreeIsUpperBound bool `json:"freeIsUpperBound,omitempty"`
	// Counters counts the counters of its counter sets.
	Counters int `json:"counters,omitempty"`
	// State reports whether the allocator uses the slice, Reason why not.
	State  SliceState `json:"state"`
	Reason string     `json:"reason,omitempty"`
	// Created is the creation time of the slice, AgeSeconds the time from then until the
	// snapshot was taken.
	Created    *metav1.Time      `json:"created,omitempty"`
	AgeSeconds int64             `json:"ageSeconds,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
}

// SliceState reports whether the allocator uses a slice.
type SliceState string

const (
	// SliceStateCurrent means that the allocator uses the slice.
	SliceStateCurrent SliceState = "Current"
	// SliceStateEmpty means that the slice has neither devices nor counters.
	SliceStateEmpty SliceState = "Empty"
	// SliceStateObsolete means that the slice is of an older generation of its pool.
	SliceStateObsolete SliceState = "Obsolete"
	// SliceStateIncomplete means that slices of its pool are missing.
	SliceStateIncomplete SliceState = "Incomplete"
	// SliceStateInvalid means that the allocator refuses its pool.
	SliceStateInvalid SliceState = "Invalid"
	// SliceStateNodeGone means that the node of the slice does not exist.
	SliceStateNodeGone SliceState = "NodeGone"
	// SliceStateNodeNotReady means that the node of the slice is not ready. The allocator
	// uses the slice all the same.
	SliceStateNodeNotReady SliceState = "NodeNotReady"
)

// Pool is a resource pool: its newest generation, and its users.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Pool struct {
	metav1.TypeMeta `json:",inline"`

	Driver string `json:"driver"`
	Name   string `json:"name"`
	// Node is the node that all slices name, empty if there is no such node.
	Node string `json:"node,omitempty"`
	// Generation is the newest generation.
	Generation int64 `json:"generation"`
	// Slices counts the slices of that generation, Declared the slices that there should
	// be, Obsolete the slices of older generations.
	Slices   int   `json:"slices"`
	Declared int64 `json:"declared"`
	Obsolete int   `json:"obsolete,omitempty"`
	// State reports whether the allocator uses the pool, Reason why not.
	State  PoolState `json:"state"`
	Reason string    `json:"reason,omitempty"`
	// Devices counts the devices by their state.
	Devices DeviceCounts `json:"devices"`
	// Unhealthy lists unhealthy devices and their messages.
	Unhealthy []UnhealthyDevice `json:"unhealthy,omitempty"`
	// CountsFrom is the source of the counts of used devices.
	CountsFrom CountSource `json:"countsFrom"`
	// ClusterCounts are the cluster's own counts, if it was asked.
	ClusterCounts *ClusterCounts `json:"clusterCounts,omitempty"`
	// Differences say where ClusterCounts and Devices contradict each other, and why, as
	// far as that is known.
	Differences []string `json:"differences,omitempty"`
	// Counters are the shared counters, and their users.
	Counters []Counter `json:"counters,omitempty"`
	// Capacity sums up the capacity of devices that several claims can share,
	// by name.
	Capacity []Capacity `json:"capacity,omitempty"`
	// Partitions counts the devices that use counters by their type, and how many more of
	// each could be allocated.
	Partitions []Partition `json:"partitions,omitempty"`
	// Labels are the labels that all its slices have.
	Labels map[string]string `json:"labels,omitempty"`
}

// PoolState reports whether the allocator uses a pool.
type PoolState string

// States of a pool.
const (
	PoolStateUsable     PoolState = "Usable"
	PoolStateEmpty      PoolState = "Empty"
	PoolStateIncomplete PoolState = "Incomplete"
	PoolStateInvalid    PoolState = "Invalid"
	PoolStateNodeGone   PoolState = "NodeGone"
	// PoolStateUnusable means that the pool has devices, but the allocator uses none of
	// them on any node.
	PoolStateUnusable PoolState = "Unusable"
	// PoolStateNoSlices means that the pool has allocated devices and no ResourceSlices:
	// its driver is away. Slices, Declared and Generation are 0.
	PoolStateNoSlices PoolState = "NoSlices"
)

// CountSource is the source of the counts of used devices.
type CountSource string

const (
	// CountsFromClaims means that all claims were counted.
	CountsFromClaims CountSource = "Claims"
	// CountsFromVisibleClaims means that only visible claims were counted; others may have
	// devices, too.
	CountsFromVisibleClaims CountSource = "VisibleClaims"
	// CountsFromPoolStatus means that the cluster counted: the status of a
	// ResourcePoolStatusRequest (KEP-5677). An allocated device that is in no slice any
	// more counts as allocated there.
	CountsFromPoolStatus CountSource = "ResourcePoolStatusRequest"
)

// ClusterCounts are the cluster's own counts in a pool, by its rules: every device of a
// claim is allocated, shared or not; every device with a taint against scheduling is
// unavailable, allocated or not; the rest of the total is available, whether counters block
// it or not.
type ClusterCounts struct {
	// Request is the name of the ResourcePoolStatusRequest, AnsweredAt when the
	// cluster counted.
	Request    string       `json:"request"`
	AnsweredAt *metav1.Time `json:"answeredAt,omitempty"`
	// The counts are nil if the cluster could not tell, which Error explains:
	// Total, Allocated, Available and Unavailable.
	Total       *int32 `json:"total,omitempty"`
	Allocated   *int32 `json:"allocated,omitempty"`
	Available   *int32 `json:"available,omitempty"`
	Unavailable *int32 `json:"unavailable,omitempty"`
	Error       string `json:"error,omitempty"`
}

// Bound says how an uncertain count may differ.
type Bound string

const (
	// BoundAtMost means that the count may be lower.
	BoundAtMost Bound = "AtMost"
	// BoundAtLeast means that the count may be higher.
	BoundAtLeast Bound = "AtLeast"
	// BoundUnknown means that the count may be higher or lower.
	BoundUnknown Bound = "Unknown"
)

// DeviceCounts counts devices by state. Total is the sum of all states, unless some are
// bounds; the other counts are of devices that also have a state.
type DeviceCounts struct {
	// Total counts all devices.
	Total int `json:"total"`
	// Free, Allocated, Shared, Blocked, Tainted and Unusable count the devices of that
	// state, see [DeviceState]. Unhealthy counts the devices that kubelets or drivers call
	// unhealthy.
	Free      int `json:"free"`
	Allocated int `json:"allocated"`
	Shared    int `json:"shared"`
	Blocked   int `json:"blocked"`
	Tainted   int `json:"tainted"`
	Unusable  int `json:"unusable"`
	Unhealthy int `json:"unhealthy"`
	// Gone counts the allocated devices that are in no ResourceSlice any more. They are not
	// in the total of pools and classes.
	Gone int `json:"gone,omitempty"`
	// TaintedInUse counts the devices in Allocated and Shared that have a taint of effect
	// NoSchedule or NoExecute: no other pod gets them next.
	TaintedInUse int `json:"taintedInUse,omitempty"`
	// Available counts the devices in Free that a pod without tolerations and other
	// conditions could get: some node that can use them is not cordoned, has no taint and
	// room for a pod.
	Available int `json:"available,omitempty"`
	// FreeIsUpperBound is true if fewer may be free, because not everything that takes
	// devices could be read. Bounds has all uncertain counts, by their name here: "free",
	// "allocated".
	FreeIsUpperBound bool             `json:"freeIsUpperBound,omitempty"`
	Bounds           map[string]Bound `json:"bounds,omitempty"`
}

// UnhealthyDevice is a device of a pool that is not healthy.
type UnhealthyDevice struct {
	Name string `json:"name"`
	// Message is from kubelets or drivers.
	Message string `json:"message,omitempty"`
}

// Counter is one shared counter of a pool.
type Counter struct {
	// CounterSet is the name of its set.
	CounterSet string `json:"counterSet"`
	Name       string `json:"name"`
	// Total, Consumed and Available are quantities: "80Gi".
	Total     string `json:"total"`
	Consumed  string `json:"consumed"`
	Available string `json:"available"`
	// ConsumedPercent is Consumed of Total, rounded to a whole number.
	ConsumedPercent int `json:"consumedPercent"`
	// UsedBy names the devices in use that take some of it.
	UsedBy []string `json:"usedBy,omitempty"`
	// ConsumedIsLowerBound is true if claims that could not be read may consume more.
	ConsumedIsLowerBound bool `json:"consumedIsLowerBound,omitempty"`
}

// Capacity is a capacity with its use.
type Capacity struct {
	Name string `json:"name"`
	// Total, Consumed and Available are quantities: "80Gi".
	Total     string `json:"total"`
	Consumed  string `json:"consumed"`
	Available string `json:"available"`
	// ConsumedPercent is Consumed of Total, rounded to a whole number.
	ConsumedPercent int `json:"consumedPercent"`
	// ConsumedIsLowerBound is true if claims that could not be read may consume more.
	ConsumedIsLowerBound bool `json:"consumedIsLowerBound,omitempty"`
}

// Partition is a kind of device that divides shared counters.
type Partition struct {
	// Type is the value of the attribute that the driver declares for it, or the counters
	// that such devices take.
	Type string `json:"type"`
	// Attribute is the attribute with the type, empty if none is declared.
	Attribute string `json:"attribute,omitempty"`
	// Devices counts the devices of the kind, Allocated the allocated ones.
	Devices   int `json:"devices"`
	Allocated int `json:"allocated"`
	// MoreFit is the number of further devices that the allocator can place, for requests
	// that tolerate no taint; nil if that was not asked, or depends on nodes that are not
	// known.
	MoreFit *int `json:"moreFit,omitempty"`
	// MoreFitIsUpperBound is true if fewer may fit, and more may be allocated, because not
	// all claims, or rules for taints, could be read.
	MoreFitIsUpperBound bool `json:"moreFitIsUpperBound,omitempty"`
}

// Device is a device with its state and holders.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Device struct {
	metav1.TypeMeta `json:",inline"`

	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Name   string `json:"name"`
	// Slice is the ResourceSlice that publishes it, empty if none does.
	Slice string `json:"slice"`
	// Node is the node that the device is for, empty if that is not one node;
	// Scope says it in words.
	Node  string `json:"node,omitempty"`
	Scope string `json:"scope"`
	// State reports whether it is available, Reason why not.
	State  DeviceState `json:"state"`
	Reason string      `json:"reason,omitempty"`
	// Uncertain is true if the device may be in another state, because objects that may
	// take or taint it could not be read.
	Uncertain bool `json:"uncertain,omitempty"`
	// Holders are the claims that have it.
	Holders []Holder `json:"holders,omitempty"`
	// Taints are the taints of its slice and of DeviceTaintRules.
	Taints []DeviceTaint `json:"taints,omitempty"`
	// Health is from kubelets or drivers: Healthy, Unhealthy or Unknown, empty if nobody
	// says anything.
	Health string `json:"health,omitempty"`
	// HealthMessage is their message about it.
	HealthMessage string `json:"healthMessage,omitempty"`
	// Shareable devices can be allocated several times.
	Shareable bool `json:"shareable,omitempty"`
	// Attributes are by name, with the domain.
	Attributes map[string]string `json:"attributes,omitempty"`
	// Capacity is each capacity, and the part that shares have taken.
	Capacity []Capacity `json:"capacity,omitempty"`
	// Counters are the shared counters that it takes, by "set/counter".
	Counters map[string]string `json:"counters,omitempty"`
	// CompatibilityGroups are the groups that it can be in together with others.
	CompatibilityGroups []string `json:"compatibilityGroups,omitempty"`
	// BindingConditions must become true before a pod that gets it is bound.
	BindingConditions []string `json:"bindingConditions,omitempty"`
	// Labels are the labels of its slice.
	Labels map[string]string `json:"labels,omitempty"`
}

// DeviceState reports whether a device is available.
type DeviceState string

const (
	// DeviceStateFree means that an ordinary request could get the device on some node.
	DeviceStateFree DeviceState = "Free"
	// DeviceStateAllocated means that a claim has the device for itself.
	DeviceStateAllocated DeviceState = "Allocated"
	// DeviceStateShared means that at least one claim has a share of the device.
	DeviceStateShared DeviceState = "Shared"
	// DeviceStateBlocked means that other devices have used up the counters, or the
	// compatibility group, of the device.
	DeviceStateBlocked DeviceState = "Blocked"
	// DeviceStateTainted means that nobody has the device and it has a taint against
	// scheduling.
	DeviceStateTainted DeviceState = "Tainted"
	// DeviceStateUnusable means that the allocator uses the device on no node: its pool is
	// incomplete or invalid, no node can reach it, or a feature gate is off.
	DeviceStateUnusable DeviceState = "Unusable"
	// DeviceStateUnpublished means that a claim has the device, no ResourceSlice has it any
	// more, and the driver calls it Ready in the claim's status: a network driver that
	// moved an interface into a pod stops publishing it.
	DeviceStateUnpublished DeviceState = "Unpublished"
	// DeviceStateGone means that a claim has the device and no ResourceSlice has it any
	// more: its driver is away, or no longer publishes it.
	DeviceStateGone DeviceState = "Gone"
)

// Holder is a claim that has a device.
type Holder struct {
	Namespace string `json:"namespace"`
	Claim     string `json:"claim"`
	// Request is the request of the claim, "request/subrequest" for an alternative.
	Request string `json:"request"`
	// Pods are the pods that use the claim, at most ten. A pod that names the claim and
	// waits for a node is not among them.
	Pods []string `json:"pods,omitempty"`
	// PodCount counts all of them.
	PodCount    int    `json:"podCount"`
	ShareID     string `json:"shareID,omitempty"`
	AdminAccess bool   `json:"adminAccess,omitempty"`
	// ConsumedCapacity is the consumption of the share, by capacity.
	ConsumedCapacity map[string]string `json:"consumedCapacity,omitempty"`
	// Status is the driver's status of the device in the claim.
	Status *DeviceStatus `json:"status,omitempty"`
}

// DeviceStatus is a driver's status of an allocated device (KEP-4817).
type DeviceStatus struct {
	// Conditions are the conditions of the device in the status of the claim.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Odd names the types of unexpected conditions: conditions for a failed binding that
	// are true, other conditions that are not.
	Odd []string `json:"odd,omitempty"`
	// Interface, IPs and HardwareAddress are the network data, if it is a
	// network device.
	Interface       string   `json:"interface,omitempty"`
	IPs             []string `json:"ips,omitempty"`
	HardwareAddress string   `json:"hardwareAddress,omitempty"`
	// Data is the driver's own data; as a string where a key in it has more than 160 bytes.
	Data json.RawMessage `json:"data,omitempty"`
}

// DeviceTaint is a taint of a device.
type DeviceTaint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
	// Source is the object with the taint: a ResourceSlice or a DeviceTaintRule.
	Source ObjectRef `json:"source"`
	// Since is when it was added, if that is known.
	Since *metav1.Time `json:"since,omitempty"`
}

// Taint is a taint, with its source and the affected devices and pods.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Taint struct {
	metav1.TypeMeta `json:",inline"`

	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
	// Rule is the DeviceTaintRule with the taint. Without one, the driver sets the taint in
	// its slices.
	Rule string `json:"rule,omitempty"`
	// Driver is the driver of the devices, empty for a rule for several drivers. Selector
	// says in words which devices a rule selects.
	Driver   string `json:"driver,omitempty"`
	Selector string `json:"selector,omitempty"`
	// Since is when it was added, if that is known.
	Since *metav1.Time `json:"since,omitempty"`
	// Devices are the devices with the taint, as driver/pool/device.
	Devices []string `json:"devices"`
	// Claims are the claims that have such a device.
	Claims []ObjectRef `json:"claims,omitempty"`
	// Pods are the pods for which such a claim is reserved.
	Pods []TaintedPod `json:"pods,omitempty"`
	// ClaimsAreLowerBounds and PodsAreLowerBounds are true if there may be more of them,
	// because not all claims or pods could be read.
	ClaimsAreLowerBounds bool `json:"claimsAreLowerBounds,omitempty"`
	PodsAreLowerBounds   bool `json:"podsAreLowerBounds,omitempty"`
	// NextEviction is the time of the next eviction because of this taint, nil if there is
	// none; if PodsAreLowerBounds, as far as could be read.
	NextEviction *metav1.Time `json:"nextEviction,omitempty"`
	// Conditions are the conditions in the status of the rule.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Labels     map[string]string  `json:"labels,omitempty"`
}

// TaintedPod is a pod that uses a device with a taint.
type TaintedPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node,omitempty"`
	// Claim is the name of the claim with the device.
	Claim string `json:"claim"`
	// Evicted is true if the pod is evicted because of the taint, at EvictionAt if that is
	// known.
	Evicted    bool         `json:"evicted"`
	EvictionAt *metav1.Time `json:"evictionAt,omitempty"`
	// TolerationSeconds is the time for which it tolerates the taint, nil if it does so
	// forever or not at all.
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
	// Anyway is the first eviction because of another taint, nil if there is none.
	Anyway *OtherEviction `json:"anyway,omitempty"`
}

// OtherEviction is another reason for which a pod is evicted, besides the given taint.
type OtherEviction struct {
	// Taint is KEY[=VALUE]:EFFECT, Device the device with it, as driver/pool/device, and
	// Source the object with the taint: a ResourceSlice or a DeviceTaintRule.
	Taint  string    `json:"taint"`
	Device string    `json:"device"`
	Source ObjectRef `json:"source"`
	// At is the time of the eviction.
	At metav1.Time `json:"at"`
}

// Class is a DeviceClass with its devices.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Class struct {
	metav1.TypeMeta `json:",inline"`

	Name string `json:"name"`
	// Selectors are the CEL expressions; a device must match all of them.
	Selectors []string `json:"selectors,omitempty"`
	// Devices counts the matching devices, Free the free ones among them.
	Devices int `json:"devices"`
	Free    int `json:"free"`
	// FreeIsUpperBound is true if fewer may be free, because not everything that takes
	// devices could be read.
	FreeIsUpperBound bool `json:"freeIsUpperBound,omitempty"`
	// DeviceCounts counts the matching devices by their state.
	DeviceCounts DeviceCounts `json:"deviceCounts"`
	// Failing counts devices on which a selector fails, Failure is one of the errors.
	// Failures has all errors.
	Failing  int               `json:"failing,omitempty"`
	Failure  string            `json:"failure,omitempty"`
	Failures []SelectorFailure `json:"failures,omitempty"`
	// Drivers are the drivers of the matching devices.
	Drivers []string `json:"drivers,omitempty"`
	// DevicesAreLowerBounds is true if there may be more devices, because not all slices
	// could be read.
	DevicesAreLowerBounds bool `json:"devicesAreLowerBounds,omitempty"`
	// Claims counts the claims with a request for the class, Allocated the claims among
	// them that have devices for it, of alternatives if this one was taken.
	Claims    int `json:"claims"`
	Allocated int `json:"allocated"`
	// ClaimsAreLowerBounds is true if there may be more of both, because not all claims
	// could be read.
	ClaimsAreLowerBounds bool `json:"claimsAreLowerBounds,omitempty"`
	// Placeable counts the claims for one device of the class that the allocator can place
	// now, each beside the others, for pods without tolerations.
	Placeable CopyCount `json:"placeable"`
	// PlaceableNodes counts the nodes where Placeable are, by their number on a node, the most
	// first.
	PlaceableNodes []PlaceableNodes `json:"placeableNodes,omitempty"`
	// Waiting counts the pods that wait for devices of the class; WaitingIsUnknown is true if
	// pods could not be read.
	Waiting          int  `json:"waiting"`
	WaitingIsUnknown bool `json:"waitingIsUnknown,omitempty"`
	// ExtendedResource is the resource that it serves, besides
	// deviceclass.resource.kubernetes.io/NAME.
	ExtendedResource string `json:"extendedResource,omitempty"`
	// PluginNodes are nodes where a device plugin advertises the same resource.
	PluginNodes []string `json:"pluginNodes,omitempty"`
	// ExtendedResources are the resources that the class serves, node by node. The implicit
	// name is only listed if it is in use.
	ExtendedResources []ExtendedResource `json:"extendedResources,omitempty"`
	Labels            map[string]string  `json:"labels,omitempty"`
}

// ExtendedResource is a resource that containers ask for by name and number, served by
// device plugins, which register it with their nodes, or by a DeviceClass (KEP-5004).
type ExtendedResource struct {
	Name string `json:"name"`
	// Class is the DeviceClass that names it, empty if there is none: then there
	// are only device plugins.
	Class string `json:"class,omitempty"`
	// Problem says why the class does not serve the resource.
	Problem string `json:"problem,omitempty"`
	// Nodes are the nodes where a device plugin or the class has some, or had.
	Nodes []ResourceOnNode `json:"nodes,omitempty"`
}

// ResourceOnNode is an extended resource on one node, from the device plugin and from DRA.
type ResourceOnNode struct {
	Node string `json:"node"`
	// ServedBy is the server that the scheduler uses there, empty if nobody has any.
	ServedBy ResourceServer `json:"servedBy,omitempty"`
	// PluginCapacity is the number that a device plugin has registered, PluginAllocatable
	// the healthy part.
	PluginCapacity    int64 `json:"pluginCapacity"`
	PluginAllocatable int64 `json:"pluginAllocatable"`
	// Requested is the number that the pods on the node request, as the scheduler adds it
	// up, nil if it is not known; RequestedOfDRA is the part that devices of claims serve.
	Requested      *int64 `json:"requested,omitempty"`
	RequestedOfDRA int64  `json:"requestedOfDRA,omitempty"`
	// Devices counts the devices of the class that the allocator looks at for this node,
	// Free the free ones among them. Devices that several nodes can reach count for each of
	// them.
	Devices int `json:"devices"`
	Free    int `json:"free"`
}

// ResourceServer serves an extended resource on a node.
type ResourceServer string

const (
	// ServedByPlugin means that the node has a device plugin. The scheduler takes the
	// resource from that alone, even if it is used up, and devices of the class are for
	// claims.
	ServedByPlugin ResourceServer = "DevicePlugin"
	// ServedByDRA means that no device plugin serves the resource on the node.
	ServedByDRA ResourceServer = "DRA"
)

// SelectorFailure is an error of a selector.
type SelectorFailure struct {
	// Error names the selector by its place in the list, from 1.
	Error string `json:"error"`
	// Count is the number of devices with this error, Devices has the first ten of them as
	// driver/pool/device.
	Count   int      `json:"count"`
	Devices []string `json:"devices"`
	// Unending is true if the expression does not end on these devices. It is not
	// known whether they match.
	Unending bool `json:"unending,omitempty"`
}

// Branch is a part of a tree: an object, remarks about it, and the branches below it.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Branch struct {
	metav1.TypeMeta `json:",inline"`

	// Of is the kind of the object: Pod, ResourceClaim, Request, Device, ResourceSlice,
	// Pool, Node, DeviceClass, ExtendedResource, ComputeDomain.
	Of        string `json:"of"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Notes are short remarks: state, health, taints, addresses.
	Notes []string `json:"notes,omitempty"`
	// Uncertain is true for a device that may be in another state, see
	// [Device.Uncertain]. The first note then ends with a question mark.
	Uncertain bool `json:"uncertain,omitempty"`
	// Resource is set for an extended resource on a node.
	Resource *ResourceOnNode `json:"resource,omitempty"`
	// Branches are the branches below it.
	Branches []Branch `json:"branches,omitempty"`
}

// ListedNode is a node with its devices by class, its drivers and its problems.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ListedNode struct {
	metav1.TypeMeta `json:",inline"`

	Name string `json:"name"`
	// State is Ready, NotReady or Gone; empty if it is not known.
	State string `json:"state,omitempty"`
	// Cordoned is true if its spec.unschedulable is set. Taints are the taints of the
	// node itself that keep pods without a toleration away, as "key=value:effect".
	Cordoned bool     `json:"cordoned,omitempty"`
	Taints   []string `json:"taints,omitempty"`
	// Devices counts the devices for the node alone by state.
	Devices DeviceCounts `json:"devices"`
	// Classes counts the devices of the node by DeviceClass; a device may be of several.
	Classes []NodeClass `json:"classes,omitempty"`
	// Drivers are the drivers that publish devices for the node, or should.
	Drivers []NodeDriver `json:"drivers,omitempty"`
	// Pods counts the pods on the node that use claims; finished pods do not count.
	Pods int `json:"pods"`
	// Problems says what somebody should look at, besides the state of the node.
	Problems []NodeProblem `json:"problems,omitempty"`
	// Labels are the labels of the node.
	Labels map[string]string `json:"labels,omitempty"`
}

// NodeClass counts the devices of a node that a DeviceClass selects.
type NodeClass struct {
	// Class is the name of the DeviceClass, and Devices counts its devices by state.
	Class   string       `json:"class"`
	Devices DeviceCounts `json:"devices"`
	// Placeable counts the claims for one device that the allocator can place on the node now.
	Placeable int `json:"placeable"`
}

// NodeDriver is a driver of a node.
type NodeDriver struct {
	// Driver is the name of the driver.
	Driver string `json:"driver"`
	// Devices counts the devices that it publishes for the node alone.
	Devices int `json:"devices"`
	// Version is the value that its devices have of the attribute driverVersion.
	Version string `json:"version,omitempty"`
	// Image is the version of the image of its pod on the node.
	Image string `json:"image,omitempty"`
}

// NodeProblem is something of a node that somebody should look at.
type NodeProblem struct {
	// Code says what it is.
	Code NodeProblemCode `json:"code"`
	// Driver and Pool name the driver and the pool of the devices, if there is one.
	Driver string `json:"driver,omitempty"`
	Pool   string `json:"pool,omitempty"`
	// Count counts the devices; 0 if it is not about devices.
	Count int `json:"count,omitempty"`
	// Since is when it began, for a node that is cordoned or not ready, if that is recorded.
	Since *metav1.Time `json:"since,omitempty"`
	// Pod is the driver's pod that runs on a node without slices.
	Pod ObjectRef `json:"pod,omitzero"`
	// Message says it in a few words.
	Message string `json:"message"`
}

// NodeProblemCode names a kind of problem of a node.
type NodeProblemCode string

const (
	// NodePoolBroken means that a pool for the node is neither usable nor empty.
	NodePoolBroken NodeProblemCode = "PoolBroken"
	// NodeDevicesTainted means that devices have a taint against scheduling.
	NodeDevicesTainted NodeProblemCode = "DevicesTainted"
	// NodeDevicesUnhealthy means that devices are unhealthy.
	NodeDevicesUnhealthy NodeProblemCode = "DevicesUnhealthy"
	// NodeIsCordoned means that the node has devices and takes no new pods. Count counts the
	// devices that no claim uses.
	NodeIsCordoned NodeProblemCode = "Cordoned"
	// NodeIsNotReady means that the node has devices and its kubelet does not report it ready.
	// Count counts the devices that no claim uses.
	NodeIsNotReady NodeProblemCode = "NotReady"
	// NodeSlicesMissing means that a driver publishes nothing for the node although its pod
	// runs there, or although it does so for most nodes with the same labels.
	NodeSlicesMissing NodeProblemCode = "SlicesMissing"
)
