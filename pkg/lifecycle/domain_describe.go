// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// DescribeDomains returns the domains that a claim's configuration for the driver names, each
// once, with their nodes.
func DescribeDomains(s *snapshot.Snapshot, claim *resourceapi.ResourceClaim) []api.ComputeDomain {
	var domains []api.ComputeDomain
	for _, config := range kinds.DomainConfigs(claim) {
		if config.Problem != "" {
			domains = append(domains, api.ComputeDomain{Problem: fmt.Sprintf("the driver does not accept %s of the claim: %s", config.Path, config.Problem)})
			continue
		}
		if slices.ContainsFunc(domains, func(d api.ComputeDomain) bool { return d.ID == config.DomainID }) {
			continue
		}
		domain := findDomain(s, claim.Namespace, config.DomainID)
		described := describeDomain(s, domain)
		described.Problem = domain.Problem(claim, config.Kind)
		domains = append(domains, described)
	}
	return domains
}

// Problem says why the driver does not prepare a claim for the domain, whatever the nodes
// of the domain do; empty if it can, or if that is not known.
func (d *computeDomain) Problem(claim *resourceapi.ResourceClaim, kind string) string {
	switch {
	case d.Unknown != "":
		return ""
	case d.Object == nil:
		return fmt.Sprintf("no ComputeDomain has the UID %s", d.ID)
	case kind == kinds.KindChannel && d.Object.Namespace != claim.Namespace:
		return fmt.Sprintf("it is in namespace %s, and the claim in namespace %s", d.Object.Namespace, claim.Namespace)
	case kind == kinds.KindChannel && d.Object.DeletionTimestamp != nil:
		return "it is being deleted"
	default:
		return ""
	}
}

func describeDomain(s *snapshot.Snapshot, d *computeDomain) api.ComputeDomain {
	out := api.ComputeDomain{ID: d.ID, Unknown: cmp.Or(d.Unknown, d.Unread)}
	if d.Object == nil {
		return out
	}
	out.Namespace, out.Name, out.Status, out.NumNodes = d.Object.Namespace, d.Object.Name, d.Object.Status.Status, d.Object.Spec.NumNodes
	out.JoinedNodes, out.ReadyNodes = len(d.Nodes), d.ReadyNodes()
	for i := range d.Nodes {
		n := &d.Nodes[i]
		out.Nodes = append(out.Nodes, api.ComputeDomainNode{Name: n.Name, Clique: n.Clique, Status: n.Status})
	}
	for _, node := range calledNodes(s, d.ID) {
		if d.Node(node.Name) == nil {
			out.Nodes = append(out.Nodes, api.ComputeDomainNode{Name: node.Name, Clique: node.Labels[snapshot.CliqueLabel]})
		}
	}
	slices.SortFunc(out.Nodes, func(a, b api.ComputeDomainNode) int { return strings.Compare(a.Name, b.Name) })
	for i := range out.Nodes {
		if pod := domainDaemon(s, d.ID, out.Nodes[i].Name); pod != nil {
			out.Nodes[i].Daemon = api.RefTo(api.KindPod, pod)
		}
	}
	return out
}

// domainDaemon returns the pod that the driver runs for a domain on a node, nil if none is known.
// Running pods go before ended ones.
func domainDaemon(s *snapshot.Snapshot, id, node string) *corev1.Pod {
	var found *corev1.Pod
	for _, pod := range domainDaemons(s, id) {
		if pod.Spec.NodeName == node && (found == nil || found.DeletionTimestamp != nil || snapshot.Finished(found)) {
			found = pod
		}
	}
	return found
}
