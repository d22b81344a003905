// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
)

// Options say which checks to make, what to leave out, and what was found out besides
// the snapshot.
type Options struct {
	checks.Choice
	// Namespace leaves out findings about objects of other namespaces alone; empty leaves
	// out nothing.
	Namespace string
	// OlderThan is the age from which on a DeviceTaintRule is a finding, [RuleAge] if it
	// is zero.
	OlderThan time.Duration
	// Probes are what became of [ProbeObjects], Reviews of [Rights], NodeReports what
	// node-probe has found, Kubelets what [KubeletNodes] say of their gates.
	Probes      []Probe
	Reviews     []Review
	NodeReports []*nodeprobe.Report
	Kubelets    []Kubelet
}

// Probe is what became of an object that was sent to an API server as a dry run.
type Probe struct {
	// Sent is the object, Stored what would have been stored; nil if it was refused.
	Sent, Stored *unstructured.Unstructured
	// Refused says why it was; Unknown why it is not known.
	Refused, Unknown string
}

// Right is a verb that the service account of a driver needs on a resource of the
// group resource.k8s.io, in all namespaces.
type Right struct {
	Namespace, ServiceAccount string
	Resource, Verb            string
}

// Review is what the API server says about a right.
type Review struct {
	Right
	Allowed bool
	// Unknown says why it is not known.
	Unknown string
}

// Kubelet is what the metrics of the kubelet of a node say.
type Kubelet struct {
	Node string
	// Gates are the feature gates that it knows.
	Gates map[string]bool
	// Unknown says why they are not known; empty if they are.
	Unknown string
}
