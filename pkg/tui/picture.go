// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/stale"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/brief"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
)

// picture is the cluster at one moment, and what screens want to know of it,
// each worked out when it is first asked for. It is safe for concurrent use.
type picture struct {
	source    Source
	snap      *snapshot.Snapshot
	alloc     *allocator.Allocator
	inventory *inventory.Inventory
	// cost is how long it took to take.
	cost time.Duration
	// change counts the pictures that were different from the one before.
	change int
	// reasons, diagnosis and look are those of the dashboard.
	reasons   *reasons
	diagnosis *diagnosis
	look      *look.Look

	// pools are wanted of every picture: the history is made of them.
	pools []api.Pool
	// waiting are the pods that wait for devices and that no pending claim stands
	// for: their claims do not exist yet, or have their devices.
	waiting []*corev1.Pod
	waitSet map[*corev1.Pod]bool
	// columns are those that are wanted of a view, by its name; all where there are none.
	columns map[string][]string
	// troubles are for the window title and the bell.
	troubles troubles

	mu       sync.Mutex
	contents map[viewID]content
}

// takePicture fails only if the context is done, or if the allocator cannot be
// set up.
func takePicture(ctx context.Context, source Source, reasons *reasons, diagnosis *diagnosis, l *look.Look) (*picture, error) {
	start := time.Now()
	snap := source.Snapshot()
	alloc, err := allocator.New(ctx, cluster.New(snap))
	if err != nil {
		return nil, fmt.Errorf("set up the allocator: %w", err)
	}
	p := &picture{
		source: source, snap: snap, alloc: alloc, inventory: inventory.New(alloc, snap),
		reasons: reasons, diagnosis: diagnosis, look: l, contents: map[viewID]content{},
	}
	p.pools = p.inventory.Usage()
	p.waiting, p.waitSet = waitingPods(snap, alloc), map[*corev1.Pod]bool{}
	for _, pod := range p.waiting {
		p.waitSet[pod] = true
	}
	p.cost = time.Since(start)
	return p, nil
}

// follow compares a picture with the one before. Reasons that what changed cannot have made
// wrong are kept.
func (p *picture) follow(before *picture) {
	p.change = before.change
	if c := stale.Between(before.snap, p.snap); c.Any() {
		p.change++
		p.reasons.keep(c, before.change, p.change)
	}
}

// explain answers why about one object, with what else is known about it. That
// may be newer than the picture. If it cannot be had, the explanation does
// without.
func (p *picture) explain(ctx context.Context, options explain.Options) (*api.Explanation, error) {
	snap, alloc := p.snap, p.alloc
	resource := map[string]string{api.KindClaim: "resourceclaims", api.KindPod: "pods"}[options.Kind]
	more, err := p.source.Target(ctx, snapshot.ObjectRef{Resource: resource, Namespace: options.Namespace, Name: options.Name})
	if err == nil && more != p.snap {
		if snap = more; ctx.Err() == nil {
			if alloc, err = allocator.New(ctx, cluster.New(snap)); err != nil {
				return nil, fmt.Errorf("set up the allocator: %w", err)
			}
		}
	}
	answer, explainErr := explain.ExplainWith(ctx, alloc, snap, options)
	if explainErr == nil && err != nil {
		answer.Assumptions = append(answer.Assumptions, "Events could not be read: "+err.Error())
	}
	return answer, explainErr
}

// claims are all ResourceClaims with their stages.
func (p *picture) claims() []api.Claim {
	claims := p.inventory.Claims()
	stages := lifecycle.NewStages(p.alloc.Facts, p.snap)
	for i := range claims {
		claims[i].Stage = string(stages.OfClaim(p.snap.Claims[i]))
	}
	return claims
}

// waitingPods lists the pods without a node that use devices, but for those with a
// claim that is pending.
func waitingPods(snap *snapshot.Snapshot, alloc *allocator.Allocator) []*corev1.Pod {
	var waiting []*corev1.Pod
	for _, pod := range snap.Pods {
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		pending := func(pc cluster.PodClaim) bool {
			return pc.Claim != nil && isPending(pc.Claim) && snap.Claim(pc.Claim.Namespace, pc.Claim.Name) != nil
		}
		if explain.WantsDevices(snap, alloc, pod) && !slices.ContainsFunc(alloc.Facts.Claims.OfPod(pod), pending) {
			waiting = append(waiting, pod)
		}
	}
	return waiting
}

// waits reports whether a pod is one of those.
func (p *picture) waits(pod *corev1.Pod) bool { return p.waitSet[pod] }

// isPending reports whether a claim waits for devices.
func isPending(claim *resourceapi.ResourceClaim) bool {
	return claim.Status.Allocation == nil && claim.DeletionTimestamp == nil
}

// drivers sums the pools up by driver.
func (p *picture) drivers() []driverUse {
	var list []driverUse
	for i := range p.pools {
		pool := &p.pools[i]
		if i == 0 || list[len(list)-1].name != pool.Driver {
			list = append(list, driverUse{name: pool.Driver})
		}
		list[len(list)-1].add(pool)
	}
	return list
}

// driverUse is what there is of one driver.
type driverUse struct {
	name    string
	pools   int
	broken  int
	devices api.DeviceCounts
}

func (d *driverUse) add(pool *api.Pool) {
	d.pools++
	if pool.State != api.PoolStateUsable && pool.State != api.PoolStateEmpty {
		d.broken++
	}
	inventory.AddCounts(&d.devices, pool.Devices)
}

// next is the pending claim or the waiting pod whose reason is most wanted: one
// without any first, then the one whose reason is the oldest. It is false if the
// picture has nothing new about any. Reasons of what does not wait any more are dropped.
func (r *reasons) next(p *picture, now time.Time) (target, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted := map[target]bool{}
	var oldest target
	var since time.Time
	want := func(of target) {
		wanted[of] = true
		known, ok := r.known[of]
		switch {
		case ok && known.current(p, now):
		case !ok && (oldest == target{} || !since.IsZero()):
			oldest, since = of, time.Time{}
		case ok && (oldest == target{} || known.at.Before(since)):
			oldest, since = of, known.at
		}
	}
	for _, claim := range p.snap.Claims {
		if isPending(claim) {
			want(claimTarget(claim.Namespace, claim.Name))
		}
	}
	for _, pod := range p.waiting {
		want(podTarget(pod))
	}
	maps.DeleteFunc(r.known, func(of target, _ reason) bool { return !wanted[of] })
	return oldest, oldest != target{}
}

// work works out one reason. It is false if the context is done.
func (r *reasons) work(ctx context.Context, p *picture, of target, now time.Time) bool {
	start := time.Now()
	answer, err := explain.ExplainWith(ctx, p.alloc, p.snap, explain.Options{Kind: of.kind, Namespace: of.namespace, Name: of.name})
	if ctx.Err() != nil {
		return false
	}
	found := reason{of: p.change, at: now, took: time.Since(start)}
	if err != nil {
		found.code, found.summary = string(api.Undetermined), strings.ReplaceAll(err.Error(), "\n", "; ")
	} else {
		found.code, found.stage, found.outlook, found.summary = explain.Word(answer), string(answer.Stage), string(explain.When(answer)), answer.Summary
		found.actor, found.remedies = explain.Actor(answer), render.RemedyLines(answer)
		found.answer = brief.Trim(answer)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[of] = found
	r.found++
	return true
}
