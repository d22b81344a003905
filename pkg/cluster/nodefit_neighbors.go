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

// neighbors has the effect of the placed pods on the nodes for another pod: pod affinity,
// anti-affinity of either side, and topology spread.
type neighbors struct {
	affinity, antiAffinity []podTerm
	// matched counts, for each domain, the placed pods that match all terms of
	// the affinity. selfMatch is true if the pod does so itself.
	matched   map[domain]int
	selfMatch bool
	// avoided and avoiding name a placed pod for each domain: a pod that the anti-affinity
	// matches, and a pod whose own anti-affinity matches the pod.
	avoided  []map[domain]string
	avoiding map[domain]string
	// avoidingKeys are the keys of avoiding, in their order.
	avoidingKeys []string
	spread       []spreadConstraint
}

func (n *Nodes) namespaceLabels(name string) labels.Set {
	if namespace := n.snap.Namespace(name); namespace != nil {
		return namespace.Labels
	}
	return labels.Set{corev1.LabelMetadataName: name}
}

func (n *Nodes) countNeighbors(pod *corev1.Pod) *neighbors {
	near := &neighbors{matched: map[domain]int{}, avoiding: map[domain]string{}}
	if n.seesPodsOf(requiredAffinity(pod), pod.Namespace) {
		near.affinity = podTerms(pod, requiredAffinity(pod))
	}
	near.antiAffinity = podTerms(pod, requiredAntiAffinity(pod))
	near.avoided = make([]map[domain]string, len(near.antiAffinity))
	own := n.namespaceLabels(pod.Namespace)
	near.selfMatch = matchesAll(near.affinity, pod, own)
	isSelf := func(other *corev1.Pod) bool {
		return other.UID == pod.UID && other.Name == pod.Name && other.Namespace == pod.Namespace
	}
	for _, other := range n.podsOfTerms(slices.Concat(near.affinity, near.antiAffinity)) {
		if node := n.placedOn(other); node != nil && !isSelf(other) {
			near.add(other, node, n.namespaceLabels(other.Namespace))
		}
	}
	for _, other := range n.avoiding() {
		node := n.placedOn(other.pod)
		if node == nil || isSelf(other.pod) {
			continue
		}
		for i := range other.terms {
			if d, found := domainOf(node, other.terms[i].key); found && other.terms[i].matches(pod, own) {
				near.avoiding[d] = other.pod.Namespace + "/" + other.pod.Name
				if !slices.Contains(near.avoidingKeys, d.key) {
					near.avoidingKeys = append(near.avoidingKeys, d.key)
				}
			}
		}
	}
	slices.Sort(near.avoidingKeys)
	near.spread = n.spreadConstraints(pod)
	return near
}

// podsOfTerms returns the pods that terms can match.
func (n *Nodes) podsOfTerms(terms []podTerm) []*corev1.Pod {
	var namespaces []string
	for i := range terms {
		if terms[i].selects {
			return n.snap.Pods
		}
		namespaces = append(namespaces, terms[i].namespaces...)
	}
	return n.podsIn(namespaces...)
}

// add counts a pod that the terms of the affinity and anti-affinity may match.
func (n *neighbors) add(other *corev1.Pod, node *corev1.Node, namespace labels.Set) {
	if matchesAll(n.affinity, other, namespace) {
		for i := range n.affinity {
			if d, found := domainOf(node, n.affinity[i].key); found {
				n.matched[d]++
			}
		}
	}
	for i := range n.antiAffinity {
		if d, found := domainOf(node, n.antiAffinity[i].key); found && n.antiAffinity[i].matches(other, namespace) {
			if n.avoided[i] == nil {
				n.avoided[i] = map[domain]string{}
			}
			n.avoided[i][d] = other.Namespace + "/" + other.Name
		}
	}
}

// podAffinityMisfits runs the filter of the plugin interpodaffinity
// (pkg/scheduler/framework/plugins/interpodaffinity/filtering.go).
func (n *neighbors) podAffinityMisfits(node *corev1.Node) []Misfit {
	var misfits []Misfit
	for _, key := range n.avoidingKeys {
		d, _ := domainOf(node, key)
		if pod := n.avoiding[d]; pod != "" {
			misfits = append(misfits, Misfit{
				Filter: FilterPodAffinity, Label: key,
				Reason: fmt.Sprintf("a pod in the same %s has anti-affinity against this pod", key),
				Path:   labelPath(key), Found: fmt.Sprintf("%s, with pod %s", d.value, pod), Wanted: "no such pod",
			})
			break
		}
	}
	for i := range n.antiAffinity {
		term := &n.antiAffinity[i]
		if d, found := domainOf(node, term.key); found && n.avoided[i][d] != "" {
			misfits = append(misfits, Misfit{
				Filter: FilterPodAffinity, Label: term.key,
				Reason: fmt.Sprintf("a pod that matches %s is in the same %s: required pod anti-affinity", term.text, term.key),
				Path:   labelPath(term.key), Found: fmt.Sprintf("%s, with pod %s", d.value, n.avoided[i][d]), Wanted: "no such pod",
			})
		}
	}
	return append(misfits, n.missingNeighbors(node)...)
}

// missingNeighbors returns the first term of the affinity that a node does not satisfy. The
// first pod of a group that has affinity to itself can go anywhere.
func (n *neighbors) missingNeighbors(node *corev1.Node) []Misfit {
	var missing []Misfit
	for i := range n.affinity {
		term := &n.affinity[i]
		d, found := domainOf(node, term.key)
		switch {
		case !found:
			return []Misfit{{
				Reason: fmt.Sprintf("the node has no label %s, which required pod affinity needs", term.key),
				Path:   labelPath(term.key), Wanted: "any value",
			}}
		case n.matched[d] == 0 && missing == nil:
			missing = []Misfit{{
				Filter: FilterPodAffinity,
				Reason: fmt.Sprintf("no pod that matches %s is in the same %s: required pod affinity", term.text, term.key),
				Path:   labelPath(term.key), Found: d.value, Wanted: "a value with such a pod",
			}}
		}
	}
	if len(n.matched) == 0 && n.selfMatch {
		return nil
	}
	return missing
}

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
