// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// neighbors is what the placed pods mean for the nodes of one that is not: pod
// affinity, anti-affinity of either side, and topology spread.
type neighbors struct {
	affinity, antiAffinity []podTerm
	// matched counts, for each domain, the placed pods that match all terms of
	// the affinity. selfMatch is true if the pod does so itself.
	matched   map[domain]int
	selfMatch bool
	// avoided and avoiding name a placed pod for each domain: one that a term of
	// the anti-affinity matches, and one whose own anti-affinity the pod matches.
	avoided  []map[domain]string
	avoiding map[domain]string
	// avoidingKeys are the keys of avoiding, in their order.
	avoidingKeys []string
	spread       []spreadConstraint
}

// podTerm is a required term of pod affinity or anti-affinity.
type podTerm struct {
	key        string
	selector   labels.Selector
	namespaces []string
	// ofNamespace selects further namespaces by their labels.
	ofNamespace labels.Selector
	text        string
}

// podTerms reads the terms of a pod as kube-scheduler does (GetAffinityTerms in
// pkg/scheduler/framework/types.go). One that cannot be parsed matches nothing.
func podTerms(pod *corev1.Pod, terms []corev1.PodAffinityTerm) []podTerm {
	list := make([]podTerm, 0, len(terms))
	for i := range terms {
		t := completedTerm(pod, &terms[i])
		term := podTerm{key: t.TopologyKey, namespaces: t.Namespaces, text: metav1.FormatLabelSelector(t.LabelSelector)}
		var err error
		if term.selector, err = metav1.LabelSelectorAsSelector(t.LabelSelector); err != nil {
			term.selector = labels.Nothing()
		}
		if term.ofNamespace, err = metav1.LabelSelectorAsSelector(t.NamespaceSelector); err != nil {
			term.ofNamespace = labels.Nothing()
		}
		if len(t.Namespaces) == 0 && t.NamespaceSelector == nil {
			term.namespaces = []string{pod.Namespace}
		}
		list = append(list, term)
	}
	return list
}

// completedTerm adds what the API server adds to the terms of a pod when it is
// created (applyMatchLabelKeysAndMismatchLabelKeys in
// pkg/registry/core/pod/strategy.go).
func completedTerm(pod *corev1.Pod, term *corev1.PodAffinityTerm) *corev1.PodAffinityTerm {
	if pod.UID != "" || term.LabelSelector == nil || len(term.MatchLabelKeys)+len(term.MismatchLabelKeys) == 0 {
		return term
	}
	completed := term.DeepCopy()
	add := func(keys []string, operator metav1.LabelSelectorOperator) {
		for _, key := range keys {
			if value, found := pod.Labels[key]; found {
				completed.LabelSelector.MatchExpressions = append(completed.LabelSelector.MatchExpressions,
					metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
			}
		}
	}
	add(term.MatchLabelKeys, metav1.LabelSelectorOpIn)
	add(term.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	return completed
}

func (t *podTerm) matches(pod *corev1.Pod, namespace labels.Set) bool {
	return (slices.Contains(t.namespaces, pod.Namespace) || t.ofNamespace.Matches(namespace)) && t.selector.Matches(labels.Set(pod.Labels))
}

func matchesAll(terms []podTerm, pod *corev1.Pod, namespace labels.Set) bool {
	for i := range terms {
		if !terms[i].matches(pod, namespace) {
			return false
		}
	}
	return len(terms) > 0
}

func requiredAntiAffinity(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func requiredAffinity(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
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
	for _, other := range n.placed() {
		if other.pod.UID == pod.UID && other.pod.Name == pod.Name && other.pod.Namespace == pod.Namespace {
			continue
		}
		if len(near.affinity)+len(near.antiAffinity)+len(requiredAntiAffinity(other.pod)) == 0 {
			continue
		}
		namespace := n.namespaceLabels(other.pod.Namespace)
		name := other.pod.Namespace + "/" + other.pod.Name
		if matchesAll(near.affinity, other.pod, namespace) {
			for i := range near.affinity {
				if d, found := domainOf(other.node, near.affinity[i].key); found {
					near.matched[d]++
				}
			}
		}
		for i := range near.antiAffinity {
			if d, found := domainOf(other.node, near.antiAffinity[i].key); found && near.antiAffinity[i].matches(other.pod, namespace) {
				if near.avoided[i] == nil {
					near.avoided[i] = map[domain]string{}
				}
				near.avoided[i][d] = name
			}
		}
		terms := podTerms(other.pod, requiredAntiAffinity(other.pod))
		for i := range terms {
			if d, found := domainOf(other.node, terms[i].key); found && terms[i].matches(pod, own) {
				near.avoiding[d] = name
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

// missingNeighbors has the first term of the affinity that a node does not
// satisfy. The first pod of a group that has affinity to itself can go anywhere.
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
