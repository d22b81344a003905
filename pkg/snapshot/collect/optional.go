// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// readOptional reads what the pods depend on that the question may be about. It
// needs the pods and the target.
func readOptional(ctx context.Context, r *reader, s *snapshot.Snapshot, opts *Options, apis servedAPIs, jobs *[]*snapshot.Workload) error {
	clients, optional := r.clients, r.namespacedList
	if opts.Target != nil {
		optional = r.inNamespace
	}
	admission, volumes := opts.Creates || opts.Health, opts.UsesVolumes
	for _, workload := range s.Workloads {
		if opts.Target != nil {
			admission = true
			volumes = volumes || snapshot.UsesVolumeClaims(&workload.Template.Spec)
		}
	}
	for _, pod := range s.Pods {
		// The question may be about it.
		if waits(pod) && (opts.Target == nil || pod.Namespace == r.namespace) {
			admission = admission || lacksClaims(pod)
			volumes = volumes || snapshot.UsesVolumeClaims(&pod.Spec)
		}
	}
	composites := apis.compositePodGroups && (opts.Creates || slices.ContainsFunc(s.PodGroups, func(group *schedulingapi.PodGroup) bool {
		return group.Spec.ParentCompositePodGroupName != nil
	}))
	var tasks []func(context.Context) error
	if composites {
		tasks = append(tasks, optional(snapshot.ResourceCompositePodGroups, func(ctx context.Context, l *listing, namespace string) error {
			return fetch(ctx, l, compositePodGroupAPI(clients, namespace), &s.CompositePodGroups)
		}))
	}
	// A pod of another namespace that a quota keeps from its claims takes no devices.
	elsewhere := slices.ContainsFunc(s.Pods, func(pod *corev1.Pod) bool { return pod.Namespace != r.namespace && waits(pod) && lacksClaims(pod) })
	quotas, listQuotas := admission || elsewhere, optional
	if elsewhere {
		listQuotas = r.namespacedList
	}
	if quotas {
		tasks = append(tasks,
			listQuotas(snapshot.ResourceQuotas, func(ctx context.Context, l *listing, namespace string) error {
				return fetch(ctx, l, quotaAPI(clients, namespace), &s.Quotas)
			}))
	}
	if admission {
		tasks = append(tasks,
			optional(snapshot.ResourceLimitRanges, func(ctx context.Context, l *listing, namespace string) error {
				return fetch(ctx, l, limitRangeAPI(clients, namespace), &s.LimitRanges)
			}))
	}
	if volumes {
		tasks = append(tasks,
			optional(snapshot.ResourceVolumeClaims, func(ctx context.Context, l *listing, namespace string) error {
				return fetch(ctx, l, volumeClaimAPI(clients, namespace), &s.VolumeClaims)
			}),
			r.clusterList(snapshot.ResourceVolumes, func(ctx context.Context, l *listing) error {
				return fetch(ctx, l, volumeAPI(clients), &s.Volumes)
			}),
			r.clusterList(snapshot.ResourceStorageClasses, func(ctx context.Context, l *listing) error {
				return fetch(ctx, l, storageClassAPI(clients), &s.StorageClasses)
			}))
	}
	if opts.Evicts {
		tasks = append(tasks, optional(snapshot.ResourceBudgets, func(ctx context.Context, l *listing, namespace string) error {
			return fetch(ctx, l, budgetAPI(clients, namespace), &s.Budgets)
		}))
	}
	if opts.Ends && slices.ContainsFunc(s.Pods, runsInJob) {
		tasks = append(tasks, optional(snapshot.ResourceJobs, func(ctx context.Context, l *listing, namespace string) error {
			return fetch(ctx, l, jobAPI(clients, namespace), jobs)
		}))
	}
	domains := (opts.ComputeDomains || len(opts.Only) > 0) && s.NamesComputeDomains()
	if domains {
		tasks = append(tasks, computeDomains(r, s), cliques(r, s))
	}
	for _, task := range tasks {
		if task == nil {
			continue
		}
		if err := task(ctx); err != nil {
			return serverError(ctx, r.server, err)
		}
	}
	for resource := range snapshot.OptionalKinds() {
		read := volumes
		switch resource {
		case snapshot.ResourceAutoscalers, snapshot.ResourceClusterPolicies, snapshot.ResourcePluginConfigs:
			continue
		case snapshot.ResourceQuotas:
			read = quotas
		case snapshot.ResourceLimitRanges:
			read = admission
		case snapshot.ResourceCompositePodGroups:
			read = composites
		case snapshot.ResourceBudgets:
			read = opts.Evicts
		case snapshot.ResourceComputeDomains, snapshot.ResourceCliques:
			read = domains
		}
		if read && r.wants(resource) {
			listed(s, resource)
		}
	}
	return nil
}

// waits reports whether a pod with devices is not placed.
func waits(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && (len(pod.Spec.ResourceClaims) > 0 || usesExtendedResources(&pod.Spec))
}

// lacksClaims reports whether a claim of the pod is yet to be created.
func lacksClaims(pod *corev1.Pod) bool {
	for _, entry := range pod.Spec.ResourceClaims {
		if entry.ResourceClaimTemplateName != nil && !slices.ContainsFunc(pod.Status.ResourceClaimStatuses,
			func(status corev1.PodResourceClaimStatus) bool { return status.Name == entry.Name }) {
			return true
		}
	}
	return usesExtendedResources(&pod.Spec)
}

// usesExtendedResources reports whether the pod may get a claim from the
// scheduler.
func usesExtendedResources(spec *corev1.PodSpec) bool {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			for name := range containers[i].Resources.Requests {
				if strings.Contains(string(name), "/") {
					return true
				}
			}
		}
	}
	return false
}
