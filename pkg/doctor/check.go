// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe"
)

// Repeats says what else says the same as the findings of a check.
type Repeats int

const (
	// RepeatsNothing is for findings that stand alone.
	RepeatsNothing Repeats = iota
	// RepeatsPods is for findings about pods that wait, are blocked or are refused: their
	// explanations say more.
	RepeatsPods
	// RepeatsTaint is for findings about the taint of a device.
	RepeatsTaint
	// RepeatsRule is for findings about a whole DeviceTaintRule.
	RepeatsRule
	// RepeatsDevices is for findings about classes without devices, since the findings about
	// the devices say why.
	RepeatsDevices
)

// Check is a check for one kind of problem of a cluster.
type Check struct {
	// Code is stable: "DRA", the number of the group, and the number of the check in it.
	Code string
	// Title names the problem in a few words.
	Title string
	// Severity is the severity of its findings.
	Severity api.Severity
	// Needs are the resources that the check needs, by their names in gaps.
	Needs []string
	// About says what the problem means, Advice how to solve it, both for the documents.
	About, Advice string
	// Repeats says what else says the same as its findings.
	Repeats Repeats

	// Flag is required to make the check; empty for most.
	Flag string
	// given reports whether the input of the check was given; nil for checks of the cluster
	// alone.
	given func(*Options) bool
	find  func(context.Context, *cluster) ([]api.Finding, error)
}

// run makes the check. Missing resources are a finding of their own.
func (c *Check) run(ctx context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	var missing []string
	for _, resource := range c.Needs {
		if gap := in.cluster.Snapshot.Gap(resource); gap != nil && !slices.Contains(missing, gap.Reason) {
			missing = append(missing, gap.Reason)
		}
	}
	if len(missing) > 0 {
		found = []api.Finding{{Severity: api.SeverityUnknown, Message: "not checked: " + strings.Join(missing, "; ")}}
	} else {
		var err error
		if found, err = c.find(ctx, in); err != nil {
			return nil, err
		}
	}
	for i := range found {
		found[i].Code, found[i].Title = c.Code, c.Title
		if found[i].Severity == "" {
			found[i].Severity = c.Severity
		}
	}
	return found, nil
}

// CodeUnregistered is the code of the check of registrations, which depends on events
// alone.
const CodeUnregistered = "DRA1107"

// maxObjects limits how many objects, and how many pieces of evidence, a diagnosis names for a
// finding.
const maxObjects = 10

// cluster is the input of checks.
type cluster struct {
	opts    *Options
	cluster *facts.Cluster

	inventory *inventory.Inventory
	// Results that are computed once: the inventory, the pods that have devices and do not
	// work, and the answers for the pods that wait for devices.
	claims  func() []api.Claim
	blocked func() []lifecycle.BlockedPod
	classes func(context.Context) ([]api.Class, error)
	// explained has an answer for each of [facts.Cluster.Waiting].
	explained func(context.Context) ([]explain.Answer, error)
}

// answers lists the explanations of the pods that wait for devices.
func (in *cluster) answers(ctx context.Context) ([]*api.Explanation, error) {
	explained, err := in.explained(ctx)
	found := make([]*api.Explanation, 0, len(explained))
	for _, answer := range explained {
		if answer.Err == nil {
			found = append(found, answer.Explanation)
		}
	}
	return found, err
}

// once keeps the first result without an error.
func once[T any](find func(context.Context) (T, error)) func(context.Context) (T, error) {
	var found T
	known := false
	return func(ctx context.Context) (T, error) {
		if known {
			return found, nil
		}
		var err error
		found, err = find(ctx)
		known = err == nil
		return found, err
	}
}

// Kinds of objects with findings, besides the kinds in pkg/api.
const (
	kindSlice = "ResourceSlice"
	kindClass = "DeviceClass"
	kindRule  = "DeviceTaintRule"
	kindQuota = "ResourceQuota"
	// kindPool is no kind of the API: pools are named by driver and pool.
	kindPool = "Pool"
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
