// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report writes what a cluster is like as one page of HTML that loads nothing: status and
// causes, capacity, a map of the nodes, the answer for what waits, partitions, the queue, usage,
// and histories of a recording. [Of] gathers it, with the answers that every other face shows, and
// [Content.Write] writes it. A [Server] serves the page of a cluster that changes.
//
// The package decides nothing: pkg/cause, pkg/forecast and pkg/inventory answer, pkg/drawing draws,
// and pkg/render has the words. Only pkg/commands imports it.
package report

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

const (
	// mostAnswers is how many answers a page has in full; others are counted.
	mostAnswers = 60
	// mostHistories is how many histories a page has: each follows the whole recording.
	mostHistories = 10
	// mostPools is how many pools with partitions a page draws.
	mostPools = 24
	// mostKeys is how many labels the nodes can be grouped by.
	mostKeys = 5
)

// Options choose the content of a page.
type Options struct {
	// Namespace is the only namespace whose pods count, if it is set.
	Namespace string
	// History returns the history of the answer about an object; nil without a recording.
	History func(ctx context.Context, object explain.Options) (*api.History, error)
	// Snapshot is a snapshot that is put into the page, as gzipped JSON.
	Snapshot []byte
	// Follows is true for a page that is served and follows a cluster.
	Follows bool
	// Version is the version of this program.
	Version string
}

// Content has the answers that a page shows.
type Content struct {
	Options

	Snap   *snapshot.Snapshot
	Status *api.Status
	Causes []render.CauseLine
	// Waiting has the answers for objects that do not run, by owner; More counts the answers that are
	// left out.
	Waiting []*cause.Row
	More    int
	Queue   *api.Plan
	Nodes   []api.ListedNode
	// Keys are the labels by which nodes can be grouped, the most telling first.
	Keys  []string
	Usage []api.Usage
	// Pools are pools with partitions; MorePools counts the others.
	Pools     []Pool
	MorePools int
	Histories []*api.History
}

// Pool is a pool with partitions, and its devices.
type Pool struct {
	api.Pool
	Items []api.Device
}

// Of gathers the content of the page of a cluster. It fails if ctx is done or a check fails.
func Of(ctx context.Context, c *cluster.Cluster, opts Options) (*Content, error) {
	found, err := cause.Find(ctx, c, cause.Options{Namespace: opts.Namespace})
	if err != nil {
		return nil, err
	}
	p := &Content{Options: opts, Snap: c.Snapshot, Status: found.Status, Causes: render.CauseLines(found.Status.Causes)}
	if err := forecast.AddPlaceableTo(ctx, c, found.Status.Capacity); err != nil {
		return nil, err
	}
	if err := p.addWaiting(ctx, found); err != nil {
		return nil, err
	}
	if p.Queue, err = forecast.MakePlan(ctx, c, false); err != nil {
		return nil, err
	}
	if opts.Namespace != "" {
		forecast.PlanWithin(p.Queue, opts.Namespace)
	}
	v := found.Examination.Inventory
	if p.Nodes, err = v.NodeList(ctx); err != nil {
		return nil, err
	}
	p.Keys = keysOf(p.Nodes)
	p.Usage = v.UsageBy(inventory.UsageOf{By: "namespace", Namespace: opts.Namespace})
	if err := p.addPools(ctx, v); err != nil {
		return nil, err
	}
	return p, p.addHistories(ctx)
}

func (p *Content) addWaiting(ctx context.Context, found *cause.Found) error {
	answers, err := found.Answers(ctx, found.Stuck())
	if err != nil {
		return err
	}
	var explanations []*api.Explanation
	for _, a := range answers {
		if a.Err == nil {
			explanations = append(explanations, a.Explanation)
		}
	}
	p.Waiting = found.Rows(explanations)
	if n := len(p.Waiting); n > mostAnswers {
		p.Waiting, p.More = p.Waiting[:mostAnswers], n-mostAnswers
	}
	return nil
}

// addPools adds the pools with partitions, those in use first.
func (p *Content) addPools(ctx context.Context, v *inventory.Inventory) error {
	pools, err := v.Pools(ctx)
	if err != nil {
		return err
	}
	at := map[[2]string]int{}
	for i := range pools {
		if len(pools[i].Counters) > 0 {
			p.Pools = append(p.Pools, Pool{Pool: pools[i]})
		}
	}
	slices.SortStableFunc(p.Pools, func(a, b Pool) int {
		return cmp.Compare(b.Devices.Allocated+b.Devices.Blocked, a.Devices.Allocated+a.Devices.Blocked)
	})
	if n := len(p.Pools); n > mostPools {
		p.Pools, p.MorePools = p.Pools[:mostPools], n-mostPools
	}
	if len(p.Pools) == 0 {
		return nil
	}
	for i := range p.Pools {
		at[[2]string{p.Pools[i].Driver, p.Pools[i].Name}] = i
	}
	devices := v.Devices()
	for i := range devices {
		if j, ok := at[[2]string{devices[i].Driver, devices[i].Pool}]; ok {
			p.Pools[j].Items = append(p.Pools[j].Items, devices[i])
		}
	}
	return nil
}

// addHistories adds the histories of what waits, as far as the recording has it.
func (p *Content) addHistories(ctx context.Context) error {
	if p.History == nil {
		return nil
	}
	for _, row := range p.Waiting[:min(len(p.Waiting), mostHistories)] {
		h, err := p.History(ctx, explain.Options{Object: row.First.Target})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return errors.Join(errors.New("follow "+row.First.Target.Title()), err)
		}
		p.Histories = append(p.Histories, h)
	}
	return nil
}

// keysOf returns the labels that put nodes into a few groups, the most telling first: of racks,
// zones and kinds of machines, and then those with the fewest values.
func keysOf(nodes []api.ListedNode) []string {
	values, labeled := map[string]map[string]bool{}, map[string]int{}
	for i := range nodes {
		for key, value := range nodes[i].Labels {
			if values[key] == nil {
				values[key] = map[string]bool{}
			}
			values[key][value] = true
			labeled[key]++
		}
	}
	var keys []string
	for key := range maps.Keys(values) {
		if n := len(values[key]); n > 1 && n <= max(labeled[key]/2, 2) && key != corev1.LabelHostname {
			keys = append(keys, key)
		}
	}
	rank := func(key string) int {
		for i, word := range []string{"rack", "topology.kubernetes.io/zone", "product", "instance-type"} {
			if strings.Contains(key, word) {
				return i
			}
		}
		return 4 + len(values[key])
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	return keys[:min(len(keys), mostKeys)]
}
