// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// podTerm is a required term of pod affinity or anti-affinity.
type podTerm struct {
	key        string
	selector   labels.Selector
	namespaces []string
	// ofNamespace selects further namespaces by their labels, if selects is set.
	ofNamespace labels.Selector
	selects     bool
	text        string
}

// podTerms parses the terms of a pod as kube-scheduler does (GetAffinityTerms in
// pkg/scheduler/framework/types.go). An invalid term matches nothing.
func podTerms(pod *corev1.Pod, terms []corev1.PodAffinityTerm) []podTerm {
	list := make([]podTerm, 0, len(terms))
	for i := range terms {
		t := completedTerm(pod, &terms[i])
		term := podTerm{key: t.TopologyKey, namespaces: t.Namespaces, selects: t.NamespaceSelector != nil, text: metav1.FormatLabelSelector(t.LabelSelector)}
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

// completedTerm adds the API server's additions to the terms of a new pod
// (applyMatchLabelKeysAndMismatchLabelKeys in pkg/registry/core/pod/strategy.go).
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

// SelectedLabels adds to keys the labels of pods by which a pod selects others in its
// requirements: its affinity, its anti-affinity and its spread constraints.
func SelectedLabels(pod *corev1.Pod, keys map[string]bool) {
	add := func(selector *metav1.LabelSelector, more ...[]string) {
		for _, list := range more {
			for _, key := range list {
				keys[key] = true
			}
		}
		if selector == nil {
			return
		}
		for key := range selector.MatchLabels {
			keys[key] = true
		}
		for _, requirement := range selector.MatchExpressions {
			keys[requirement.Key] = true
		}
	}
	for _, terms := range [][]corev1.PodAffinityTerm{requiredAffinity(pod), requiredAntiAffinity(pod)} {
		for i := range terms {
			add(terms[i].LabelSelector, terms[i].MatchLabelKeys, terms[i].MismatchLabelKeys)
		}
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		add(c.LabelSelector, c.MatchLabelKeys)
	}
}

// avoidingPod is a pod on a node with required anti-affinity.
type avoidingPod struct {
	pod   *corev1.Pod
	terms []podTerm
}

// avoidingPods returns the pods with required anti-affinity in the order of a snapshot,
// given the pods before a change and the change.
func avoidingPods(before []avoidingPod, changed *difference[*corev1.Pod]) []avoidingPod {
	avoids := func(pod *corev1.Pod) bool { return takesNode(pod) && len(requiredAntiAffinity(pod)) > 0 }
	if !slices.ContainsFunc(changed.Removed, avoids) && !slices.ContainsFunc(changed.Added, avoids) {
		return before
	}
	after := make([]avoidingPod, 0, len(before)+len(changed.Added))
	added := changed.Added
	take := func(upTo func(*corev1.Pod) bool) {
		for ; len(added) > 0 && upTo(added[0]); added = added[1:] {
			if avoids(added[0]) {
				after = append(after, avoidingPod{added[0], podTerms(added[0], requiredAntiAffinity(added[0]))})
			}
		}
	}
	for _, known := range before {
		take(func(pod *corev1.Pod) bool { return compareObjects(pod, known.pod) < 0 })
		if !slices.Contains(changed.Removed, known.pod) {
			after = append(after, known)
		}
	}
	take(func(*corev1.Pod) bool { return true })
	return slices.Clip(after)
}

// takesNode reports whether a pod uses resources of its node. As for the scheduler,
// finished pods use none, and pods being deleted do.
func takesNode(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && !snapshot.Finished(pod)
}
