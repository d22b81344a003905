// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"
	"strconv"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// Item is one line of any inventory.
type Item interface {
	runtime.Object
	// Names are what the item can be asked for by, the full one first.
	Names() []string
	// Space is the namespace, empty for what has none.
	Space() string
	// LabelSet are the labels of the object that it comes from, or the common
	// ones of several.
	LabelSet() labels.Set
	// Fields are what a field selector can choose by. Which there are is the
	// same for all items of a kind.
	Fields() fields.Set
	// FieldValues are the values of those fields that have a fixed set, the same
	// for all items of a kind.
	FieldValues() map[string][]string
	// Ageless is a copy without what changes by time alone.
	Ageless() any
}

// List is what a printer gets for several items.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type List struct {
	metav1.TypeMeta `json:",inline"`

	Items []runtime.RawExtension `json:"items"`
}

// NewList makes a list of items of one kind, such as "Device".
func NewList(kind string, items []Item) *List {
	list := &List{TypeMeta: TypeMeta(kind + "List"), Items: make([]runtime.RawExtension, 0, len(items))}
	for _, item := range items {
		list.Items = append(list.Items, runtime.RawExtension{Object: item})
	}
	return list
}

// Names are the slice's name.
func (in *Slice) Names() []string { return []string{in.Name} }

// Space is empty.
func (in *Slice) Space() string { return "" }

// LabelSet are the labels of the ResourceSlice.
func (in *Slice) LabelSet() labels.Set { return in.Labels }

// Fields include those that the API server knows for ResourceSlices.
func (in *Slice) Fields() fields.Set {
	return fields.Set{
		"metadata.name": in.Name, "spec.driver": in.Driver, "spec.nodeName": in.Node, "spec.pool.name": in.Pool,
		"driver": in.Driver, "pool": in.Pool, "node": in.Node, "state": string(in.State),
	}
}

// Names are driver/pool and the pool's name alone.
func (in *Pool) Names() []string { return []string{in.Driver + "/" + in.Name, in.Name} }

// Space is empty.
func (in *Pool) Space() string { return "" }

// LabelSet are the labels that all ResourceSlices of the pool have.
func (in *Pool) LabelSet() labels.Set { return in.Labels }

// Fields tell where the pool is from and whether it is usable.
func (in *Pool) Fields() fields.Set {
	return fields.Set{"driver": in.Driver, "pool": in.Name, "node": in.Node, "state": string(in.State)}
}

// Names are driver/pool/device, pool/device and the device's name alone.
func (in *Device) Names() []string {
	return []string{in.Driver + "/" + in.Pool + "/" + in.Name, in.Pool + "/" + in.Name, in.Name}
}

// Space is empty.
func (in *Device) Space() string { return "" }

// LabelSet are the labels of the device's ResourceSlice.
func (in *Device) LabelSet() labels.Set { return in.Labels }

// Fields tell where the device is from and whether it is available.
func (in *Device) Fields() fields.Set {
	return fields.Set{"driver": in.Driver, "pool": in.Pool, "device": in.Name, "node": in.Node, "state": string(in.State), "uncertain": strconv.FormatBool(in.Uncertain), "health": in.Health}
}

// Names are the claim's name and namespace/name.
func (in *Claim) Names() []string { return []string{in.Name, in.Namespace + "/" + in.Name} }

// Space is the claim's namespace.
func (in *Claim) Space() string { return in.Namespace }

// LabelSet are the labels of the ResourceClaim.
func (in *Claim) LabelSet() labels.Set { return in.Labels }

// Fields include those that the API server knows for every object.
func (in *Claim) Fields() fields.Set {
	return fields.Set{"metadata.name": in.Name, "metadata.namespace": in.Namespace, "state": string(in.State), "node": in.Node}
}

// Names are key=value:effect, and the name of the rule.
func (in *Taint) Names() []string {
	taint := resourceapi.DeviceTaint{Key: in.Key, Value: in.Value, Effect: resourceapi.DeviceTaintEffect(in.Effect)}
	names := []string{taint.String(), in.Key}
	if in.Rule != "" {
		names = append(names, in.Rule)
	}
	return names
}

// Space is empty.
func (in *Taint) Space() string { return "" }

// LabelSet are the labels of the DeviceTaintRule, if it comes from one.
func (in *Taint) LabelSet() labels.Set { return in.Labels }

// Fields tell what the taint is and where it comes from.
func (in *Taint) Fields() fields.Set {
	return fields.Set{"key": in.Key, "value": in.Value, "effect": in.Effect, "rule": in.Rule, "driver": in.Driver}
}

// Names are the class's name.
func (in *Class) Names() []string { return []string{in.Name} }

// Space is empty.
func (in *Class) Space() string { return "" }

// LabelSet are the labels of the DeviceClass.
func (in *Class) LabelSet() labels.Set { return in.Labels }

// Fields include those that the API server knows for every object.
func (in *Class) Fields() fields.Set {
	return fields.Set{"metadata.name": in.Name, "extendedResource": in.ExtendedResource}
}

// NewForest makes a list of trees.
func NewForest(trees []Branch) *List {
	list := &List{TypeMeta: TypeMeta("BranchList"), Items: make([]runtime.RawExtension, 0, len(trees))}
	for i := range trees {
		trees[i].TypeMeta = TypeMeta("Branch")
		list.Items = append(list.Items, runtime.RawExtension{Object: &trees[i]})
	}
	return list
}

// Ageless is a copy without the age.
func (in *Slice) Ageless() any { out := *in; out.AgeSeconds = 0; return out }

// Ageless is a copy.
func (in *Pool) Ageless() any { return *in }

// Ageless is a copy.
func (in *Device) Ageless() any { return *in }

// Ageless is a copy without the age.
func (in *Claim) Ageless() any { out := *in; out.AgeSeconds = 0; return out }

// Ageless is a copy.
func (in *Taint) Ageless() any { return *in }

// Ageless is a copy.
func (in *Class) Ageless() any { return *in }

// TypeMeta is that of an object of this kind, such as "Device".
func TypeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: APIVersion, Kind: kind}
}

// Bounded reports whether something about the slice is not certain.
func (in *Slice) Bounded() bool { return in.FreeIsUpperBound }

// Bounded reports whether something about the pool is not certain.
func (in *Pool) Bounded() bool { return len(in.Devices.Bounds) > 0 }

// Bounded reports whether something about the device is not certain.
func (in *Device) Bounded() bool { return in.Uncertain }

// Bounded reports whether something about the class is not certain.
func (in *Class) Bounded() bool {
	return in.FreeIsUpperBound || in.ClaimsAreLowerBounds || in.DevicesAreLowerBounds
}

// Bounded reports whether something about the taint is not certain.
func (in *Taint) Bounded() bool { return in.ClaimsAreLowerBounds || in.PodsAreLowerBounds }

// Bounded reports whether something in the tree is not certain.
func (in *Branch) Bounded() bool {
	return in.Uncertain || slices.ContainsFunc(in.Branches, func(inner Branch) bool { return inner.Bounded() })
}
