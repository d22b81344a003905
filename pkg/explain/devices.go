// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// Inspection makes checks of devices and nodes for nobody in particular: for a
// request without selectors, tolerations and capacity, of a pod that tolerates
// nothing and needs neither CPU nor memory.
type Inspection struct {
	question *eligibility.Question
	checks   *eligibility.Checks
	// Assumptions says what could not be determined about the nodes.
	Assumptions []string
}

// NewInspection looks at devices from some nodes.
func NewInspection(c *cluster.Cluster, nodes []*corev1.Node) *Inspection {
	q := eligibility.NewQuestion(c, &corev1.Pod{}, nil)
	return &Inspection{
		question: q,
		checks: &eligibility.Checks{
			Cluster: c, Selectors: q.Selectors, Channel: c.Gates.Channel(), Catalog: q.Catalog,
			Request: &cluster.Request{Claim: &resourceapi.ResourceClaim{}, Mode: resourceapi.DeviceAllocationModeExactCount, Count: 1},
			Class:   &resourceapi.DeviceClass{},
		},
		Assumptions: unreadTexts(verdict.Survey(q, nodes)),
	}
}

// Allocator tells which allocator answers.
func (in *Inspection) Allocator() api.AllocatorInfo { return allocatorInfo(in.question) }

// Node lists what keeps the pod away from a node.
func (in *Inspection) Node(node *corev1.Node) []api.NodeMisfit {
	var list []api.NodeMisfit
	for _, u := range eligibility.Misfits(in.question, node) {
		list = append(list, api.NodeMisfit{Code: u.Code, Message: misfitText(u, in.question.Cluster.Snapshot, false), Evidence: u.Evidence()})
	}
	return list
}

// Device describes a device and lists the checks that it fails, besides that it is
// in use, from the node where it fails the fewest.
func (in *Inspection) Device(ctx context.Context, d *cluster.Device, nodes []*corev1.Node) (*api.DeviceExplanation, []api.DeviceCheck, error) {
	var best []api.DeviceCheck
	tried := false
	for _, node := range nodes {
		if !eligibility.DeviceReaches(d, node) {
			continue
		}
		if failed := in.failed(ctx, d, node); !tried || len(failed) < len(best) {
			best, tried = failed, true
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, fmt.Errorf("check device %s: %w", d.ID, err)
		}
		if len(best) == 0 {
			break
		}
	}
	if !tried {
		best = in.failed(ctx, d, nil)
	}
	return deviceFacts(in.question, d), best, nil
}

func (in *Inspection) failed(ctx context.Context, d *cluster.Device, node *corev1.Node) []api.DeviceCheck {
	var failed []api.DeviceCheck
	for _, check := range deviceChecks(ctx, in.question, in.checks, d, node) {
		if check.Outcome == api.CheckFailed && check.Code != api.DeviceAllocated {
			failed = append(failed, check)
		}
	}
	return failed
}

// Classes names the DeviceClasses that select a device.
func (in *Inspection) Classes(ctx context.Context, d *cluster.Device) []string {
	var names []string
	for _, class := range in.question.Cluster.Snapshot.Classes {
		of := *in.checks
		of.Class = class
		if of.CheckClass(ctx, d) == nil {
			names = append(names, class.Name)
		}
	}
	return names
}

// Devices answers for a target as far as the verdict and the nodes, and says how
// each of some devices fares for it. What it learns about all devices serves the next
// one. It fails like [ExplainWith].
func (in *Inspection) Devices(ctx context.Context, opts Options, devices []*cluster.Device) (*api.Explanation, []*api.DeviceExplanation, error) {
	t, err := target.Find(in.question.Cluster, opts)
	if err != nil {
		return nil, nil, err
	}
	v, err := verdict.Decide(ctx, in.question.Cluster, t, in.question.Selectors)
	if err != nil {
		return nil, nil, fmt.Errorf("explain %s: %w", t.Object.Title(), err)
	}
	x := newBuilder(v, reasonsOnly)
	x.devices = devices
	out, err := x.explanation(ctx)
	return out, x.described, err
}

// MaySelect reports whether a DeviceClass selects a device, or has a selector that fails
// for it.
func (in *Inspection) MaySelect(ctx context.Context, class *resourceapi.DeviceClass, d *cluster.Device) bool {
	of := *in.checks
	of.Class = class
	reason := of.CheckClass(ctx, d)
	return reason == nil || reason.Code != api.ClassSelectorFalse
}
