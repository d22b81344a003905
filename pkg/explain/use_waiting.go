// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// maxUseAsked is for how many kinds of equal pods it is found out why they do not get the
// devices, and for how many claims that no pod uses.
const maxUseAsked = 64

// deviceUses is the work on one explanation.
type deviceUses struct {
	cluster *cluster.Cluster

	// nodes are the nodes for which devices are checked.
	nodes      []*corev1.Node
	inspection *Inspection
	out        *api.UseExplanation
}

func newDeviceUses(c *cluster.Cluster, nodes []*corev1.Node) *deviceUses {
	in := NewInspection(c, nodes)
	return &deviceUses{
		cluster: c, nodes: nodes, inspection: in,
		out: &api.UseExplanation{
			TypeMeta:  metav1.TypeMeta{APIVersion: api.APIVersion, Kind: "UseExplanation"},
			Allocator: in.Allocator(), Assumptions: in.Assumptions,
		},
	}
}

// waiting lists the pods that wait, equal ones together, in the order of the queue, and
// the claims that wait for a pod. Where there are too many of either, those whose class
// selects one of the devices come before all others, and the rest is only counted.
func (w *deviceUses) waiting(ctx context.Context, devices []*cluster.Device) ([][]*corev1.Pod, []*resourceapi.ResourceClaim) {
	concerned := w.concerned(ctx, devices)
	all := verdict.Kinds(w.cluster)
	for _, pods := range all {
		w.out.WaitingPods += len(pods)
	}
	var unused []*resourceapi.ResourceClaim
	for _, claim := range w.cluster.Snapshot.Claims {
		if snapshot.Pending(claim) && !slices.ContainsFunc(lifecycle.PodsUsing(w.cluster.Snapshot, claim), snapshot.Waits) {
			unused = append(unused, claim)
		}
	}
	kinds, cut := limitConcerned(all, func(pods []*corev1.Pod) bool {
		return slices.ContainsFunc(w.cluster.Claims.OfPod(pods[0]), func(pc cluster.PodClaim) bool { return pc.Claim == nil || concerned(pc.Claim) })
	})
	claims, cutClaims := limitConcerned(unused, concerned)
	if len(cut)+len(cutClaims) == 0 {
		return kinds, claims
	}
	left := &api.NotExplained{Kinds: len(cut), Claims: len(cutClaims)}
	for _, c := range cut {
		left.Pods += len(c.item)
		if c.concerned {
			left.SelectingKinds++
		}
	}
	w.out.NotExplained = left
	return kinds, claims
}

// leftOut is something that waits and is only counted.
type leftOut[T any] struct {
	item      T
	concerned bool
}

// limitConcerned cuts a list to [maxAsked], in its order. Those that are concerned stay as long
// as there are others to leave out.
func limitConcerned[T any](list []T, concerned func(T) bool) (kept []T, cut []leftOut[T]) {
	if len(list) <= maxUseAsked {
		return list, nil
	}
	room := maxUseAsked
	is := make([]bool, len(list))
	for i, item := range list {
		if is[i] = concerned(item); is[i] {
			room--
		}
	}
	others := max(room, 0)
	for i, item := range list {
		keep := is[i] && len(kept) < maxUseAsked
		if !is[i] && others > 0 {
			keep, others = true, others-1
		}
		if keep {
			kept = append(kept, item)
		} else {
			cut = append(cut, leftOut[T]{item, is[i]})
		}
	}
	return kept, cut
}

// concerned reports whether a claim has a request for a class that selects one of the
// devices, or may do so: one whose selector fails ends the attempt for all nodes.
func (w *deviceUses) concerned(ctx context.Context, devices []*cluster.Device) func(*resourceapi.ResourceClaim) bool {
	known := map[string]bool{}
	selects := func(name string) bool {
		class := w.cluster.Snapshot.Class(name)
		return class != nil && slices.ContainsFunc(devices, func(d *cluster.Device) bool { return w.inspection.MaySelect(ctx, class, d) })
	}
	return func(claim *resourceapi.ResourceClaim) bool {
		for _, request := range cluster.Requests(claim) {
			for _, alternative := range request {
				name := alternative.Class
				if _, asked := known[name]; !asked {
					known[name] = selects(name)
				}
				if known[name] {
					return true
				}
			}
		}
		return false
	}
}

// notAllText says that the pods that were left out could decide about a device. It is empty
// if they could not.
func notAllText(left *api.NotExplained) string {
	if left == nil || left.SelectingKinds == 0 {
		return ""
	}
	return fmt.Sprintf("%s of pods with a class that selects it, beyond the first %d, are only counted", english.Count(left.SelectingKinds, "more kind"), maxUseAsked)
}
