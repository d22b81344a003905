// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// readOptional reads what the pods depend on that the question may be about. It
// needs the pods and the target.
func (c *collector) readOptional(ctx context.Context) error {
	s, clients := c.snapshot, c.clients
	admission, volumes := c.opts.Creates || c.opts.Health, c.opts.UsesVolumes
	for _, workload := range s.Workloads {
		if c.opts.Target != nil {
			admission = true
			volumes = volumes || snapshot.UsesVolumeClaims(&workload.Template.Spec)
		}
	}
	for _, pod := range s.Pods {
		if c.concerns(pod) {
			admission = admission || lacksClaims(pod)
			volumes = volumes || snapshot.UsesVolumeClaims(&pod.Spec)
		}
	}
	composites := c.apis.compositePodGroups && (c.opts.Creates || slices.ContainsFunc(s.PodGroups, func(group *schedulingapi.PodGroup) bool {
		return group.Spec.ParentCompositePodGroupName != nil
	}))
	var tasks []func(context.Context) error
	if composites {
		tasks = append(tasks, c.optionalList(snapshot.ResourceCompositePodGroups, func(ctx context.Context, l *listing, namespace string) error {
			return fetch(ctx, l, compositePodGroupAPI(clients, namespace), &s.CompositePodGroups)
		}))
	}
	// A pod of another namespace that a quota keeps from its claims takes no devices.
	elsewhere := slices.ContainsFunc(s.Pods, func(pod *corev1.Pod) bool { return pod.Namespace != c.namespace && c.waits(pod) && lacksClaims(pod) })
	quotas, listQuotas := admission || elsewhere, c.optionalList
	if elsewhere {
		listQuotas = c.namespacedList
	}
	if quotas {
		tasks = append(tasks,
			listQuotas(snapshot.ResourceQuotas, func(ctx context.Context, l *listing, namespace string) error {
				return fetch(ctx, l, quotaAPI(clients, namespace), &s.Quotas)
			}))
	}
	if admission {
		tasks = append(tasks,
			c.optionalList(snapshot.ResourceLimitRanges, func(ctx context.Context, l *listing, namespace string) error {
				return fetch(ctx, l, limitRangeAPI(clients, namespace), &s.LimitRanges)
			}))
	}
	if volumes {
		tasks = append(tasks,
			c.optionalList(snapshot.ResourceVolumeClaims, func(ctx context.Context, l *listing, namespace string) error {
				return fetch(ctx, l, volumeClaimAPI(clients, namespace), &s.VolumeClaims)
			}),
			c.clusterList(snapshot.ResourceVolumes, func(ctx context.Context, l *listing) error {
				return fetch(ctx, l, volumeAPI(clients), &s.Volumes)
			}),
			c.clusterList(snapshot.ResourceStorageClasses, func(ctx context.Context, l *listing) error {
				return fetch(ctx, l, storageClassAPI(clients), &s.StorageClasses)
			}))
	}
	if c.opts.Evicts {
		tasks = append(tasks, c.optionalList(snapshot.ResourceBudgets, func(ctx context.Context, l *listing, namespace string) error {
			return fetch(ctx, l, budgetAPI(clients, namespace), &s.Budgets)
		}))
	}
	if c.opts.Ends {
		tasks = append(tasks, c.limitedJobs())
	}
	domains := (c.opts.ComputeDomains || len(c.opts.Only) > 0) && s.NamesComputeDomains()
	if domains {
		tasks = append(tasks, c.computeDomains(), c.cliques())
	}
	for _, task := range tasks {
		if task == nil {
			continue
		}
		if err := task(ctx); err != nil {
			return serverError(ctx, c.server, err)
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
			read = c.opts.Evicts
		case snapshot.ResourceComputeDomains, snapshot.ResourceCliques:
			read = domains
		}
		if read && c.wants(resource) {
			c.listed(resource)
		}
	}
	return nil
}

// optionalList is like [collector.namespacedList], for the namespace of the question, if it
// has one.
func (c *collector) optionalList(resource string, list func(context.Context, *listing, string) error) func(context.Context) error {
	if c.opts.Target == nil || !c.wants(resource) {
		return c.namespacedList(resource, list)
	}
	l := c.progress.list(resource)
	return func(ctx context.Context) error {
		err := list(ctx, l, c.namespace)
		if apierrors.IsForbidden(err) {
			l.finished()
			c.gap(snapshot.Gap{Resource: resource, Reason: fmt.Sprintf("this user may not list %s in namespace %s", resource, c.namespace)})
			return nil
		}
		return c.concluded(l, "in namespace "+c.namespace, err)
	}
}

// concerns reports whether the question may be about a pod that is not placed.
func (c *collector) concerns(pod *corev1.Pod) bool {
	return c.waits(pod) && (c.opts.Target == nil || pod.Namespace == c.namespace)
}

// waits reports whether a pod with devices is not placed.
func (*collector) waits(pod *corev1.Pod) bool {
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

// limitedJobs returns a task that reads the Jobs whose pods run for a limited time, nil if
// no pod is of a Job.
func (c *collector) limitedJobs() func(context.Context) error {
	for _, pod := range c.snapshot.Pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Kind == snapshot.KindJob && runsWithClaims(pod) {
			return c.optionalList(snapshot.ResourceJobs, func(ctx context.Context, l *listing, namespace string) error {
				return fetch(ctx, l, jobAPI(c.clients, namespace), &c.jobs)
			})
		}
	}
	return nil
}
