// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyapi "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// heedBudgets says which PodDisruptionBudgets have to allow the evictions. The API server
// refuses an eviction as long as the budget of the pod allows none, and "kubectl drain"
// tries again (canIgnorePDB and checkAndDecrement in pkg/registry/core/pod/storage/eviction.go
// of Kubernetes v1.37.1). Taints do not ask them.
func (a *assessment) heedBudgets() {
	snap := a.before.Snapshot
	if why := snap.Unknown(snapshot.ResourceBudgets, ""); why != "" {
		a.out.Assumptions = append(a.out.Assumptions, "no PodDisruptionBudget delays an eviction: "+why)
	}
	for _, budget := range snap.Budgets {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			// The API server stores none like that.
			continue
		}
		out := api.ImpactBudget{Namespace: budget.Namespace, Name: budget.Name, Allowed: int(budget.Status.DisruptionsAllowed)}
		stuck := false
		for i := range a.out.Pods {
			p := &a.out.Pods[i]
			pod := snap.Pod(p.Namespace, p.Name)
			if p.Effect != api.EffectEvicted || pod == nil || pod.Namespace != budget.Namespace || !selector.Matches(labels.Set(pod.Labels)) || ignoresBudget(pod, budget) {
				continue
			}
			p.Budgets = append(p.Budgets, budget.Name)
			out.Pods = append(out.Pods, pod.Name)
			stuck = stuck || p.Outcome == api.OutcomeNoPlace || p.Outcome == api.OutcomeNotRecreated
		}
		if len(out.Pods) == 0 {
			continue
		}
		switch {
		case out.Allowed == 0:
			out.Effect = api.BudgetBlocks
		case out.Allowed >= len(out.Pods):
			out.Effect = api.BudgetAllows
		case stuck:
			out.Effect = api.BudgetStops
		default:
			out.Effect = api.BudgetDelays
		}
		a.out.Budgets = append(a.out.Budgets, out)
	}
	for i := range a.out.Pods {
		if p := &a.out.Pods[i]; len(p.Budgets) > 1 {
			a.out.Notes = append(a.out.Notes, fmt.Sprintf("pod %s has %d PodDisruptionBudgets: the API server refuses to evict such a pod", english.QualifiedName(a.before.Snapshot.Pod(p.Namespace, p.Name)), len(p.Budgets)))
		}
	}
}

// ignoresBudget reports whether a pod is evicted whatever its budget says: it does not run
// yet, or it is not ready and the budget lets such pods go.
func ignoresBudget(pod *corev1.Pod, budget *policyapi.PodDisruptionBudget) bool {
	if pod.Status.Phase == corev1.PodPending {
		return true
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return false
		}
	}
	if policy := budget.Spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyapi.AlwaysAllow {
		return true
	}
	// By default they go if the budget is met without them.
	return budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy && budget.Status.DesiredHealthy > 0
}
