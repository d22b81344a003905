// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fit reports how many copies of a target fit in a cluster, besides its present pods.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Fit struct {
	metav1.TypeMeta `json:",inline"`

	// Target is the object that is copied.
	Target ObjectRef `json:"target"`
	// Replicas is the requested number of copies.
	Replicas int `json:"replicas"`
	// Verdict is Fits if that many fit now, DoesNotFit or Error if not, and Undetermined
	// if Now does not tell.
	Verdict Verdict `json:"verdict"`
	// Summary is one sentence.
	Summary string `json:"summary"`
	// Allocator describes the allocator that answered.
	Allocator AllocatorInfo `json:"allocator"`
	// Now is the number of copies that fit as the cluster is, Released the number once all
	// claims are released and the pods that used them are gone.
	Now      CopyCount `json:"now"`
	Released CopyCount `json:"released"`
	// Bounds says why a number depends on which nodes the scheduler takes, empty if none
	// does. The scheduler can then place fewer than AtLeast.
	Bounds []string `json:"bounds,omitempty"`
	// Next is the reason why no further copy fits, nil if that is not known.
	Next *CopyStop `json:"next,omitempty"`
	// Limits are other limits of copies, each taken alone, the tightest first.
	Limits []CopyLimit `json:"limits,omitempty"`
	// NodeCount counts all nodes. Nodes has them in groups, most copies first.
	NodeCount int         `json:"nodeCount"`
	Nodes     []CopyNodes `json:"nodes"`
	// Assumptions were not verified.
	Assumptions []string `json:"assumptions,omitempty"`
}

// CopyCount is a number of copies.
type CopyCount struct {
	// AtLeast counts the copies that were placed, each with its devices reserved, so that
	// there is room for them. Where nodes depend on each other, it is the smaller number of
	// two orders of the nodes; another order can give fewer.
	AtLeast int `json:"atLeast"`
	// AtMost is a proven upper bound, absent if there is none.
	AtMost *int `json:"atMost,omitempty"`
}

// CopyStop is the reason why a copy does not fit.
type CopyStop struct {
	// Code and Message are from the nodes that come closest, or from the condition that
	// keeps copies from all nodes.
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message"`
}

// CopyLimit is a limit of the number of copies besides devices.
type CopyLimit struct {
	// Resource is the resource that copies take: cpu, memory, pods.
	Resource string `json:"resource"`
	// Quota is the ResourceQuota that limits it, empty if the nodes do.
	Quota string `json:"quota,omitempty"`
	// Copies is the number of copies that it allows, on all nodes that take copies now or
	// once claims are released.
	Copies int `json:"copies"`
}

// CopyNodes is a group of nodes that take the same number of copies.
type CopyNodes struct {
	// Count counts the nodes, Names names them.
	Count int      `json:"count"`
	Names []string `json:"names"`
	// Now and Released are the numbers of copies that each of them takes.
	Now      int `json:"now"`
	Released int `json:"released"`
	// Code and Message say why each takes no more now.
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

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
