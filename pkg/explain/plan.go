// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Decision is the outcome for one pod of the queue.
type Decision struct {
	Pod *corev1.Pod
	// Answer is for the cluster as it is, before anything was reserved. Equal pods
	// share it: it is about the first one of them.
	Answer *api.Explanation
	// Reservation is the reservation for the pod, nil if it gets nothing.
	Reservation *whatif.Reservation
	// Before are the pods that get what it could have, if it fits without them.
	Before []*corev1.Pod
	// Group is the name of the PodGroup that it is placed with, empty for none. Gang is
	// what becomes of that, nil if there is none, and MinCount is how many pods of it are
	// placed at the same time.
	Group    string
	Gang     *target.Gang
	MinCount int
	// Preempts are the pods whose place it takes, PreemptedBy is the pod that takes its
	// place; see [QueueOptions].
	Preempts    []*corev1.Pod
	PreemptedBy *corev1.Pod
	// Undecided is set if the allocator had no answer after others were placed.
	Undecided error
}

// Why says why a pod gets nothing, with the pods that get what it could have or what it
// lacks.
func (d *Decision) Why() (api.Code, string) {
	switch {
	case d.Gang != nil && d.Gang.Short(d.Group, d.MinCount) != "":
		return api.GangIncomplete, english.Sentence(d.Gang.Short(d.Group, d.MinCount))
	case d.Answer.Verdict == api.Fits && len(d.Before) > 0:
		names := make([]string, 0, len(d.Before))
		for _, pod := range d.Before {
			names = append(names, pod.Namespace+"/"+pod.Name)
		}
		verb := "get"
		if len(names) == 1 {
			verb = "gets"
		}
		return api.PodsCompete, fmt.Sprintf("%s before it in the queue %s what it could have: %s.", english.Count(len(names), "pod"), verb, english.Sample(names, 3))
	default:
		return d.Answer.Code, d.Answer.Summary
	}
}

// QueueOptions select further results of [DecideQueue].
type QueueOptions struct {
	// Preempts has pods take the place of others: see [verdict.Options].
	Preempts bool
	// Outlook is set to find the outlook of pods that do not fit.
	Outlook bool
}

// DecideQueue decides pods that wait one after another, as [ExplainEach] does, and
// returns what becomes of each of them, in the order of the queue, and the cluster after
// that. Of pods that do not fit, neither remedies nor hints are found. The error is from
// ctx.
func DecideQueue(ctx context.Context, c *cluster.Cluster, pods []*corev1.Pod, opts QueueOptions) ([]Decision, *cluster.Cluster, error) {
	q := verdict.NewQueue(c, verdict.Options{Planned: true, Shares: true, Waiting: pods, Preempts: opts.Preempts})
	for _, pod := range pods {
		q.AddPod(target.WithClassPriority(c.Snapshot, pod))
	}
	most := reasonsOnly
	if opts.Outlook {
		most = withOutlook
	}
	a, err := explainQueue(ctx, c, q, most)
	if err != nil {
		return nil, nil, err
	}
	var list []Decision
	for _, p := range q.Pods() {
		if !p.Asked {
			continue
		}
		d := Decision{Pod: p.Pod, Reservation: p.Reservation, Undecided: p.Undecided, Preempts: p.Preempts}
		if d.Answer, err = a.of(ctx, p.Kind, most); err != nil {
			return nil, nil, err
		}
		if p.PreemptedBy != nil {
			d.PreemptedBy = p.PreemptedBy.Pod
		}
		for _, other := range p.Before {
			d.Before = append(d.Before, other.Pod)
		}
		if d.Group, d.MinCount, d.Gang = p.Group(); d.Gang != nil && !p.Gets() {
			d.Reservation = nil
		}
		list = append(list, d)
	}
	return list, q.After, nil
}
