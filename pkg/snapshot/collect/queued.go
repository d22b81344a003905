// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

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
