// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FitShapes reports how many more claims fit in a cluster, for each class and each shape of
// the existing claims.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type FitShapes struct {
	metav1.TypeMeta `json:",inline"`

	// Allocator describes the allocator that answered.
	Allocator AllocatorInfo `json:"allocator"`
	// NodeCount counts all nodes.
	NodeCount int `json:"nodeCount"`
	// Shapes are ordered by class, then by the number of devices.
	Shapes []ShapeFit `json:"shapes"`
	// OtherClaims counts claims and templates without a shape here: they ask for several
	// kinds of devices, for alternatives, for all devices or for admin access, or there are
	// too many different ones.
	OtherClaims int `json:"otherClaims,omitempty"`
	// Assumptions were not verified.
	Assumptions []string `json:"assumptions,omitempty"`
}

// ShapeFit reports how many more claims of a shape fit, each for a pod that needs nothing
// else and tolerates no taints of nodes.
type ShapeFit struct {
	// Shape is the request of each claim.
	Shape ClaimShape `json:"shape"`
	// Claims counts the claims of the shape. Example is one of them or a template; it is left
	// out if there is none.
	Claims  int       `json:"claims"`
	Example ObjectRef `json:"example,omitzero"`
	// Now is the number of claims that fit as the cluster is, Released the number once all
	// claims are released and the pods that used them are gone.
	Now      CopyCount `json:"now"`
	Released CopyCount `json:"released"`
	// Packed is the number of claims that fit if pods that use devices were on other nodes.
	// It is nil where that was not tried: more cannot fit, or nodes share devices.
	Packed *CopyCount `json:"packed,omitempty"`
	// Free counts the devices that claims for one of them get now, nil if that number is
	// not exact. LostPercent is the percentage of them that claims of this shape leave
	// over.
	Free        *int `json:"free,omitempty"`
	LostPercent *int `json:"lostPercent,omitempty"`
	// Move is the best of the tried moves of one pod.
	Move *PodMove `json:"move,omitempty"`
	// Stop says why none fits now, nil if one does.
	Stop *CopyStop `json:"stop,omitempty"`
}

// ClaimShape is the content of claims with one request.
type ClaimShape struct {
	// Class and Devices are the class of the request, and its count.
	Class   string `json:"class"`
	Devices int    `json:"devices"`
	// Selectors are the CEL expressions of the request.
	Selectors []string `json:"selectors,omitempty"`
	// Capacity is the capacity that the request takes of each device.
	Capacity map[string]string `json:"capacity,omitempty"`
	// Tolerations are the taints of devices that the request tolerates, key, value and
	// effect as kubectl writes them.
	Tolerations []string `json:"tolerations,omitempty"`
	// Match and Distinct are attributes that all devices have in common, or none.
	Match    []string `json:"match,omitempty"`
	Distinct []string `json:"distinct,omitempty"`
}

// PodMove is the move of a pod to another node. The allocator has found devices for its
// claims there.
type PodMove struct {
	// Namespace and Pod identify the pod.
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// Claims are the allocated claims of the pod. Nobody else uses them.
	Claims []string `json:"claims"`
	// From is its node, To the node where it fits.
	From string `json:"from"`
	To   string `json:"to"`
	// More is the number of further claims of the shape that then fit.
	More int `json:"more"`
}
