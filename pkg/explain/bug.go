// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// because finds the bug of the cluster's release that decides about a node.
func (x *builder) because(ctx context.Context, node *corev1.Node, fits bool) cluster.Behavior {
	claims, err := x.ClaimsFor(node)
	if err != nil {
		return ""
	}
	return allocator.Of(x.Cluster).Because(ctx, node, claims, fits)
}

// bugText names a bug of the cluster's release, and the release that mends it.
func bugText(q *eligibility.Question, because cluster.Behavior) string {
	upstream, fixed := q.Cluster.Fixed(because)
	return fmt.Sprintf("a bug of %s: %s (kubernetes/kubernetes#%d, fixed in %s)", q.Cluster.Scheduler(), because.Text(), upstream, fixed)
}

// byBug says that claims fit because of a bug alone, if so.
func (x *builder) byBug(ctx context.Context) string {
	if x.Allocator != api.Fits || x.out.Placement == nil {
		return ""
	}
	because := x.because(ctx, x.Cluster.Snapshot.Node(x.out.Placement.Node), true)
	if because == "" {
		return ""
	}
	return fmt.Sprintf("the claims fit on node %s only because of %s", x.out.Placement.Node, bugText(x.Question, because))
}

// updates proposes the first release without the bugs that keep the claims from devices. The
// reason is for the nodes where a bug decides; both are empty where there is none.
func (x *builder) updates(ctx context.Context) ([]api.Remedy, reason, error) {
	var said reason
	at := slices.IndexFunc(x.out.Nodes, func(g api.NodeGroup) bool { return g.Code == api.SchedulerBug })
	if at < 0 {
		return nil, said, nil
	}
	group := x.out.Nodes[at]
	x.out.Nodes = slices.Insert(slices.Delete(x.out.Nodes, at, at+1), 0, group)
	if group.Verdict == api.DoesNotFit {
		said = reason{what: fmt.Sprintf("%s. Node %s has the devices, but does not get them because of %s", asks(x.Question), group.Names[0], group.Message)}
	}
	node := x.Cluster.Snapshot.Node(group.Names[0])
	for _, fixed := range fixes(x.Cluster) {
		amended := *x.Cluster.Snapshot
		amended.ServerVersion, amended.Emulator = "v"+fixed, ""
		after := x.Cluster.Amended(&amended)
		claims, err := x.ClaimsFor(node)
		if err != nil {
			return nil, said, err
		}
		verdict := allocator.Of(after).Check(ctx, node, claims)
		if verdict.Outcome != allocator.Fits {
			continue
		}
		remedy := api.Remedy{Actor: api.ActorAdmin, Change: fmt.Sprintf("update kube-scheduler to %s or newer", fixed), Node: node.Name, Nodes: group.Count, Devices: []api.AllocatedDevice{}}
		for i := range verdict.Allocations {
			remedy.Devices = append(remedy.Devices, eligibility.PickedDevices(x.Pod, claims[i], &verdict.Allocations[i])...)
		}
		return []api.Remedy{remedy}, said, nil
	}
	return nil, said, ctx.Err()
}

// fixes returns the releases that end a behavior of the cluster's scheduler, the first one
// first.
func fixes(facts *cluster.Cluster) []string {
	var list []*version.Version
	for _, change := range cluster.BehaviorChanges() {
		if _, fixed := facts.Fixed(change.Behavior); facts.Behaves(change.Behavior) && fixed != "" {
			list = append(list, version.MustParseGeneric(fixed))
		}
	}
	slices.SortFunc(list, func(a, b *version.Version) int {
		if a.LessThan(b) {
			return -1
		}
		return 1
	})
	names := make([]string, 0, len(list))
	for _, v := range list {
		names = append(names, v.String())
	}
	return slices.Compact(names)
}
