// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
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
	snap, alloc := whatif.Evict(v.snap, pods), v.alloc
	for _, pod := range pods {
		r := Replacement{Unknown: unknown}
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
			r.Owner = owner.Kind + "/" + owner.Name
		}
		if r.Unknown == "" {
			var err error
			if alloc, err = alloc.Amended(ctx, snap); err != nil {
				return nil, fmt.Errorf("set up the allocator: %w", err)
			}
			after := replace(limited, alloc, snap, snap.Pod(pod.Namespace, pod.Name))
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("find devices for pod %s/%s: %w", pod.Namespace, pod.Name, err)
			}
			r.Node, r.Unknown = after.node, after.unknown
			if after.snap != nil {
				snap = after.snap
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

// replaced is where a pod fits, and the snapshot with it there.
type replaced struct {
	node, unknown string
	snap          *snapshot.Snapshot
}

// replace looks for the first node that a pod fits on.
func replace(ctx context.Context, alloc *allocator.Allocator, snap *snapshot.Snapshot, pod *corev1.Pod) replaced {
	podClaims := alloc.Facts.Claims.OfPod(pod)
	for i := range podClaims {
		if problem := podClaims[i].Problem; problem != nil && !podClaims[i].Generated {
			return replaced{unknown: problem.Error()}
		}
	}
	nodes, _ := alloc.Facts.Nodes.All()
	for _, node := range nodes {
		if len(alloc.Facts.Nodes.Fit(pod, node)) > 0 {
			continue
		}
		reservation := whatif.Reservation{Pod: pod, Node: node.Name}
		pending, fits := claimsOn(alloc, pod, node, podClaims, &reservation)
		if !fits {
			continue
		}
		switch verdict := alloc.Check(ctx, node, pending); verdict.Outcome {
		case allocator.Fits:
			next := 0
			for i := range reservation.Claims {
				if reservation.Claims[i].Claim.Status.Allocation == nil {
					reservation.Claims[i].Allocation = &verdict.Allocations[next]
					next++
				}
			}
			return replaced{node: node.Name, snap: whatif.Reserve(snap, reservation)}
		case allocator.DoesNotFit, allocator.NodeError:
		case allocator.Cancelled, allocator.TimedOut, allocator.GivenUp:
			return replaced{unknown: "the allocator did not answer in time"}
		case allocator.Failed, allocator.NotTried:
			// The error ends the scheduler's attempt for all nodes.
			return replaced{unknown: "the allocator fails: " + strings.TrimSpace(fmt.Sprint(verdict.Err))}
		}
	}
	return replaced{}
}

// claimsOn are the claims that need devices if the pod comes to a node; false if
// one has devices that cannot be used there.
func claimsOn(alloc *allocator.Allocator, pod *corev1.Pod, node *corev1.Node, podClaims []cluster.PodClaim, reservation *whatif.Reservation) (pending []*resourceapi.ResourceClaim, fits bool) {
	for i := range podClaims {
		claim := podClaims[i].Claim
		reserved := whatif.ClaimReservation{Entry: podClaims[i].Entry, Group: podClaims[i].Group}
		if podClaims[i].ExtendedResources {
			var err error
			if claim, err = alloc.Facts.Claims.ExtendedResourceClaim(pod, node); err != nil {
				return nil, false
			}
			if claim == nil {
				// A device plugin of the node has the resources.
				continue
			}
			reserved.Mappings = cluster.ExtendedResourceMappings(pod, claim)
		}
		if claim.Status.Allocation != nil {
			if available, _ := alloc.Facts.Claims.AvailableOn(claim, node); !available {
				return nil, false
			}
		} else {
			pending = append(pending, claim)
		}
		reserved.Claim = claim
		reservation.Claims = append(reservation.Claims, reserved)
	}
	return pending, true
}
