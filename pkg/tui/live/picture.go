// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"sync"
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Picture is the cluster at one moment, and what screens want to know of it,
// each worked out when it is first asked for. It is safe for concurrent use.
type Picture struct {
	source  Source
	Cluster *cluster.Cluster

	Inventory *inventory.Inventory
	// Cost is how long it took to take.
	Cost time.Duration
	// change counts the pictures that were different from the one before.
	change int
	// amended counts the pictures of whose clusters this one was made, see [maxAmended].
	amended int

	// Pools are wanted of every picture: the history is made of them.
	Pools []api.Pool
	// Gaps are the assumptions of a preview, and the gaps in the snapshot, the most
	// important first.
	Gaps []string

	mu sync.Mutex
	// made has the results for the picture, by name.
	made map[string]any
}

// maxAmended limits how many pictures are made from one another: then everything is worked
// out again, because memories, as of expressions, add up.
const maxAmended = 1000

// Take takes a picture of what a source has now. It fails only if the context is done.
func Take(ctx context.Context, source Source) (*Picture, error) {
	return take(ctx, source, source.Snapshot(), nil, nil)
}

// take takes a picture of a snapshot. Where there is one before, and little changed since, it
// costs less.
func take(ctx context.Context, source Source, snap *snapshot.Snapshot, before *Picture, d *cluster.Delta) (*Picture, error) {
	start := time.Now()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("take a picture: %w", err)
	}
	p := &Picture{source: source, made: map[string]any{}}
	if before != nil {
		if p.change = before.change; d.Any() {
			p.change++
		}
	}
	if before != nil && before.amended < maxAmended {
		p.amended = before.amended + 1
		p.Cluster = before.Cluster.With(d)
	} else {
		p.Cluster = cluster.New(snap)
	}
	c := p.Cluster
	p.Inventory = inventory.New(c)
	p.Pools, p.Gaps = p.Inventory.Usage(), inventory.Assumptions(snap)
	p.Cost = time.Since(start)
	return p, nil
}

// since returns the change from a picture to a snapshot, given the change to an earlier one; nil
// if that is not known.
func (p *Picture) since(snap *snapshot.Snapshot, idle *cluster.Delta) *cluster.Delta {
	if idle != nil {
		return idle.Then(snap)
	}
	return cluster.Between(p.Cluster.Snapshot, snap)
}

// Change returns the same for pictures between which nothing changed that an answer depends on.
func (p *Picture) Change() int { return p.change }

// Once returns the result with a name for a picture, and makes it on the first call.
func Once[T any](p *Picture, name string, makes func() (T, error)) (T, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if made, ok := p.made[name].(T); ok {
		return made, nil
	}
	made, err := makes()
	if err == nil {
		p.made[name] = made
	}
	return made, err
}

// Forget drops the result with a name.
func (p *Picture) Forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.made, name)
}

// Explain answers why about one object, with what else is known about it. That
// may be newer than the picture. If it cannot be had, the explanation does
// without.
func (p *Picture) Explain(ctx context.Context, options explain.Options) (*api.Explanation, error) {
	c := p.Cluster
	var more *snapshot.Snapshot
	var err error
	if resource := map[string]string{api.KindClaim: "resourceclaims", api.KindPod: "pods"}[options.Object.Kind]; resource != "" {
		more, err = p.source.Target(ctx, snapshot.Argument{Resource: resource, Namespace: options.Object.Namespace, Name: options.Object.Name})
	} else {
		more, err = p.source.Problems(ctx)
	}
	if err == nil && more != p.Cluster.Snapshot {
		c = c.Amended(more)
	}
	answer, explainErr := answerIn(ctx, c, options)
	if explainErr == nil && err != nil {
		answer.Assumptions = append(answer.Assumptions, "Events could not be read: "+err.Error())
	}
	return answer, explainErr
}

// Claims returns all ResourceClaims with their stages.
func (p *Picture) Claims() []api.Claim {
	claims := p.Inventory.Claims()
	stages := lifecycle.NewStages(p.Cluster)
	for i := range claims {
		claims[i].Stage = string(stages.OfClaim(p.Cluster.Snapshot.Claims[i]))
	}
	return claims
}

// Unread returns the gaps of a picture, none if there is no picture yet.
func (p *Picture) Unread() []string {
	if p == nil {
		return nil
	}
	return p.Gaps
}

// KnowsNamespace reports whether a namespace exists, true if that is not known.
func (p *Picture) KnowsNamespace(name string) bool {
	return name == "" || p == nil || !p.Cluster.Snapshot.NamespaceGone(name)
}

// maxUsers limits how many pods that wait for one claim are asked about.
const maxUsers = 4

// answerIn answers with the pods before it in the queue: where a pod fits, or a claim that pods
// wait for, those that come first may get what it could have.
func answerIn(ctx context.Context, c *cluster.Cluster, options explain.Options) (*api.Explanation, error) {
	answer, err := explain.ExplainWith(ctx, c, options)
	if err != nil || answer.Verdict != api.Fits {
		return answer, err
	}
	var targets []explain.Options
	switch options.Object.Kind {
	case api.KindPod:
		targets = []explain.Options{options}
	case api.KindClaim:
		claim := c.Snapshot.Claim(options.Object.Namespace, options.Object.Name)
		if claim == nil {
			return answer, nil
		}
		for _, pod := range lifecycle.PodsUsing(c.Snapshot, claim) {
			if snapshot.Waits(pod) && len(targets) < maxUsers {
				targets = append(targets, explain.Options{Object: api.RefTo(api.KindPod, pod)})
			}
		}
	}
	if len(targets) == 0 {
		return answer, nil
	}
	queued, err := explain.ExplainEach(ctx, c, targets)
	if err != nil {
		return nil, fmt.Errorf("decide the pods before: %w", err)
	}
	if options.Object.Kind == api.KindPod && queued[0].Err == nil {
		return queued[0].Explanation, nil
	}
	for _, each := range queued {
		if each.Err != nil || each.Explanation.Verdict != api.DoesNotFit || each.Explanation.Code != api.PodsCompete {
			return answer, nil //nolint:nilerr // what was found without the queue is true
		}
	}
	return queued[0].Explanation, nil
}
