// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
)

// Facts are what the overview needs of a picture besides what is worked out later: the
// reasons and the findings.
type Facts struct {
	From    *live.Picture
	Classes []api.Class
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
	of   live.Target
	asks []inventory.Ask
}

// NewFacts works out the facts of a picture.
func NewFacts(ctx context.Context, p *live.Picture) (*Facts, error) {
	f := &Facts{From: p}
	var err error
	if f.Classes, err = p.Inventory.Classes(ctx); err != nil {
		return nil, err
	}
	f.teams, f.taints, f.closed = p.Inventory.Teams(), p.Inventory.Taints(), p.Inventory.ClosedNodes(p.Pools)
	f.blocked = lifecycle.NewStages(p.Cluster).BlockedPods()
	for _, claim := range p.Cluster.Snapshot.Claims {
		if p.Inventory.WaitsForPod(claim) {
			f.unused = append(f.unused, claim)
		}
	}
	for _, w := range p.Waiting {
		f.waiting = append(f.waiting, waitingPod{w.Pod, w.Of, p.Inventory.Asks(w.Pod)})
	}
	slices.SortStableFunc(f.waiting, func(a, b waitingPod) int {
		return a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time)
	})
	return f, nil
}

// Remember adds to the history.
func (f *Facts) Remember(h *History, now time.Time) {
	for i := range f.Classes {
		h.add(now, "class "+f.Classes[i].Name, used(&f.Classes[i].DeviceCounts))
	}
	for _, d := range f.From.Drivers() {
		h.add(now, "driver "+d.Name, used(&d.Devices))
	}
	h.add(now, "waiting", float64(len(f.waiting)))
}

// used is the share of devices that claims have.
func used(c *api.DeviceCounts) float64 {
	if c.Total+c.Gone == 0 {
		return 0
	}
	return float64(c.Allocated+c.Shared+c.Gone) / float64(c.Total+c.Gone)
}
