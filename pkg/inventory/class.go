// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Classes lists all DeviceClasses by name, with the devices that they select.
func (v *Inventory) Classes(ctx context.Context) ([]api.Class, error) {
	return describedIn(v.cluster).classes.of(func() ([]api.Class, error) { return describeClasses(ctx, v.counter) })
}

func describeClasses(ctx context.Context, n *deviceCounter) ([]api.Class, error) {
	evaluator := n.cluster.Gates.Selectors()
	classes := make([]api.Class, 0, len(n.cluster.Snapshot.Classes))
	for _, class := range n.cluster.Snapshot.Classes {
		described, err := describeClass(ctx, n, evaluator, class)
		if err != nil {
			return nil, err
		}
		classes = append(classes, described)
	}
	waiting := map[string]int{}
	for _, pod := range n.cluster.Waiting() {
		for _, class := range AskedClasses(asksOf(n.cluster, pod)) {
			waiting[class]++
		}
	}
	for i := range classes {
		classes[i].Waiting = waiting[classes[i].Name]
	}
	return classes, nil
}

func describeClass(ctx context.Context, n *deviceCounter, evaluator *selector.Evaluator, class *resourceapi.DeviceClass) (api.Class, error) {
	out := api.Class{
		TypeMeta: typeMeta("Class"), Name: class.Name, Labels: class.Labels,
		ExtendedResource: ptr.Deref(class.Spec.ExtendedResourceName, ""),
	}
	for _, s := range class.Spec.Selectors {
		if s.CEL != nil {
			out.Selectors = append(out.Selectors, s.CEL.Expression)
		}
	}
	chosen, err := choose(ctx, n.cluster, evaluator, class.Spec.Selectors)
	if err != nil {
		return out, err
	}
	out.Devices, out.Failures = len(chosen.devices), chosen.failures
	for i := range out.Failures {
		out.Failing += out.Failures[i].Count
	}
	if len(out.Failures) > 0 {
		out.Failure = FailureText(&out.Failures[0])
	}
	for _, d := range chosen.devices {
		state := n.countDevice(&out.DeviceCounts, d)
		if state == api.DeviceStateFree {
			out.Free++
			out.FreeIsUpperBound = n.notRead.uncertain(state)
		}
		if !slices.Contains(out.Drivers, d.ID.Driver) {
			out.Drivers = append(out.Drivers, d.ID.Driver)
		}
	}
	for _, claim := range n.cluster.Snapshot.Claims {
		if !asksFor(claim, class.Name) {
			continue
		}
		out.Claims++
		if tookFrom(claim, class.Name) {
			out.Allocated++
		}
	}
	n.addGone(&out.DeviceCounts, func(d *api.Device) bool {
		return slices.ContainsFunc(d.Holders, func(h api.Holder) bool {
			return requestedClass(n.cluster.Snapshot.Claim(h.Namespace, h.Claim), h.Request) == class.Name
		})
	})
	out.DeviceCounts.FreeIsUpperBound = out.FreeIsUpperBound
	out.ClaimsAreLowerBounds = n.notRead.claims
	out.DevicesAreLowerBounds = n.notRead.slices
	out.WaitingIsUnknown = n.notRead.pods || n.cluster.Snapshot.Gap(snapshot.ResourceTemplates) != nil
	out.PluginNodes = pluginNodes(n.cluster, class)

	resources := resourceFinder{n.eligible, selections{class.Name: chosen.selection()}}
	out.ExtendedResources, err = resources.of(ctx, class)
	return out, err
}

// tookFrom reports whether a claim has devices for a request for a class, of
// alternatives for that one.
func tookFrom(claim *resourceapi.ResourceClaim, class string) bool {
	if claim.Status.Allocation == nil {
		return false
	}
	return slices.ContainsFunc(claim.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool {
		return r.Exactly != nil && r.Exactly.DeviceClassName == class ||
			slices.ContainsFunc(r.FirstAvailable, func(s resourceapi.DeviceSubRequest) bool {
				return s.DeviceClassName == class && slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(result resourceapi.DeviceRequestAllocationResult) bool {
					return result.Request == resourceclaim.CreateSubRequestRef(r.Name, s.Name)
				})
			})
	})
}

// requestedClass returns the class that a request of a claim, or one of its alternatives,
// is for.
func requestedClass(claim *resourceapi.ResourceClaim, request string) string {
	if claim == nil {
		return ""
	}
	for _, r := range claim.Spec.Devices.Requests {
		if r.Exactly != nil && r.Name == request {
			return r.Exactly.DeviceClassName
		}
		for _, s := range r.FirstAvailable {
			if resourceclaim.CreateSubRequestRef(r.Name, s.Name) == request {
				return s.DeviceClassName
			}
		}
	}
	return ""
}

// pluginNodes lists the nodes where a device plugin advertises the extended
// resource of a class.
func pluginNodes(facts *cluster.Cluster, class *resourceapi.DeviceClass) []string {
	names := []corev1.ResourceName{corev1.ResourceName(resourceapi.ResourceDeviceClassPrefix + class.Name)}
	if name := class.Spec.ExtendedResourceName; name != nil {
		names = append(names, corev1.ResourceName(*name))
	}
	var nodes []string
	for _, node := range facts.Snapshot.Nodes {
		if slices.ContainsFunc(names, func(name corev1.ResourceName) bool {
			quantity, ok := node.Status.Allocatable[name]
			return ok && !quantity.IsZero()
		}) {
			nodes = append(nodes, node.Name)
		}
	}
	return nodes
}
