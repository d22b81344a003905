// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/queue"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Waiting lists the pods that wait for a node and for devices, as [WantsDevices] does.
func Waiting(c *cluster.Cluster) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range c.Snapshot.Pods {
		if snapshot.Waits(pod) && WantsDevices(c, pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// QueueOptions are what [DecideQueue] finds out besides who gets what.
type QueueOptions struct {
	// Preempts has pods take the place of others: see [queue.Queue.Preempt].
	Preempts bool
	// Outlook is set if that of pods that do not fit is asked for.
	Outlook bool
}

// DecideQueue decides pods that wait one after another, as [ExplainEach] does, and
// returns what becomes of each of them, in the order of the queue, and the cluster after
// that. Of pods that do not fit, neither remedies nor hints are found. The error is that of
// ctx.
func DecideQueue(ctx context.Context, state *cluster.Cluster, pods []*corev1.Pod, opts QueueOptions) ([]queue.Decision, *cluster.Cluster, error) {
	q := queue.New(explainer(), state)
	q.AddWaiting(pods)
	if opts.Outlook {
		q.FindOutlook()
	}
	if opts.Preempts {
		q.Preempt()
	}
	if err := q.DecideAll(ctx); err != nil {
		return nil, nil, err
	}
	decisions, after := q.Decisions()
	return decisions, after, nil
}
