// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
)

// facts are what the overview needs of a picture besides what is worked out later: the
// reasons and the findings.
type facts struct {
	from    *picture
	classes []api.Class
	teams   []inventory.Team
	taints  []api.Taint
	closed  []inventory.ClosedNode
	blocked []lifecycle.BlockedPod
	waiting []waitingPod
	// unused are the pending claims that no pod uses.
	unused []*resourceapi.ResourceClaim
}

// waitingPod is a pod that waits for devices.
type waitingPod struct {
	pod *corev1.Pod
	// of is what its reason is known by.
	of   target
	asks []inventory.Ask
}

func newFacts(ctx context.Context, p *picture) (*facts, error) {
	f := &facts{from: p}
	var err error
	if f.classes, err = p.inventory.Classes(ctx); err != nil {
		return nil, err
	}
	f.teams, f.taints, f.closed = p.inventory.Teams(), p.inventory.Taints(), p.inventory.ClosedNodes(p.pools)
	f.blocked = lifecycle.NewStages(p.alloc.Facts, p.snap).BlockedPods()
	for _, claim := range p.snap.Claims {
		if isPending(claim) && p.inventory.WaitsForPod(claim) {
			f.unused = append(f.unused, claim)
		}
	}
	for _, pod := range p.snap.Pods {
		if !inventory.Waits(pod) {
			continue
		}
		if of, waits := p.waitsFor(pod); waits {
			f.waiting = append(f.waiting, waitingPod{pod, of, p.inventory.Asks(pod)})
		}
	}
	slices.SortStableFunc(f.waiting, func(a, b waitingPod) int {
		return a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time)
	})
	return f, nil
}

// waitsFor is what the reason of a pod without a node is known by: its first pending
// claim, or the pod itself. It is false for a pod that wants no devices.
func (p *picture) waitsFor(pod *corev1.Pod) (of target, waits bool) {
	if p.waits(pod) {
		return podTarget(pod), true
	}
	for _, pc := range p.alloc.Facts.Claims.OfPod(pod) {
		if pc.Claim != nil && isPending(pc.Claim) && p.snap.Claim(pc.Claim.Namespace, pc.Claim.Name) != nil {
			return claimTarget(pc.Claim.Namespace, pc.Claim.Name), true
		}
	}
	return target{}, false
}

// remember adds to the history.
func (f *facts) remember(h *history, now time.Time) {
	for i := range f.classes {
		h.add(now, "class "+f.classes[i].Name, used(&f.classes[i].DeviceCounts))
	}
	for _, d := range f.from.drivers() {
		h.add(now, "driver "+d.name, used(&d.devices))
	}
	h.add(now, "waiting", float64(len(f.waiting)))
}
