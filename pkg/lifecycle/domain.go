// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

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
