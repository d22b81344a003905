// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
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

// readQueued asks for the workloads of Kueue in the namespace of the question, for
// the queues of those that wait, and for what stands between these workloads and
// their pods, if something that waits there is Kueue's. Where Kueue is not
// installed, or does not answer, there are none: what else is said does not depend
// on them.
func readQueued(ctx context.Context, r *reader, s *snapshot.Snapshot, namespace string) {
	if !heldByKueue(s, namespace) {
		return
	}
	mapping, err := r.clients.Resolve(snapshot.ResourceQueued)
	if err != nil {
		return
	}
	api := r.clients.Dynamic.Resource(mapping.Resource).Namespace(namespace)
	options := metav1.ListOptions{Limit: chunkSize}
	for {
		page, err := api.List(ctx, options)
		if apierrors.IsForbidden(err) {
			r.gap(snapshot.Gap{Resource: snapshot.ResourceQueued, Reason: fmt.Sprintf("this user may not list %s %s", snapshot.ResourceQueued, where(namespace))})
		}
		if err != nil {
			return
		}
		for i := range page.Items {
			data, err := page.Items[i].MarshalJSON()
			if err != nil {
				continue
			}
			if workload, err := kinds.DecodeAs[snapshot.QueuedWorkload](data); err == nil {
				kinds.Strip(workload)
				workload.TypeMeta = metav1.TypeMeta{}
				s.Queued = append(s.Queued, workload)
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	readQueues(ctx, r, s)
	readOwners(ctx, r, s, heldPods(s, namespace))
}

// heldByKueue reports whether a pod of the namespace of the question that is not
// scheduled, or the target itself, is Kueue's.
func heldByKueue(s *snapshot.Snapshot, namespace string) bool {
	for _, workload := range s.Workloads {
		if snapshot.HeldByKueue(workload.Labels, nil) {
			return true
		}
	}
	for _, outline := range s.Outlines {
		if snapshot.HeldByKueue(outline.Labels, nil) || outline.Spec.Suspend {
			return true
		}
	}
	return len(heldPods(s, namespace)) > 0
}

// heldPods returns the question's pods that are not scheduled and belong to Kueue.
func heldPods(s *snapshot.Snapshot, namespace string) []*corev1.Pod {
	var held []*corev1.Pod
	for _, pod := range s.Pods {
		if (namespace == "" || pod.Namespace == namespace) && pod.Spec.NodeName == "" && snapshot.HeldByKueue(pod.Labels, pod.Spec.SchedulingGates) {
			held = append(held, pod)
		}
	}
	return held
}

// readQueues gets the queues of the workloads that wait.
func readQueues(ctx context.Context, r *reader, s *snapshot.Snapshot) {
	const version = snapshot.KueueGroup + "/v1beta1"
	local, cluster := map[objectKey]bool{}, map[objectKey]bool{}
	want := func(into map[objectKey]bool, kind, namespace, name string) {
		if name != "" {
			into[objectKey{apiVersion: version, kind: kind, namespace: namespace, name: name}] = true
		}
	}
	for _, w := range s.Queued {
		if w.Admitted() || w.Ended() {
			continue
		}
		want(local, snapshot.KindLocalQueue, w.Namespace, w.Spec.QueueName)
		if w.Status.Admission != nil {
			want(cluster, snapshot.KindClusterQueue, "", w.Status.Admission.ClusterQueue)
		}
	}
	for _, queue := range outlines(ctx, r, s, local) {
		want(cluster, snapshot.KindClusterQueue, "", queue.Spec.ClusterQueue)
	}
	outlines(ctx, r, s, cluster)
}

// runsWithClaims reports whether a pod that is placed may have devices.
func runsWithClaims(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && (len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil)
}

// runsInJob reports whether a pod that may have devices is of a Job.
func runsInJob(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.Kind == snapshot.KindJob && runsWithClaims(pod)
}

// jobAPI returns the Jobs that run for a limited time.
func jobAPI(c Clients, namespace string) endpoint[*snapshot.Workload] {
	return typedAPI(c, batchv1.SchemeGroupVersion, "jobs", namespace, &batchv1.Job{}, &batchv1.JobList{}, asLimitedJob)
}

func asLimitedJob(object any) (*snapshot.Workload, error) {
	job, err := as[*batchv1.Job](object)
	if err != nil {
		return nil, err
	}
	workload := kinds.JobWorkload(job)
	if workload.Limit == nil {
		return nil, errNotKept
	}
	kinds.Strip(workload)
	return workload, nil
}
