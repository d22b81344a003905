// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// NodeCondition is a condition of a node for which Kubernetes sets taints, in words.
type NodeCondition struct {
	// Reason is a few words that hold for all nodes with the condition, Repair is advice
	// for an administrator, empty if none is needed.
	Reason, Repair string
	// Status is the status of the condition, empty if only a taint shows it; Message is its
	// message.
	Status  corev1.ConditionStatus
	Message string
	// Since is when it began, zero if that is not known. Ended is set for an event at that
	// time, and not a lasting condition.
	Since time.Time
	Ended bool
}

// Taints of cloud controller managers (k8s.io/cloud-provider/api).
const (
	taintUninitialized = "node.cloudprovider.kubernetes.io/uninitialized"
	taintShutdown      = "node.cloudprovider.kubernetes.io/shutdown"
)

// neverPosted is the node lifecycle controller's reason for a kubelet that has registered a
// node and posted no status since.
const neverPosted = "NodeStatusNeverUpdated"

// NotReady returns the condition of a node whose Ready is not True, nil for others.
func NotReady(node *corev1.Node) *NodeCondition {
	at := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if at < 0 || node.Status.Conditions[at].Status == corev1.ConditionTrue {
		return nil
	}
	c := &node.Status.Conditions[at]
	n := &NodeCondition{Status: c.Status, Since: c.LastTransitionTime.Time}
	switch {
	case c.Status == corev1.ConditionFalse:
		n.Reason, n.Message, n.Repair = "not ready", c.Message, "see the condition Ready of node %s and the log of its kubelet"
	case c.Reason == neverPosted:
		// The message only repeats it.
		n.Reason, n.Since, n.Repair = "the kubelet has never posted status", time.Time{}, "start the kubelet on node %s"
	default:
		n.Reason, n.Ended, n.Repair = "the kubelet stopped posting status", true, "start the kubelet on node %s, or the machine"
	}
	return n
}

// Cordoned returns the condition of a cordoned node, nil for others. Since is zero unless the taint
// that Kubernetes gives such a node has its time.
func Cordoned(node *corev1.Node) *NodeCondition {
	if !node.Spec.Unschedulable {
		return nil
	}
	n := &NodeCondition{Reason: "cordoned", Ended: true}
	for i := range node.Spec.Taints {
		if t := &node.Spec.Taints[i]; t.Key == corev1.TaintNodeUnschedulable && t.Effect == corev1.TaintEffectNoSchedule && t.TimeAdded != nil {
			n.Since = t.TimeAdded.Time
		}
	}
	return n
}

// conditionOf returns the condition for which Kubernetes has tainted a node, nil for
// another taint, or if the node does not have the condition any more.
// (taintKeyToNodeConditionMap in pkg/controller/nodelifecycle/node_lifecycle_controller.go)
func conditionOf(node *corev1.Node, taint *corev1.Taint) *NodeCondition {
	pressure := func(reason string, kind corev1.NodeConditionType, repair string) *NodeCondition {
		for i := range node.Status.Conditions {
			if c := &node.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
				return &NodeCondition{Reason: reason, Status: c.Status, Message: c.Message, Since: c.LastTransitionTime.Time, Repair: repair}
			}
		}
		return nil
	}
	switch taint.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable:
		return NotReady(node)
	case corev1.TaintNodeMemoryPressure:
		return pressure("memory pressure", corev1.NodeMemoryPressure, "free memory on node %s")
	case corev1.TaintNodeDiskPressure:
		return pressure("disk pressure", corev1.NodeDiskPressure, "free disk space on node %s")
	case corev1.TaintNodePIDPressure:
		return pressure("PID pressure", corev1.NodePIDPressure, "end processes on node %s")
	case corev1.TaintNodeNetworkUnavailable:
		return pressure("network unavailable", corev1.NodeNetworkUnavailable, "see the network plugin on node %s")
	case taintUninitialized:
		return &NodeCondition{Reason: "not yet initialized by the cloud provider", Repair: "see the log of the cloud controller manager about node %s"}
	case taintShutdown:
		return &NodeCondition{Reason: "shut down, as the cloud provider reports", Repair: "start node %s again"}
	default:
		return nil
	}
}

// SetByKubernetes reports whether Kubernetes sets and removes a taint of a node itself.
func SetByKubernetes(taint *corev1.Taint) bool {
	switch taint.Key {
	case corev1.TaintNodeOutOfService:
		return false
	case taintUninitialized, taintShutdown:
		return true
	default:
		return strings.HasPrefix(taint.Key, "node.kubernetes.io/")
	}
}

// Text returns the condition with the details of this node: since when it has it, and the
// message.
func (n *NodeCondition) Text(snap *snapshot.Snapshot) string {
	text := n.Reason
	switch {
	case n.Since.IsZero():
	case n.Ended:
		text += " " + snap.Ago(n.Since)
	default:
		text += " (" + snap.Lasting("for", n.Since) + ")"
	}
	return text + english.PrecededBy(": ", strings.TrimSuffix(n.Message, "."))
}
