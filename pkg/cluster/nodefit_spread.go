// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// spreadConstraint is a topology spread constraint with DoNotSchedule, and the spread of
// the placed pods.
type spreadConstraint struct {
	key       string
	text      string
	maxSkew   int
	selfMatch int
	// counts has the matching pods of each domain that counts, least the fewest of any of
	// them.
	counts map[string]int
	least  int
}

// spreadConstraints counts as the plugin podtopologyspread does before it filters
// (calPreFilterState in
// pkg/scheduler/framework/plugins/podtopologyspread/filtering.go). Defaults of the
// cluster never forbid a node.
func (n *Nodes) spreadConstraints(pod *corev1.Pod) []spreadConstraint {
	var required []*corev1.TopologySpreadConstraint
	for i := range pod.Spec.TopologySpreadConstraints {
		if c := &pod.Spec.TopologySpreadConstraints[i]; c.WhenUnsatisfiable == corev1.DoNotSchedule {
			required = append(required, c)
		}
	}
	if len(required) == 0 || !n.seesPodsOf(nil, pod.Namespace) || n.madeUp() {
		return nil
	}
	ofNode := map[string][]*corev1.Pod{}
	for _, other := range n.podsIn(pod.Namespace) {
		// Terminating pods do not count.
		if other.DeletionTimestamp == nil && (pod.UID == "" || other.UID != pod.UID) && takesNode(other) {
			ofNode[other.Spec.NodeName] = append(ofNode[other.Spec.NodeName], other)
		}
	}
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	list := make([]spreadConstraint, 0, len(required))
	for _, c := range required {
		selector := spreadSelector(pod, c)
		s := spreadConstraint{key: c.TopologyKey, text: metav1.FormatLabelSelector(c.LabelSelector), maxSkew: int(c.MaxSkew), counts: map[string]int{}}
		if selector.Matches(labels.Set(pod.Labels)) {
			s.selfMatch = 1
		}
		for _, node := range n.snap.Nodes {
			if !hasLabels(node, required) || !n.countsForSpread(pod, node, c, affinity) {
				continue
			}
			count := 0
			for _, other := range ofNode[node.Name] {
				if !selector.Empty() && selector.Matches(labels.Set(other.Labels)) {
					count++
				}
			}
			s.counts[node.Labels[c.TopologyKey]] += count
		}
		first := true
		for _, count := range s.counts {
			if first || count < s.least {
				s.least, first = count, false
			}
		}
		if len(s.counts) < int(ptr.Deref(c.MinDomains, 1)) {
			s.least = 0
		}
		list = append(list, s)
	}
	return list
}

// spreadSelector adds the values that the pod itself has for matchLabelKeys.
func spreadSelector(pod *corev1.Pod, c *corev1.TopologySpreadConstraint) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
	if err != nil {
		return labels.Nothing()
	}
	own := labels.Set{}
	for _, key := range c.MatchLabelKeys {
		if value, found := pod.Labels[key]; found {
			own[key] = value
		}
	}
	requirements, selectable := selector.Requirements()
	if len(own) == 0 || !selectable {
		return selector
	}
	return labels.SelectorFromSet(own).Add(requirements...)
}

func hasLabels(node *corev1.Node, constraints []*corev1.TopologySpreadConstraint) bool {
	return !slices.ContainsFunc(constraints, func(c *corev1.TopologySpreadConstraint) bool {
		_, found := node.Labels[c.TopologyKey]
		return !found
	})
}

// countsForSpread reports whether the pod could use a node, as far as the constraint
// requires that (matchNodeInclusionPolicies).
func (n *Nodes) countsForSpread(pod *corev1.Pod, node *corev1.Node, c *corev1.TopologySpreadConstraint, affinity nodeaffinity.RequiredNodeAffinity) bool {
	if ptr.Deref(c.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor) == corev1.NodeInclusionPolicyHonor {
		// As in the scheduler, errors are ignored.
		if match, _ := affinity.Match(node); !match {
			return false
		}
	}
	if ptr.Deref(c.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore) != corev1.NodeInclusionPolicyHonor {
		return true
	}
	forbids := func(taint *corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
	}
	_, untolerated := schedulinghelper.FindMatchingUntoleratedTaint(klog.Logger{}, node.Spec.Taints, pod.Spec.Tolerations, forbids, n.gates.tolerationOperators)
	return !untolerated
}

// spreadMisfits runs the filter of the plugin podtopologyspread.
func spreadMisfits(spread []spreadConstraint, node *corev1.Node) []Misfit {
	var misfits []Misfit
	for i := range spread {
		s := &spread[i]
		value, found := node.Labels[s.key]
		switch skew := s.counts[value] + s.selfMatch - s.least; {
		case !found:
			misfits = append(misfits, Misfit{
				Reason: fmt.Sprintf("the node has no label %s, which the topology spread constraint needs", s.key),
				Path:   labelPath(s.key), Wanted: "any value",
			})
		case skew > s.maxSkew:
			misfits = append(misfits, Misfit{
				Filter: FilterSpread, Label: s.key,
				Reason: fmt.Sprintf("topology spread: pods that match %s are spread over %s with maxSkew %d", s.text, s.key, s.maxSkew),
				Path:   labelPath(s.key),
				Found:  fmt.Sprintf("%s, with %d such pods, %d where there are the fewest", value, s.counts[value], s.least),
				Wanted: fmt.Sprintf("at most %d more than where there are the fewest, with this pod", s.maxSkew),
			})
		}
	}
	return misfits
}
