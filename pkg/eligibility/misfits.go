// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package eligibility

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// elsewhere says why a claim that is allocated cannot be used on a node: mostly
// because its devices are on another one, where others use them.
func elsewhere(q *Question, claim *resourceapi.ResourceClaim, node *corev1.Node, why string) string {
	if selected, err := cluster.AllocatedFor(claim.Status.Allocation, node); selected || err != nil {
		return fmt.Sprintf("claim %s is allocated, but %s", claim.Name, why)
	}
	text := fmt.Sprintf("claim %s is allocated on %s", english.QualifiedName(claim), AllocationNodes(claim.Status.Allocation))
	var users []string
	for i := range claim.Status.ReservedFor {
		c := &claim.Status.ReservedFor[i]
		if q.Pod == nil || c.UID != q.Pod.UID {
			users = append(users, cluster.ConsumerKind(c)+" "+claim.Namespace+"/"+c.Name)
		}
	}
	if len(users) == 0 {
		// The scheduler deallocates it if no node will do.
		return text
	}
	text += " and used by " + english.Sample(users, 3)
	if q.Pod != nil {
		text += "; this pod can only run there"
	}
	return text
}

// OnlyNode returns the only one of several nodes that the pod selects by nodeSelector, node
// affinity or name, whatever else keeps it from there; empty where it selects more or
// fewer.
func (s *PodReach) OnlyNode() string {
	others := 0
	selected := slices.Clone(s.Candidates[:min(len(s.Candidates), 2)])
	for i := range s.Unsuitable {
		u := &s.Unsuitable[i]
		switch {
		case u.Misfit.NotSelected():
			others++
		case len(selected) < 2:
			selected = append(selected, u.Node)
		}
	}
	if others == 0 || len(selected) != 1 {
		return ""
	}
	return selected[0].Name
}

// ByPlugin lists the nodes that have too little of an extended resource from a device plugin,
// and lack nothing else: the scheduler does not look for devices of the resource's class there.
func ByPlugin(q *Question) []UnsuitableNode {
	var nodes []UnsuitableNode
	for _, u := range q.Reach.Unsuitable {
		if m := &u.Misfit; m.Filter == cluster.FilterResources && len(q.Reach.Misfits[u.Node.Name]) == 1 && q.Cluster.Claims.ClassOf(m.Resource) != nil {
			nodes = append(nodes, u)
		}
	}
	return nodes
}

// Unsuitable returns a node with its misfits as one: what keeps the pod away, in one
// reason. Where the pod selects other nodes, nothing else matters.
func Unsuitable(misfits []UnsuitableNode) UnsuitableNode {
	all := misfits[0]
	if all.Misfit.NotSelected() {
		return all
	}
	var reasons []string
	for i := range misfits {
		reasons = append(reasons, misfits[i].Reason)
	}
	all.Reason = english.JoinAnd(slices.Compact(reasons))
	return all
}

// Misfits tells why the pod cannot use a node at all.
func Misfits(q *Question, node *corev1.Node) []UnsuitableNode {
	var all []UnsuitableNode
	add := func(code api.Code, misfit cluster.Misfit, claim *resourceapi.ResourceClaim) {
		all = append(all, UnsuitableNode{Node: node, Misfit: misfit, Code: code, Claim: claim, Reason: misfit.Reason})
	}
	if q.Pod != nil {
		for _, misfit := range q.Cluster.Nodes.Fit(q.Pod, node) {
			add(api.NodeUnsuitable, misfit, nil)
		}
	}
	for i := range q.PodClaims {
		pc := &q.PodClaims[i]
		if pc.Claim == nil || pc.Claim.Status.Allocation == nil {
			continue
		}
		if ok, why := q.Cluster.Claims.AvailableOn(pc.Claim, node); !ok {
			add(api.NodeNotReachable, cluster.Misfit{
				Reason: elsewhere(q, pc.Claim, node, why),
				Path:   "status.allocation.nodeSelector",
				Wanted: AllocationNodes(pc.Claim.Status.Allocation),
			}, pc.Claim)
		}
	}
	if q.Pod != nil && q.Cluster.Claims.HasExtendedResources(q.Pod) {
		if _, err := q.Cluster.Claims.ExtendedResourceClaim(q.Pod, node); err != nil {
			add(api.NodeUnsuitable, cluster.Misfit{Reason: err.Error(), Path: "status.allocatable"}, nil)
		}
	}
	return all
}

// NeededOn reports whether a request has to be served by DRA on a node. For
// extended resources a device plugin may do it.
func NeededOn(q *Question, c *Claim, name string, node *corev1.Node) bool {
	if !q.PodClaims[c.Index].ExtendedResources {
		return true
	}
	claim, err := q.Cluster.Claims.ExtendedResourceClaim(q.Pod, node)
	return err == nil && claim != nil && slices.ContainsFunc(claim.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool { return r.Name == name })
}
