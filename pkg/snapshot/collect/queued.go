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
func (c *collector) readQueued(ctx context.Context) {
	if c.opts.Target == nil && !c.opts.Admission || !c.heldByKueue() {
		return
	}
	mapping, err := c.clients.Resolve(snapshot.ResourceQueued)
	if err != nil {
		return
	}
	namespace := c.scope()
	api := c.clients.Dynamic.Resource(mapping.Resource).Namespace(namespace)
	options := metav1.ListOptions{Limit: chunkSize}
	for {
		page, err := api.List(ctx, options)
		if apierrors.IsForbidden(err) {
			where := "at the cluster scope"
			if namespace != "" {
				where = "in namespace " + namespace
			}
			c.gap(snapshot.Gap{Resource: snapshot.ResourceQueued, Reason: fmt.Sprintf("this user may not list %s %s", snapshot.ResourceQueued, where)})
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
				c.snapshot.Queued = append(c.snapshot.Queued, workload)
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	c.readQueues(ctx)
	c.readOwners(ctx, c.heldPods())
}

// scope returns the namespace that a question is about, empty for all of them.
func (c *collector) scope() string {
	if c.opts.Target == nil && c.opts.AllNamespaces {
		return metav1.NamespaceAll
	}
	return c.namespace
}

// heldByKueue reports whether a pod of the namespace of the question that is not
// scheduled, or the target itself, is Kueue's.
func (c *collector) heldByKueue() bool {
	for _, workload := range c.snapshot.Workloads {
		if snapshot.HeldByKueue(workload.Labels, nil) {
			return true
		}
	}
	for _, outline := range c.snapshot.Outlines {
		if snapshot.HeldByKueue(outline.Labels, nil) || outline.Spec.Suspend {
			return true
		}
	}
	return len(c.heldPods()) > 0
}

// heldPods returns the question's pods that are not scheduled and belong to Kueue.
func (c *collector) heldPods() []*corev1.Pod {
	scope := c.scope()
	var held []*corev1.Pod
	for _, pod := range c.snapshot.Pods {
		if (scope == "" || pod.Namespace == scope) && pod.Spec.NodeName == "" && snapshot.HeldByKueue(pod.Labels, pod.Spec.SchedulingGates) {
			held = append(held, pod)
		}
	}
	return held
}

// readQueues gets the queues of the workloads that wait.
func (c *collector) readQueues(ctx context.Context) {
	const version = snapshot.KueueGroup + "/v1beta1"
	local, cluster := map[objectKey]bool{}, map[objectKey]bool{}
	want := func(into map[objectKey]bool, kind, namespace, name string) {
		if name != "" {
			into[objectKey{apiVersion: version, kind: kind, namespace: namespace, name: name}] = true
		}
	}
	for _, w := range c.snapshot.Queued {
		if w.Admitted() || w.Ended() {
			continue
		}
		want(local, snapshot.KindLocalQueue, w.Namespace, w.Spec.QueueName)
		if w.Status.Admission != nil {
			want(cluster, snapshot.KindClusterQueue, "", w.Status.Admission.ClusterQueue)
		}
	}
	for _, queue := range c.outlines(ctx, local) {
		want(cluster, snapshot.KindClusterQueue, "", queue.Spec.ClusterQueue)
	}
	c.outlines(ctx, cluster)
}
