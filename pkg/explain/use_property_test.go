// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/internal/testquestion"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestUseAgreesWithAllocator asks on random clusters about each device that a request is
// said to get but for one thing. Where the device passes every check, the allocator
// gives it to a claim with that request alone, if it has no other device. Where only
// its taints are in the way, it does so once these are gone.
func TestUseAgreesWithAllocator(t *testing.T) {
	eligible, tainted, inUse := 0, 0, 0
	for seed := range uint64(25) {
		c := fleet.Random(seed)
		alloc := testquestion.Allocator(t, c.Snapshot)
		for _, d := range alloc.Facts.Pools.Devices() {
			e, err := explain.UseOfDevice(t.Context(), alloc.Facts, d.ID.String())
			if err != nil {
				t.Fatalf("seed %d, device %s: %v", seed, d.ID, err)
			}
			use := e.Devices[0]
			if held := alloc.Facts.Usage.InUse(d.ID); held != (use.State == api.DeviceInUse && len(use.Requests) == 0) && held {
				t.Errorf("seed %d: %s is in use, and said to be %s", seed, d.ID, use.State)
			} else if held {
				inUse++
			}
			for _, r := range use.Requests {
				request := requestNamed(c, r.Claim, r.Name)
				if request == nil || r.Node == "" {
					continue
				}
				onlyTaints := len(r.Failed) == 1 && r.Failed[0].Check == "Taint"
				if len(r.Failed) > 0 && !onlyTaints {
					continue
				}
				got := allocates(t, c.Snapshot, d.Device, d.Slice, request, r.Node, onlyTaints)
				switch {
				case got == allocator.Failed && slices.Contains(c.Features, fleet.FailingSelectors):
					// A selector fails on another device.
				case got != allocator.Fits:
					t.Errorf("seed %d, device %s, request %s on %s: failed %+v, but the allocator says %s", seed, d.ID, r.Name, r.Node, r.Failed, got)
				case onlyTaints:
					tainted++
				default:
					eligible++
				}
			}
		}
	}
	t.Logf("%d eligible, %d only tainted, %d in use", eligible, tainted, inUse)
	if eligible == 0 || tainted == 0 || inUse == 0 {
		t.Error("one of the cases never came up")
	}
}

// requestNamed returns a plain request for one device of a claim, nil if the request is of
// another kind.
func requestNamed(c *fleet.Case, claim api.ObjectRef, name string) *resourceapi.DeviceRequest {
	for _, have := range c.Claims() {
		if api.RefTo(api.KindClaim, have) != claim {
			continue
		}
		for i := range have.Spec.Devices.Requests {
			r := have.Spec.Devices.Requests[i].DeepCopy()
			if r.Name == name && r.Exactly != nil && len(have.Spec.Devices.Constraints) == 0 {
				r.Exactly.AllocationMode, r.Exactly.Count = resourceapi.DeviceAllocationModeExactCount, 1
				return r
			}
		}
	}
	return nil
}

// allocates asks the allocator for one device on a node, by a request that no other
// device matches.
func allocates(t *testing.T, snap *snapshot.Snapshot, device *resourceapi.Device, in *resourceapi.ResourceSlice, request *resourceapi.DeviceRequest, node string, untainted bool) allocator.Outcome {
	t.Helper()
	amended := *snap
	amended.Slices = slices.Clone(snap.Slices)
	for i, slice := range amended.Slices {
		if slice.Name != in.Name {
			continue
		}
		slice = slice.DeepCopy()
		amended.Slices[i] = slice
		for k := range slice.Spec.Devices {
			d := &slice.Spec.Devices[k]
			if d.Name != device.Name {
				continue
			}
			if untainted {
				d.Taints = nil
			}
			if d.Attributes == nil {
				d.Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}
			}
			d.Attributes["theone"] = resourceapi.DeviceAttribute{BoolValue: ptr.To(true)}
		}
	}
	request.Exactly.Selectors = append([]resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{
		Expression: fmt.Sprintf(`device.driver == %q && "theone" in device.attributes[%q]`, in.Spec.Driver, in.Spec.Driver),
	}}}, request.Exactly.Selectors...)
	if untainted {
		amended.TaintRules = nil
	}
	claim := &resourceapi.ResourceClaim{}
	claim.Namespace, claim.Name = fleet.Namespace, "alone"
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{*request}
	alloc := testquestion.Allocator(t, &amended)
	nodes, _ := alloc.Facts.Nodes.All()
	at := slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == node })
	if at < 0 {
		t.Fatalf("no node %s", node)
	}
	return alloc.Check(t.Context(), nodes[at], []*resourceapi.ResourceClaim{claim}).Outcome
}
