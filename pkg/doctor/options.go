// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
)

// Options select the checks, and carry facts that the snapshot does not have.
type Options struct {
	checks.Choice
	// Namespace leaves out findings about other namespaces; empty leaves out nothing.
	Namespace string
	// OlderThan is the age from which on a DeviceTaintRule is a finding, [RuleAge] if it is
	// zero.
	OlderThan time.Duration
	// Probes are the results for [ProbeObjects], Reviews for [Rights], NodeReports the
	// reports of node-probe, Kubelets the gates of [KubeletNodes].
	Probes      []Probe
	Reviews     []Review
	NodeReports []*nodeprobe.Report
	Kubelets    []Kubelet
}

// Probe is the result of a dry run that sent an object to an API server.
type Probe struct {
	// Sent is the object, Stored the object that would have been stored; nil if it was
	// refused.
	Sent, Stored *unstructured.Unstructured
	// Refused gives the reason for a refusal, Unknown the reason why the result is not
	// known.
	Refused, Unknown string
}

// Right is a verb that the service account of a driver needs on a resource of the
// group resource.k8s.io, in all namespaces.
type Right struct {
	Namespace, ServiceAccount string
	Resource, Verb            string
}

// Review is the API server's answer about a right.
type Review struct {
	Right
	Allowed bool
	// Unknown says why the answer is not known.
	Unknown string
}

// Kubelet has the metrics of a node's kubelet.
type Kubelet struct {
	Node string
	// Gates are the feature gates that it knows.
	Gates map[string]bool
	// Unknown says why they are not known; empty if they are.
	Unknown string
}
