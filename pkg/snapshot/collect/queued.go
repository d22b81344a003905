// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/objects"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/strip"
)

// readQueued asks for the workloads of Kueue in the target's namespace, if
// something that waits there is Kueue's. Where Kueue is not installed, or does
// not answer, there are none: only hints depend on them.
func (c *collector) readQueued(ctx context.Context) {
	if c.opts.Target == nil || !c.kueueInNamespace() {
		return
	}
	mapping, err := c.clients.Resolve(snapshot.ResourceQueued)
	if err != nil {
		return
	}
	api := c.clients.Dynamic.Resource(mapping.Resource).Namespace(c.namespace)
	options := metav1.ListOptions{Limit: chunkSize}
	for {
		page, err := api.List(ctx, options)
		if apierrors.IsForbidden(err) {
			c.gap(snapshot.Gap{Resource: snapshot.ResourceQueued, Reason: fmt.Sprintf("this user may not list %s in namespace %s", snapshot.ResourceQueued, c.namespace)})
		}
		if err != nil {
			return
		}
		for i := range page.Items {
			data, err := page.Items[i].MarshalJSON()
			if err != nil {
				continue
			}
			if workload, err := objects.DecodeAs[snapshot.QueuedWorkload](data); err == nil {
				strip.Strip(workload)
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
		if snapshot.HeldByKueue(workload.Labels, nil) {
			return true
		}
	}
	for _, pod := range c.snapshot.Pods {
		if pod.Namespace == c.namespace && pod.Spec.NodeName == "" && snapshot.HeldByKueue(pod.Labels, pod.Spec.SchedulingGates) {
			return true
		}
	}
	return false
}
