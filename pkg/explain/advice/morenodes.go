// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// maxNewNodes limits how many groups of nodes are tried, those with most nodes first.
const maxNewNodes = 16

// oneMoreNode decides for each group of equivalent nodes whether the claims would fit
// on one more of them: its own devices are free and it has no pods. What it would
// share with other nodes is in use as now.
func (c *OutlookCase) oneMoreNode(ctx context.Context, all *amended) ([]api.NewNode, error) {
	a := all
	if shared := c.sharedPools(); len(shared) > 0 {
		var err error
		a, err = c.about(whatif.Leave(c.Cluster.Snapshot, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" && !c.isOwn(pod) },
			func(_ *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) bool {
				return !shared[snapshot.PoolID{Driver: result.Driver, Name: result.Pool}]
			}))
		if err != nil || a == nil {
			return nil, err
		}
	}
	var list []api.NewNode
	for _, group := range a.groups() {
		node := group[0]
		n := api.NewNode{Like: node.Name, NodeCount: len(group), Verdict: api.DoesNotFit}
		stays, depends := a.staying(node)
		switch {
		case stays != "":
			n.Message = stays
		case depends:
			n.Verdict, n.Message = api.Undetermined, "it depends on where other pods are"
		default:
			fits, err := a.fits(ctx, node, false)
			switch {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case err != nil:
				n.Verdict, n.Message = api.Undetermined, "the search on the node did not end"
			case fits:
				p := a.fitting(ctx, node, nil, false)
				n.Verdict, n.Message = p.Verdict, p.Message
			default:
				if one, err := a.on(ctx, node, false); err == nil {
					n.Message = NewReasons(one, nil, a.Confirmer).WhyNot(ctx, node).Message
				}
			}
		}
		list = append(list, n)
	}
	order := []api.Verdict{api.Fits, api.Undetermined, api.DoesNotFit}
	slices.SortStableFunc(list, func(a, b api.NewNode) int {
		return cmp.Compare(slices.Index(order, a.Verdict), slices.Index(order, b.Verdict))
	})
	return list, nil
}

// sharedPools returns the pools with devices in use that several nodes can reach.
func (c *OutlookCase) sharedPools() map[snapshot.PoolID]bool {
	shared := map[snapshot.PoolID]bool{}
	seen := map[*cluster.NodePool]bool{}
	for _, pools := range c.Reach.Pools {
		for _, pool := range pools {
			if pool.Local || seen[pool] {
				continue
			}
			seen[pool] = true
			if slices.ContainsFunc(pool.Devices, func(d cluster.Device) bool { return c.Cluster.Usage.InUse(d.ID) }) {
				shared[snapshot.PoolID{Driver: pool.Pool.Driver, Name: pool.Pool.Name}] = true
			}
		}
	}
	return shared
}

// groups puts the nodes with devices together that are equivalent for the claims,
// and from which the same keeps the pod away.
func (a *amended) groups() [][]*corev1.Node {
	var nodes []*corev1.Node
	all, _ := a.q.Cluster.Nodes.All()
	for _, node := range all {
		if len(a.q.Reach.Pools[node.Name]) > 0 {
			nodes = append(nodes, node)
		}
	}
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return english.CompareNames(a.Name, b.Name) })
	at := map[string]int{}
	var groups [][]*corev1.Node
	for _, same := range a.equivalent(nodes) {
		clear(at)
		for _, node := range same {
			key, _ := a.staying(node)
			i, known := at[key]
			if !known {
				i = len(groups)
				at[key] = i
				groups = append(groups, nil)
			}
			groups[i] = append(groups[i], node)
		}
	}
	slices.SortStableFunc(groups, func(a, b []*corev1.Node) int { return cmp.Compare(len(b), len(a)) })
	return groups[:min(len(groups), maxNewNodes)]
}

// staying returns what would keep the pod away from a new node that is like this one, and
// whether other pods might.
func (a *amended) staying(node *corev1.Node) (reason string, depends bool) {
	if a.q.Pod != nil && cluster.SelectsByName(a.q.Pod, node) {
		return "the pod selects node " + node.Name + " by its name", false
	}
	for _, u := range a.q.Reach.Misfits[node.Name] {
		m := &u.Misfit
		switch {
		case u.Claim != nil:
			return m.Reason, false
		case dependsOnPods(m):
			// Nothing runs on the new node.
			depends = depends || m.Label != corev1.LabelHostname
		case m.Filter == cluster.FilterTaint && !cluster.SetByKubernetes(&m.Taint), !m.PassesWhenEmpty():
			return m.Reason, false
		}
	}
	return "", depends
}
