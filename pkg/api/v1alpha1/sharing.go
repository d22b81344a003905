// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Sharing says in which ways pods can share the devices of a DeviceClass on a cluster.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Sharing struct {
	metav1.TypeMeta `json:",inline"`

	// Source is the cluster or the file that was read.
	Source string `json:"source"`
	// Class is the name of the DeviceClass.
	Class string `json:"class"`
	// Drivers are the drivers of its devices, by name.
	Drivers []string `json:"drivers,omitempty"`
	// Devices counts the devices that the class selects, SeveralNodes the devices among them that
	// more than one node can reach.
	Devices      int `json:"devices"`
	SeveralNodes int `json:"severalNodes,omitempty"`
	// Tainted counts the devices among them with a taint that claims have to tolerate.
	Tainted int `json:"tainted,omitempty"`
	// Ways has each way to share devices, also the ways that the devices do not have.
	Ways []SharingWay `json:"ways"`
	// Assumptions are the facts that could not be read or verified.
	Assumptions []string `json:"assumptions,omitempty"`
}

// SharingMethod is a way to share devices.
type SharingMethod string

// The ways to share devices.
const (
	// SharedClaim means that several pods, or several containers of a pod, use one ResourceClaim.
	SharedClaim SharingMethod = "SharedClaim"
	// SharedCapacity means that several claims get parts of the capacity of one device, which has
	// allowMultipleAllocations.
	SharedCapacity SharingMethod = "SharedCapacity"
	// SharedPartitions means that devices are parts of one device: they draw on shared counters.
	SharedPartitions SharingMethod = "Partitions"
	// DriverSettings means that a driver is configured to share a device, by parameters of the class
	// or of a claim.
	DriverSettings SharingMethod = "DriverSettings"
)

// SharingWay is a way to share devices of a class, on a cluster.
type SharingWay struct {
	Method SharingMethod `json:"method"`
	// Available is true if the devices of the class can be shared so. Whether driver settings share a
	// device is not verified: it is true if there are any.
	Available bool `json:"available"`
	// Reason says why it is not available, empty if it is.
	Reason string `json:"reason,omitempty"`
	// FeatureGate is the feature gate that is off and without which it is not available, though the
	// devices have what it takes.
	FeatureGate string `json:"featureGate,omitempty"`
	// OtherClasses are the classes of the same drivers whose devices can be shared so, if the
	// devices of this class cannot.
	OtherClasses []string `json:"otherClasses,omitempty"`
	// Devices counts the devices of the class that can be shared so.
	Devices int `json:"devices,omitempty"`
	// MostPods is how many pods one ResourceClaim can be reserved for.
	MostPods int `json:"mostPods,omitempty"`
	// Kinds are kinds of devices with the same capacity, or the partitions of the same profile: the
	// most frequent first, at most ten.
	Kinds []SharedDevices `json:"kinds,omitempty"`
	// Settings are parameters for the drivers of the class that the class, claims or templates have.
	Settings []DriverSetting `json:"settings,omitempty"`
	// Notes are facts to know before the manifest is applied.
	Notes []string `json:"notes,omitempty"`
	// Manifest is YAML with a claim or a template and two pods that share devices so, empty if there
	// is none.
	Manifest string `json:"manifest,omitempty"`
	// Verdict is the allocator's verdict about both pods of the manifest: Fits if both fit now.
	// Summary says what keeps them from it, empty if nothing does.
	Verdict Verdict `json:"verdict,omitempty"`
	Summary string  `json:"summary,omitempty"`
	// Nodes counts the nodes where the first pod fits, NodeCount all nodes.
	Nodes     int `json:"nodes,omitempty"`
	NodeCount int `json:"nodeCount,omitempty"`
	// Now is how many such claims fit now, and Released how many once all claims are released, each
	// for a pod of its own; absent for one claim of several pods.
	Now      *CopyCount `json:"now,omitempty"`
	Released *CopyCount `json:"released,omitempty"`
}

// SharedDevices are devices of a class that can be shared in the same way.
type SharedDevices struct {
	// Driver is the driver of the devices.
	Driver string `json:"driver"`
	// Devices counts them.
	Devices int `json:"devices"`
	// Profile is the kind of partition: the value of Attribute or, if that is empty, the counters that
	// each takes. Both are empty for devices with shared capacity.
	Profile   string `json:"profile,omitempty"`
	Attribute string `json:"attribute,omitempty"`
	// Capacity lists the capacity of each of them, by name.
	Capacity []SharedQuantity `json:"capacity,omitempty"`
	// Claims is how many claims that ask for no capacity one empty device takes, or how many
	// partitions of the profile fit into it.
	Claims CopyCount `json:"claims"`
	// SmallestClaims is how many claims for the smallest amounts one empty device takes, absent if no
	// capacity has one.
	SmallestClaims *CopyCount `json:"smallestClaims,omitempty"`
}

// SharedQuantity is a capacity of a device that claims share.
type SharedQuantity struct {
	Name string `json:"name"`
	// Value is the capacity, a quantity: "80Gi".
	Value string `json:"value"`
	// Default is the amount for a claim that does not ask for it: the whole capacity without a
	// requestPolicy.
	Default string `json:"default"`
	// Smallest is the least that a claim can get; where claims can take any amount, it is half of
	// the capacity. It is empty if claims that do not ask get no more.
	Smallest string `json:"smallest,omitempty"`
	// AnyAmount is true if claims can take any amount: Smallest is half of the capacity then.
	AnyAmount bool `json:"anyAmount,omitempty"`
}

// DriverSetting is configuration for a driver. Its meaning is the driver's.
type DriverSetting struct {
	// Driver is the driver that it is for.
	Driver string `json:"driver"`
	// Objects have it: the class, templates or claims that are made from none, at most ten. Count
	// counts all.
	Objects []ObjectRef `json:"objects"`
	Count   int         `json:"count"`
	// Parameters are the parameters as they are there.
	Parameters json.RawMessage `json:"parameters"`
}
