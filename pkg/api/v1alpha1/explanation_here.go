// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// WhyHere explains a pod's node and devices: it has the scheduler's options if it had to
// place the pod again, in the cluster as it is now, with the devices of the pod released.
type WhyHere struct {
	// Node is the node of the pod.
	Node string `json:"node"`
	// FitsHere is set if the pod would fit on its node again.
	FitsHere bool `json:"fitsHere"`
	// Nodes puts every node into exactly one group, as in Explanation.nodes. Which of the
	// fitting nodes the scheduler takes depends on the scores of all its plugins.
	Nodes []NodeGroup `json:"nodes,omitempty"`
	// NodeCount counts the nodes in all groups.
	NodeCount int `json:"nodeCount"`
	// NotEvaluated lists features of the pod that may keep it from nodes and were not
	// evaluated.
	NotEvaluated []string `json:"notEvaluated,omitempty"`
	// Alternatives has the requests with a prioritized list.
	Alternatives []ChosenAlternative `json:"alternatives,omitempty"`
	// Smaller has the devices for which a smaller one would be enough.
	Smaller []SmallerDevice `json:"smaller,omitempty"`
}

// ChosenAlternative is the alternative of a prioritized list that a claim got.
type ChosenAlternative struct {
	// Claim and Request name the request.
	Claim   string `json:"claim"`
	Request string `json:"request"`
	// Chosen is the name of the alternative, Position its place in the list, from 1.
	Chosen   string `json:"chosen"`
	Position int    `json:"position"`
	// Count counts the alternatives of the list.
	Count int `json:"count"`
	// Earlier are the alternatives before it.
	Earlier []EarlierAlternative `json:"earlier,omitempty"`
}

// EarlierAlternative is an alternative that was passed over.
type EarlierAlternative struct {
	// Name is the name of the alternative, with its request.
	Name string `json:"name"`
	// FitsNow is set if it is available on the node now: something has changed since.
	FitsNow bool `json:"fitsNow,omitempty"`
	// Code and Message say why it could not.
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// SmallerDevice means that a larger device than required was allocated.
type SmallerDevice struct {
	// Claim and Request name the request.
	Claim   string `json:"claim"`
	Request string `json:"request"`
	// Device is the device of the claim, Instead the device that the allocator picks if
	// that one is missing; both as driver/pool/device.
	Device  string `json:"device"`
	Instead string `json:"instead"`
	// Capacities are the capacities in which they differ.
	Capacities []CapacityDifference `json:"capacities"`
}

// CapacityDifference is a capacity of two devices.
type CapacityDifference struct {
	Name string `json:"name"`
	// Device is the capacity of the claim's device, Instead the capacity of the other one.
	Device  string `json:"device"`
	Instead string `json:"instead"`
}
