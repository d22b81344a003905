// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The names that NVIDIA's DRA driver gives to ComputeDomains
// (sigs.k8s.io/dra-driver-nvidia-gpu, api/nvidia.com/resource/v1beta1).
const (
	// ComputeDomainDriver is the name of the driver whose claims are for one.
	ComputeDomainDriver  = "compute-domain.nvidia.com"
	ComputeDomainGroup   = "resource.nvidia.com"
	ComputeDomainVersion = "v1beta1"

	KindComputeDomain = "ComputeDomain"
	KindClique        = "ComputeDomainClique"

	// ComputeDomainLabel has the UID of a ComputeDomain: on the nodes that are in it or
	// are to be, on its daemons and on its ComputeDomainCliques.
	ComputeDomainLabel = "resource.nvidia.com/computeDomain"
	// CliqueLabel has the clique of a node.
	CliqueLabel = "nvidia.com/gpu.clique"
	// ComputeDomainReady is the status of a ComputeDomain, or of a node in one, that is
	// ready.
	ComputeDomainReady = "Ready"
)

// ComputeDomain is a set of nodes whose GPUs share memory over NVLink, with what an
// explanation needs of it.
type ComputeDomain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ComputeDomainSpec   `json:"spec"`
	Status            ComputeDomainStatus `json:"status"`
}

// ComputeDomainSpec says what the domain is to be.
type ComputeDomainSpec struct {
	// NumNodes is how many nodes have to be in it before it is ready; zero for any.
	NumNodes int                   `json:"numNodes"`
	Channel  *ComputeDomainChannel `json:"channel,omitempty"`
}

// ComputeDomainChannel names the template from which pods get claims for the domain.
type ComputeDomainChannel struct {
	ResourceClaimTemplate ComputeDomainTemplate `json:"resourceClaimTemplate"`
	AllocationMode        string                `json:"allocationMode,omitempty"`
}

// ComputeDomainTemplate is the name of a ResourceClaimTemplate.
type ComputeDomainTemplate struct {
	Name string `json:"name"`
}

// ComputeDomainStatus is the driver's status of the domain.
type ComputeDomainStatus struct {
	Status string              `json:"status,omitempty"`
	Nodes  []ComputeDomainNode `json:"nodes,omitempty"`
}

// ComputeDomainNode is a node that has joined.
type ComputeDomainNode struct {
	Name      string `json:"name"`
	IPAddress string `json:"ipAddress"`
	CliqueID  string `json:"cliqueID"`
	Index     int    `json:"index"`
	Status    string `json:"status,omitempty"`
}

// DeepCopy returns a copy that shares nothing with the domain.
func (d *ComputeDomain) DeepCopy() *ComputeDomain {
	c := *d
	d.DeepCopyInto(&c.ObjectMeta)
	c.Status.Nodes = slices.Clone(d.Status.Nodes)
	if d.Spec.Channel != nil {
		c.Spec.Channel = new(*d.Spec.Channel)
	}
	return &c
}

// ComputeDomainClique has the daemons of a ComputeDomain that are in one clique. Newer
// releases of the driver write them, and copy them into the status of the domain.
type ComputeDomainClique struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Daemons           []ComputeDomainDaemon `json:"daemons,omitempty"`
}

// ComputeDomainDaemon is a node whose daemon has joined.
type ComputeDomainDaemon struct {
	NodeName  string `json:"nodeName"`
	IPAddress string `json:"ipAddress"`
	CliqueID  string `json:"cliqueID"`
	Index     int    `json:"index"`
	Status    string `json:"status,omitempty"`
}

// DeepCopy returns a copy that shares nothing with the clique.
func (q *ComputeDomainClique) DeepCopy() *ComputeDomainClique {
	c := *q
	q.DeepCopyInto(&c.ObjectMeta)
	c.Daemons = slices.Clone(q.Daemons)
	return &c
}

// ComputeDomainVersionKind returns one of the kinds of this file in the version that all of
// the driver's releases have.
func ComputeDomainVersionKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: ComputeDomainGroup, Version: ComputeDomainVersion, Kind: kind}
}
