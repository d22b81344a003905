// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
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
