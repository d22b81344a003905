// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Filter is a check of a node before any device is looked at, named after the scheduler's
// plugin if that has a single check.
type Filter string

// Filters that a node can fail.
const (
	FilterNodeName      Filter = "NodeName"
	FilterNodeSelector  Filter = "NodeSelector"
	FilterNodeAffinity  Filter = "NodeAffinity"
	FilterUnschedulable Filter = "NodeUnschedulable"
	FilterTaint         Filter = "TaintToleration"
	FilterPorts         Filter = "NodePorts"
	FilterPods          Filter = "Pods"
	FilterResources     Filter = "NodeResourcesFit"
	// FilterSpread and FilterPodAffinity depend on where other pods are.
	FilterSpread      Filter = "PodTopologySpread"
	FilterPodAffinity Filter = "InterPodAffinity"
)

// Misfit is one reason why a pod, whatever its claims, cannot run on a node.
type Misfit struct {
	// Filter is the check that fails. It decides which of the other fields are
	// set.
	Filter Filter
	// Reason is a few words without details of this node, so that nodes can be grouped by
	// it.
	Reason string
	// Path is the field of the node that proves it, Found its value and Wanted the pod's
	// need.
	Path, Found, Wanted string
	// Taint is the taint that is not tolerated (FilterTaint). Condition is why the node is
	// cordoned or has that taint, nil if that is not known.
	Taint     corev1.Taint
	Condition *NodeCondition
	// Label is the key of a label that spec.nodeSelector requires (FilterNodeSelector), or
	// the topology key of the other pods in the way (FilterSpread, FilterPodAffinity).
	Label string
	// Resource is the scarce resource of the node: Required by the pod, Available on the
	// node beside the requests of its pods, of Allocatable (FilterResources; FilterPods
	// with the resource pods).
	Resource                         corev1.ResourceName
	Required, Available, Allocatable resource.Quantity
	// User is the pod, as namespace/name, that uses the host port (FilterPorts).
	User string
}

// Text returns the reason with details of the node.
func (m *Misfit) Text(snap *snapshot.Snapshot) string {
	switch {
	case m.Condition != nil:
		return m.Condition.Text(snap)
	case m.Filter == FilterPods:
		return fmt.Sprintf("%s (%s)", m.Reason, m.Found)
	case m.Filter == FilterResources:
		return fmt.Sprintf("%s: %s required, %s", m.Reason, m.Wanted, m.Found)
	case m.Filter == FilterPorts:
		return fmt.Sprintf("%s by pod %s", m.Reason, m.User)
	default:
		return m.Reason
	}
}

// NotSelected reports whether the pod itself selects other nodes: by name, by nodeSelector
// or by node affinity.
func (m *Misfit) NotSelected() bool {
	return m.Filter == FilterNodeName || m.Filter == FilterNodeSelector || m.Filter == FilterNodeAffinity
}

// PassesWhenEmpty reports whether a node would be suitable if it were not cordoned, and had
// no taints and no pods.
func (m *Misfit) PassesWhenEmpty() bool {
	switch m.Filter {
	case FilterUnschedulable, FilterTaint, FilterPorts:
		return true
	case FilterResources, FilterPods:
		return m.Allocatable.Cmp(m.Required) >= 0
	default:
		return false
	}
}

// describeTerms writes node selector terms as people read them:
// "zone in (a, b) and gpu exists, or metadata.name in (node-1)".
func describeTerms(terms []corev1.NodeSelectorTerm) string {
	var alternatives []string
	for i := range terms {
		var all []string
		for _, requirement := range slices.Concat(terms[i].MatchExpressions, terms[i].MatchFields) {
			text := requirement.Key + " " + string(requirement.Operator)
			if len(requirement.Values) > 0 {
				text += " (" + strings.Join(requirement.Values, ", ") + ")"
			}
			all = append(all, text)
		}
		alternatives = append(alternatives, strings.Join(all, " and "))
	}
	return strings.Join(alternatives, ", or ")
}

// labelsFor writes the node's values of the labels that the terms mention.
func labelsFor(terms []corev1.NodeSelectorTerm, node *corev1.Node) string {
	found := map[string]string{}
	for i := range terms {
		for _, requirement := range terms[i].MatchExpressions {
			if value, exists := node.Labels[requirement.Key]; exists {
				found[requirement.Key] = value
			}
		}
		for _, requirement := range terms[i].MatchFields {
			if requirement.Key == "metadata.name" {
				found[requirement.Key] = node.Name
			}
		}
	}
	var list []string
	for _, key := range slices.Sorted(maps.Keys(found)) {
		list = append(list, key+"="+found[key])
	}
	return strings.Join(list, ", ")
}

func labelPath(key string) string { return fmt.Sprintf("metadata.labels['%s']", key) }

// RequirementText writes a requirement of a node selector on a label or a field as kubectl
// would; values are separated by "|".
func RequirementText(r corev1.NodeSelectorRequirement) string {
	values := strings.Join(r.Values, "|")
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		return r.Key + "=" + values
	case corev1.NodeSelectorOpNotIn:
		return r.Key + "!=" + values
	case corev1.NodeSelectorOpExists:
		return r.Key
	case corev1.NodeSelectorOpDoesNotExist:
		return "!" + r.Key
	case corev1.NodeSelectorOpGt:
		return r.Key + ">" + values
	case corev1.NodeSelectorOpLt:
		return r.Key + "<" + values
	default:
		return r.Key + " " + string(r.Operator) + " " + values
	}
}
