// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
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

// computeDomain is a ComputeDomain in a snapshot.
type computeDomain struct {
	// ID is the UID in the configuration of claims.
	ID string
	// Object is nil if there is none, or if that is not known.
	Object *snapshot.ComputeDomain
	// Unknown says why it is not known whether it exists, empty if it is.
	Unknown string
	// Nodes are the nodes that have joined, by name.
	Nodes []domainNode
	// Unread says why more nodes may have joined, or be ready, than in Nodes; empty if all
	// are known.
	Unread string
}

// domainNode is a node of a domain in the driver's records.
type domainNode struct {
	Name, Clique, Status string
	// Object and Path locate the record.
	Object api.ObjectRef
	Path   string
}

// Ready reports whether the driver takes the node for ready.
func (n *domainNode) Ready() bool { return n.Status == snapshot.ComputeDomainReady }

// findDomain finds the domain of that ID for a claim of a namespace.
func findDomain(s *snapshot.Snapshot, namespace, id string) *computeDomain {
	d := &computeDomain{ID: id}
	for _, domain := range s.ComputeDomains {
		if string(domain.UID) == id {
			d.Object = domain
		}
	}
	if d.Object == nil {
		d.Unknown = s.Unknown(snapshot.ResourceComputeDomains, namespace)
		return d
	}
	d.Nodes, d.Unread = domainNodes(s, d.Object)
	return d
}

// domainNodes joins the two places where the driver records nodes. Its plugin on the node takes
// a node for ready if either says so (isCurrentNodeReady of
// cmd/compute-domain-kubelet-plugin/computedomain.go).
func domainNodes(s *snapshot.Snapshot, domain *snapshot.ComputeDomain) (nodes []domainNode, unread string) {
	byName := map[string]domainNode{}
	add := func(n domainNode) {
		if _, found := byName[n.Name]; !found || n.Ready() {
			byName[n.Name] = n
		}
	}
	for i := range domain.Status.Nodes {
		n := &domain.Status.Nodes[i]
		add(domainNode{
			// Before release 25.8 only the domain has a status, and its nodes wait for it.
			Name: n.Name, Clique: n.CliqueID, Status: cmp.Or(n.Status, domain.Status.Status),
			Object: api.RefTo(snapshot.KindComputeDomain, domain), Path: fmt.Sprintf("status.nodes[name=%s].status", n.Name),
		})
	}
	for _, clique := range s.Cliques {
		if clique.Labels[snapshot.ComputeDomainLabel] != string(domain.UID) {
			continue
		}
		for i := range clique.Daemons {
			daemon := &clique.Daemons[i]
			add(domainNode{
				Name: daemon.NodeName, Clique: daemon.CliqueID, Status: daemon.Status,
				Object: api.RefTo(snapshot.KindClique, clique), Path: fmt.Sprintf("daemons[nodeName=%s].status", daemon.NodeName),
			})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		nodes = append(nodes, byName[name])
	}
	// The cliques are in the driver's namespace, which nothing names.
	return nodes, s.Unknown(snapshot.ResourceCliques, "")
}

// Node returns the node of that name, nil if it has not joined.
func (d *computeDomain) Node(name string) *domainNode {
	for i := range d.Nodes {
		if d.Nodes[i].Name == name {
			return &d.Nodes[i]
		}
	}
	return nil
}

// ReadyNodes counts the nodes that are ready.
func (d *computeDomain) ReadyNodes() int {
	ready := 0
	for i := range d.Nodes {
		if d.Nodes[i].Ready() {
			ready++
		}
	}
	return ready
}

// DomainProgress says in a clause how many nodes have joined a domain, out of the wanted number
// if that is not zero, and how many of them are ready.
func DomainProgress(joined, ready, wanted int) string {
	text := english.Count(joined, "node") + " joined"
	if wanted > 0 {
		text = fmt.Sprintf("%d of %s (numNodes) joined", joined, english.Count(wanted, "node"))
	}
	return fmt.Sprintf("%s, %d ready", text, ready)
}

// domainDaemons returns the pods that the driver runs for a domain, one on each of its nodes.
func domainDaemons(s *snapshot.Snapshot, id string) []*corev1.Pod {
	var daemons []*corev1.Pod
	for _, pod := range s.Pods {
		if pod.Labels[snapshot.ComputeDomainLabel] == id {
			daemons = append(daemons, pod)
		}
	}
	return daemons
}

// domainDaemonSet returns the DaemonSet for the daemons of a domain, nil if none is known.
func domainDaemonSet(s *snapshot.Snapshot, id string) *snapshot.Workload {
	for _, w := range s.Workloads {
		if w.Kind == snapshot.KindDaemonSet && w.Labels[snapshot.ComputeDomainLabel] == id {
			return w
		}
	}
	return nil
}

// calledNodes returns the nodes that are in a domain or are to join it, by the label that the
// plugin of the driver sets when a pod of the domain gets there.
func calledNodes(s *snapshot.Snapshot, id string) []*corev1.Node {
	var nodes []*corev1.Node
	for _, node := range s.Nodes {
		if node.Labels[snapshot.ComputeDomainLabel] == id {
			nodes = append(nodes, node)
		}
	}
	return nodes
}
