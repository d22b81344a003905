// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Victims returns the pods on a node, out of some, that would have to be deleted for
// another one to fit there; none of them can stay. Pods of the highest priority stay first,
// and of these the oldest, as in preemption
// (pkg/scheduler/framework/plugins/defaultpreemption). It is nil if the pod does not fit
// with all of them deleted, or fits with none of them deleted.
func Victims(ctx context.Context, c *cluster.Cluster, pod *corev1.Pod, node *corev1.Node, from []*corev1.Pod) ([]*corev1.Pod, error) {
	fits := func(without []*corev1.Pod) (bool, error) {
		after := c
		if len(without) > 0 {
			after = c.Amended(whatif.Delete(c.Snapshot, without))
		}
		r, err := NewAttempt(after, pod).On(ctx, node)
		var undecided *UndecidedError
		if errors.As(err, &undecided) {
			err = nil
		}
		return r != nil, err
	}
	victims := slices.SortedStableFunc(slices.Values(from), func(a, b *corev1.Pod) int {
		return cmp.Or(
			cmp.Compare(ptr.Deref(b.Spec.Priority, 0), ptr.Deref(a.Spec.Priority, 0)),
			started(a).Compare(started(b)),
			strings.Compare(a.Name, b.Name),
		)
	})
	if ok, err := fits(victims); !ok || err != nil {
		return nil, err
	}
	for i := 0; i < len(victims); {
		others := slices.Delete(slices.Clone(victims), i, i+1)
		ok, err := fits(others)
		switch {
		case err != nil:
			return nil, err
		case ok:
			victims = others
		default:
			i++
		}
	}
	return victims, nil
}

// started returns since when a pod runs, as far as that is known.
func started(pod *corev1.Pod) time.Time {
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time
	}
	return pod.CreationTimestamp.Time
}
