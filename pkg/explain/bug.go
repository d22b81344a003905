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
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// because finds the bug of the cluster's release that decides about a node.
func because(ctx context.Context, q *eligibility.Question, node *corev1.Node, fits bool) cluster.Behavior {
	claims, err := q.ClaimsFor(node)
	if err != nil {
		return ""
	}
	return allocator.Of(q.Cluster).Because(ctx, node, claims, fits)
}

// bugText names a bug of the cluster's release, and the release that mends it.
func bugText(q *eligibility.Question, because cluster.Behavior) string {
	upstream, fixed := q.Cluster.Fixed(because)
	return fmt.Sprintf("a bug of %s: %s (kubernetes/kubernetes#%d, fixed in %s)", q.Cluster.Scheduler(), because.Text(), upstream, fixed)
}

// byBug says that claims fit because of a bug alone, if so.
func byBug(ctx context.Context, v *verdict.Verdict, placement *api.Placement) string {
	if v.Allocator != api.Fits || placement == nil {
		return ""
	}
	bug := because(ctx, v.Question, v.Cluster.Snapshot.Node(placement.Node), true)
	if bug == "" {
		return ""
	}
	return fmt.Sprintf("the claims fit on node %s only because of %s", placement.Node, bugText(v.Question, bug))
}

// updates proposes the first release without the bugs that keep the claims from devices. The
// reason is for the nodes where a bug decides; both are empty where there is none.
func updates(ctx context.Context, v *verdict.Verdict, out *api.Explanation) ([]api.Remedy, reason, error) {
	var said reason
	at := slices.IndexFunc(out.Nodes, func(g api.NodeGroup) bool { return g.Code == api.SchedulerBug })
	if at < 0 {
		return nil, said, nil
	}
	group := out.Nodes[at]
	out.Nodes = slices.Insert(slices.Delete(out.Nodes, at, at+1), 0, group)
	if group.Verdict == api.DoesNotFit {
		said = reason{what: fmt.Sprintf("%s. Node %s has the devices, but does not get them because of %s", asks(v.Question), group.Names[0], group.Message)}
	}
	node := v.Cluster.Snapshot.Node(group.Names[0])
	for _, fixed := range fixes(v.Cluster) {
		amended := *v.Cluster.Snapshot
		amended.ServerVersion, amended.Emulator = "v"+fixed, ""
		after := v.Cluster.Amended(&amended)
		claims, err := v.ClaimsFor(node)
		if err != nil {
			return nil, said, err
		}
		checked := allocator.Of(after).Check(ctx, node, claims)
		if checked.Outcome != allocator.Fits {
			continue
		}
		remedy := api.Remedy{Actor: api.ActorAdmin, Change: fmt.Sprintf("update kube-scheduler to %s or newer", fixed), Node: node.Name, Nodes: group.Count, Devices: []api.AllocatedDevice{}}
		for i := range checked.Allocations {
			remedy.Devices = append(remedy.Devices, eligibility.PickedDevices(v.Pod, claims[i], &checked.Allocations[i])...)
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
