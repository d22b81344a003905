// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The names that Kueue (https://kueue.sigs.k8s.io) gives to what it holds back.
const (
	kueueGroup = "kueue.x-k8s.io"
	// KueueGate is the scheduling gate of a pod that Kueue has not admitted.
	KueueGate = kueueGroup + "/admission"
	// KueueQueueLabel names the queue that a pod or a job waits in.
	KueueQueueLabel = kueueGroup + "/queue-name"
	// KueuePodGroupLabel names the group, and its QueuedWorkload, of a pod.
	KueuePodGroupLabel = kueueGroup + "/pod-group-name"
)

// QueuedWorkload is what Kueue keeps about a job or pod that waits in one of
// its queues, a Workload of kueue.x-k8s.io. Only what an explanation needs is
// kept. Its owners are the pods or the job.
type QueuedWorkload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              QueuedWorkloadSpec   `json:"spec"`
	Status            QueuedWorkloadStatus `json:"status"`
}

// QueuedWorkloadSpec names the LocalQueue.
type QueuedWorkloadSpec struct {
	QueueName string `json:"queueName,omitempty"`
}

// QueuedWorkloadStatus tells how far the workload has come.
type QueuedWorkloadStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DeepCopy returns a copy that shares nothing with the workload.
func (w *QueuedWorkload) DeepCopy() *QueuedWorkload {
	c := *w
	w.DeepCopyInto(&c.ObjectMeta)
	c.Status.Conditions = nil
	for i := range w.Status.Conditions {
		c.Status.Conditions = append(c.Status.Conditions, *w.Status.Conditions[i].DeepCopy())
	}
	return &c
}

// QueuedWorkloadKind is what a QueuedWorkload is saved as. All versions of
// Kueue have the same few fields.
func QueuedWorkloadKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: kueueGroup, Version: "v1beta1", Kind: "Workload"}
}

// HeldByKueue reports whether Kueue decides when a pod or a job may start, by its
// labels and, for a pod, its scheduling gates.
func HeldByKueue(labels map[string]string, gates []corev1.PodSchedulingGate) bool {
	for _, gate := range gates {
		if strings.HasPrefix(gate.Name, kueueGroup+"/") {
			return true
		}
	}
	return labels[KueueQueueLabel] != ""
}

// readQueued asks for the workloads of Kueue in the target's namespace, if
// something that waits there is Kueue's. Where Kueue is not installed, or does
// not answer, there are none: only hints depend on them.
func (c *collector) readQueued(ctx context.Context) {
	if c.opts.Target == nil || !c.kueueInNamespace() {
		return
	}
	mapping, err := c.clients.Resolve(ResourceQueued)
	if err != nil {
		return
	}
	api := c.clients.Dynamic.Resource(mapping.Resource).Namespace(c.namespace)
	options := metav1.ListOptions{Limit: chunkSize}
	for {
		page, err := api.List(ctx, options)
		if apierrors.IsForbidden(err) {
			c.gap(Gap{Resource: ResourceQueued, Reason: fmt.Sprintf("this user may not list %s in namespace %s", ResourceQueued, c.namespace)})
		}
		if err != nil {
			return
		}
		for i := range page.Items {
			data, err := page.Items[i].MarshalJSON()
			if err != nil {
				continue
			}
			if workload, err := decodeAs[QueuedWorkload](data); err == nil {
				Strip(workload)
				workload.TypeMeta = metav1.TypeMeta{}
				c.snapshot.Queued = append(c.snapshot.Queued, workload)
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return
		}
	}
}

// kueueInNamespace reports whether a pod of the target's namespace that is not
// scheduled, or the target itself, is Kueue's.
func (c *collector) kueueInNamespace() bool {
	for _, workload := range c.snapshot.Workloads {
		if HeldByKueue(workload.Labels, nil) {
			return true
		}
	}
	for _, pod := range c.snapshot.Pods {
		if pod.Namespace == c.namespace && pod.Spec.NodeName == "" && HeldByKueue(pod.Labels, pod.Spec.SchedulingGates) {
			return true
		}
	}
	return false
}

// QueuedBy returns the workload of Kueue that one of the given objects owns or
// that has the given name, or nil. Owners are compared by UID where both have
// one, else by kind and name.
func (s *Snapshot) QueuedBy(namespace, name string, owners []metav1.OwnerReference) *QueuedWorkload {
	for _, workload := range s.Queued {
		if workload.Namespace != namespace {
			continue
		}
		if name != "" && workload.Name == name {
			return workload
		}
		for _, owner := range workload.OwnerReferences {
			for _, wanted := range owners {
				sameUID := owner.UID == wanted.UID || owner.UID == "" || wanted.UID == ""
				if sameUID && owner.Kind == wanted.Kind && owner.Name == wanted.Name {
					return workload
				}
			}
		}
	}
	return nil
}

// Condition returns the condition of that type, or nil.
func (w *QueuedWorkload) Condition(name string) *metav1.Condition {
	return meta.FindStatusCondition(w.Status.Conditions, name)
}
