// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/simulate"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// replacementTime is how long the allocator is asked about the replacements of
// all pods together.
const replacementTime = 5 * time.Second

// Replacement says what becomes of a pod after its eviction.
type Replacement struct {
	// Owner is the controller of the pod, as Kind/name; empty for a bare pod,
	// which nothing creates again.
	Owner string
	// Node is one where a pod like it fits, empty if there is none.
	Node string
	// Unknown is why it was not decided whether there is one, empty if it was.
	Unknown string
}

// Replacements asks the allocator where pods fit once all of them are evicted,
// one after another in the order of the scheduler's queue (priority, then age),
// with the devices of the earlier ones reserved. Bare pods come last: nothing
// creates them again, so that they take nothing from the others. The result is by
// namespace/name. It fails only if ctx is done.
func (v *Inventory) Replacements(ctx context.Context, pods []*corev1.Pod) (map[string]Replacement, error) {
	found := map[string]Replacement{}
	unknown := replacementsUnknown(v.facts)
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(compareBare(a, b), cmp.Compare(ptr.Deref(b.Spec.Priority, 0), ptr.Deref(a.Spec.Priority, 0)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
	})
	limited, cancel := context.WithTimeout(ctx, replacementTime)
	defer cancel()
	state, err := (&simulate.State{Snap: v.snap, Alloc: v.alloc}).Evict(ctx, pods...)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		r := Replacement{Unknown: unknown}
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
			r.Owner = owner.Kind + "/" + owner.Name
		}
		if r.Unknown == "" {
			var placed *whatif.Reservation
			placed, r.Unknown = replace(limited, state, state.Snap.Pod(pod.Namespace, pod.Name))
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("find devices for pod %s/%s: %w", pod.Namespace, pod.Name, err)
			}
			if placed != nil {
				r.Node = placed.Node
				if state, err = state.Reserve(ctx, placed); err != nil {
					return nil, err
				}
			}
		}
		found[pod.Namespace+"/"+pod.Name] = r
	}
	return found, nil
}

// compareBare sorts pods that nothing creates again behind the others.
func compareBare(a, b *corev1.Pod) int {
	switch bareA, bareB := metav1.GetControllerOfNoCopy(a) == nil, metav1.GetControllerOfNoCopy(b) == nil; {
	case bareA == bareB:
		return 0
	case bareA:
		return 1
	default:
		return -1
	}
}

// replacementsUnknown is why it cannot be told where pods fit.
func replacementsUnknown(facts *cluster.Cluster) string {
	for _, resource := range []string{snapshot.ResourceSlices, snapshot.ResourceNodes, snapshot.ResourceClaims, snapshot.ResourcePods, snapshot.ResourceTaintRules, snapshot.ResourceClasses} {
		if facts.Snapshot.Gap(resource) != nil {
			return resource + " could not be read"
		}
	}
	return ""
}

// replace looks for the first node that a pod fits on, or says why that is not known.
func replace(ctx context.Context, state *simulate.State, pod *corev1.Pod) (r *whatif.Reservation, unknown string) {
	if problem := state.Attempt(pod).Problem(); problem != nil {
		return nil, problem.Error()
	}
	r, err := state.Place(ctx, pod, nil)
	var undecided *simulate.UndecidedError
	switch {
	case errors.As(err, &undecided) && !errors.Is(err, context.DeadlineExceeded):
		return nil, "the allocator fails: " + strings.TrimSpace(undecided.Err.Error())
	case err != nil:
		return nil, "the allocator did not answer in time"
	}
	return r, ""
}
