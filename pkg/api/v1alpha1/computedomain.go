// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ComputeDomain is a set of nodes whose GPUs share memory over NVLink, named by the
// configuration of a claim for the driver compute-domain.nvidia.com. A pod with such a
// claim starts once the driver has its node ready in the domain.
type ComputeDomain struct {
	// ID is the domainID of the configuration: the UID of the ComputeDomain. It is empty
	// if the configuration is wrong.
	ID string `json:"id,omitempty"`
	// Namespace and Name identify the ComputeDomain; empty if there is none of that UID, or
	// if that is not known.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Status is from the driver: Ready or NotReady; empty if it says nothing.
	Status string `json:"status,omitempty"`
	// NumNodes is the number of nodes that the domain needs to be ready, zero for any.
	NumNodes int `json:"numNodes,omitempty"`
	// JoinedNodes counts the nodes that have joined, ReadyNodes the ready ones among them.
	JoinedNodes int `json:"joinedNodes"`
	ReadyNodes  int `json:"readyNodes"`
	// Nodes are the nodes that have joined, and the nodes that the driver has called to
	// join. Lists leave them out.
	Nodes []ComputeDomainNode `json:"nodes,omitempty"`
	// Problem says why the driver cannot prepare the claim for the domain whatever its
	// nodes do: the configuration is wrong, or there is no such ComputeDomain.
	Problem string `json:"problem,omitempty"`
	// Unknown says which facts could not be read, and why.
	Unknown string `json:"unknown,omitempty"`
}

// ComputeDomainNode is a node of a ComputeDomain.
type ComputeDomainNode struct {
	Name string `json:"name"`
	// Clique is the part of the NVLink fabric that its GPUs are in. A node without one
	// shares no memory with others.
	Clique string `json:"clique,omitempty"`
	// Status is from the driver: Ready or NotReady; empty for a node that has not joined.
	Status string `json:"status,omitempty"`
	// Daemon is the pod that the driver runs on the node for the domain.
	Daemon ObjectRef `json:"daemon,omitzero"`
	// Lacks says why the node is not ready, as far as is known.
	Lacks string `json:"lacks,omitempty"`
}
