// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// taker is a claim that got devices, and the pod that uses it; nil if none is known.
type taker struct {
	claim *resourceapi.ResourceClaim
	pod   *corev1.Pod
}

// node returns the node of the devices, or of the pod; it is empty if neither is known.
func (t *taker) node() string {
	node := cluster.AllocatedNode(t.claim.Status.Allocation)
	if node == "" && t.pod != nil {
		node = t.pod.Spec.NodeName
	}
	return node
}

// taken returns the claims that got devices since the snapshot before which the target could have
// used: each passes every check of one of its requests where the claim did not get it.
func (h *history) taken(ctx context.Context, before *snapshot.Snapshot) ([]api.TakenDevices, error) {
	takers := h.takers(before)
	if len(takers) == 0 {
		return nil, nil
	}
	var refs []api.ObjectRef
	for _, t := range takers {
		refs = append(refs, api.RefTo(api.KindClaim, t.claim))
		if t.pod != nil {
			refs = append(refs, api.RefTo(api.KindPod, t.pod))
		}
	}
	without := h.cluster.Amended(whatif.Restore(h.cluster.Snapshot, before, refs, false))
	var list []api.TakenDevices
	for _, t := range takers {
		devices, err := h.usable(ctx, without, t)
		if err != nil {
			return nil, err
		}
		if len(devices) > 0 {
			list = append(list, h.describe(t, devices))
		}
	}
	return list, nil
}

// takers returns the claims of others that got devices since a snapshot.
func (h *history) takers(before *snapshot.Snapshot) []taker {
	var list []taker
	now := h.cluster.Snapshot
	for was, is := range snapshot.Changes(before.Claims, now.Claims) {
		had := was != nil && is != nil && was.UID == is.UID && was.Status.Allocation != nil
		if is == nil || is.Status.Allocation == nil || had || h.state.uses(api.RefTo(api.KindClaim, is)) {
			continue
		}
		t := taker{claim: is}
		for _, consumer := range is.Status.ReservedFor {
			if consumer.Resource == "pods" && t.pod == nil {
				t.pod = now.Pod(is.Namespace, consumer.Name)
			}
		}
		if users := lifecycle.PodsUsing(now, is); t.pod == nil && len(users) == 1 {
			t.pod = users[0]
		}
		list = append(list, t)
	}
	return list
}

// usable returns the devices of a claim that the target could use in a cluster.
func (h *history) usable(ctx context.Context, c *cluster.Cluster, t taker) ([]api.AllocatedDevice, error) {
	var results []api.AllocatedDevice
	var devices []*cluster.Device
	for i := range t.claim.Status.Allocation.Devices.Results {
		r := &t.claim.Status.Allocation.Devices.Results[i]
		d := c.Pools.Device(cluster.DeviceID{Driver: r.Driver, Pool: r.Pool, Device: r.Device})
		if d == nil || ptr.Deref(r.AdminAccess, false) {
			continue
		}
		devices = append(devices, d)
		results = append(results, api.AllocatedDevice{
			Request: r.Request, Driver: r.Driver, Pool: r.Pool, Device: r.Device, ShareID: string(ptr.Deref(r.ShareID, "")),
		})
	}
	if len(devices) == 0 {
		return nil, nil
	}
	target, nodes := h.target, c.Snapshot.Nodes
	if node := c.Snapshot.Node(t.node()); node != nil {
		target.Node, nodes = node.Name, []*corev1.Node{node}
	}
	_, checked, err := explain.NewInspection(c, nodes).Devices(ctx, target, devices)
	if absent := new(explain.TargetError); errors.As(err, &absent) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("check devices of claim %s/%s: %w", t.claim.Namespace, t.claim.Name, err)
	}
	var list []api.AllocatedDevice
	for i, d := range checked {
		if slices.ContainsFunc(d.Requests, passes) {
			list = append(list, results[i])
		}
	}
	return list, nil
}

// passes reports whether a device passes every check of a request when looked at alone.
func passes(r api.DeviceRequest) bool {
	return !slices.ContainsFunc(r.Checks, func(check api.DeviceCheck) bool { return check.Outcome == api.CheckFailed })
}

// describe says which devices a claim got, and why before the target.
func (h *history) describe(t taker, devices []api.AllocatedDevice) api.TakenDevices {
	out := api.TakenDevices{Claim: api.RefTo(api.KindClaim, t.claim), Node: t.node(), Devices: devices}
	if t.pod == nil {
		return out
	}
	out.Pod, out.Priority = api.RefTo(api.KindPod, t.pod), ptr.Deref(t.pod.Spec.Priority, 0)
	if h.state.pod == nil {
		return out
	}
	own := h.state.pod
	out.TargetPriority = ptr.Deref(own.Spec.Priority, 0)
	switch {
	case out.Priority > out.TargetPriority:
		out.Reason = api.TakenByPriority
	case out.Priority == out.TargetPriority && t.pod.CreationTimestamp.Before(&own.CreationTimestamp):
		out.Reason = api.TakenByAge
	default:
		out.Reason = api.TakenByScheduler
	}
	return out
}
