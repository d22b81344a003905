// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package driver

import (
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func TestRefuse(t *testing.T) {
	prepare := func(claim *resourceapi.ResourceClaim) *Order { return order(PrepareOperation, claim) }
	unallocated := allocated(gpu, nodeName)
	unallocated.Status.Allocation = nil
	skipping := allocated(gpu, nodeName, "gpu-0", "gpu-1")
	for i, operation := range []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationNodePrepareResources, resourceapi.SkipNodeOperationAll} {
		skipping.Status.Allocation.Devices.Results[i].SkipNodeOperations = []resourceapi.SkipNodeOperation{operation}
	}
	rebooted := cluster()
	rebooted.Nodes[0].Status.NodeInfo.BootID = "boot-9"
	same := cluster()
	same.Nodes[0].Status.NodeInfo.BootID = "boot-1"
	for name, test := range map[string]struct {
		order  *Order
		change func(o *Order)
		snap   *snapshot.Snapshot
		node   string
		// Without a reason it is not refused.
		reason, consequence string
	}{
		"on this node":   {prepare(allocated(gpu, nodeName, "gpu-0")), nil, cluster(), nodeName, "", ""},
		"by its boot ID": {prepare(allocated(gpu, nodeName, "gpu-0")), nil, same, nodeName, "", ""},
		"by its name":    {prepare(allocated(gpu, nodeName, "gpu-0")), nil, rebooted, nodeName, "node node-1, whose boot ID is not that of this machine", "may not have"},
		"on another":     {prepare(allocated(gpu, "node-2", "gpu-0")), nil, cluster(), nodeName, "not allocated to node node-1 but to node-2", "may not have"},
		"unknown node":   {prepare(allocated(gpu, nodeName, "gpu-0")), nil, cluster(), "", "name of this node is not known", "may not have"},
		"not allocated":  {prepare(unallocated), nil, cluster(), nodeName, "is not allocated", "without devices"},
		"not looked up":  {order(PrepareOperation, unallocated), func(o *Order) { o.Object = nil }, nil, nodeName, "could not be looked up", "takes devices from a pod"},
		"another UID":    {prepare(allocated(gpu, nodeName, "gpu-0")), func(o *Order) { o.Claim.UID = "uid-9" }, cluster(), nodeName, "has the UID uid-1, not uid-9", "does not exist any more"},
		"another driver": {prepare(allocated(gpu, nodeName, "gpu-0")), func(o *Order) { o.Driver = "nic.example.com" }, cluster(), nodeName, "no device of driver nic.example.com, only of gpu.example.com", "of another driver"},
		"in use":         {prepare(reservedBy(allocated(gpu, nodeName, "gpu-0"), "train-0", "pod-1")), nil, cluster(), nodeName, "reserved for pods/train-0", "not idempotent"},
		"in use, with cleanup": {
			prepare(reservedBy(allocated(gpu, nodeName, "gpu-0"), "train-0", "pod-1")), func(o *Order) { o.Cleanup = true },
			cluster(), nodeName, "reserved for pods/train-0", "takes the devices away",
		},
		"in use, to be unprepared": {
			order(UnprepareOperation, reservedBy(allocated(gpu, nodeName, "gpu-0"), "train-0", "pod-1")), nil,
			cluster(), nodeName, "reserved for pods/train-0", "while the pod uses them",
		},
		"skipped by the kubelet":    {prepare(skipping), nil, cluster(), nodeName, "does not make this call", "may not be made for"},
		"skipped for one of them":   {order(UnprepareOperation, skipping), nil, cluster(), nodeName, "", ""},
		"in use, and not this node": {prepare(reservedBy(allocated(gpu, "node-2", "gpu-0"), "train-0", "pod-1")), nil, cluster(), nodeName, "not allocated to node node-1", "may not have"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.change != nil {
				test.change(test.order)
			}
			refusals := test.order.Refuse(test.snap, Place{Node: test.node, BootID: "boot-1"})
			switch {
			case test.reason == "" && len(refusals) > 0:
				t.Errorf("refused: %+v", refusals)
			case test.reason != "" && len(refusals) == 0:
				t.Error("not refused")
			case test.reason != "" && (!strings.Contains(refusals[0].Reason, test.reason) || !strings.Contains(refusals[0].Consequence, test.consequence)):
				t.Errorf("refused: %+v", refusals)
			}
			if err := (&RefusedError{Order: test.order, Refusals: refusals}).Error(); test.reason != "" && !strings.Contains(err, test.reason) {
				t.Errorf("the error is %s", err)
			}
		})
	}
}
