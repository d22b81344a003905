// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// shownNodes is how many unready nodes of a ComputeDomain the head names without -o wide.
const shownNodes = 4

// domainTexts describes the ComputeDomains that the claims of a target name, and which of
// their nodes lack what.
func domainTexts(p *page, e *api.Explanation) []string {
	var said []string
	for i := range e.Claims {
		for j := range e.Claims[i].ComputeDomains {
			domain := &e.Claims[i].ComputeDomains[j]
			said = append(said, english.Capitalized(domainText(domain))+".")
			said = append(said, nodesThatLack(p, domain)...)
		}
	}
	return said
}

// domainText describes a ComputeDomain in a clause.
func domainText(d *api.ComputeDomain) string {
	var parts []string
	switch {
	case d.Name != "":
		parts = append(parts, fmt.Sprintf("ComputeDomain %s is %s: %s", render.Qualified(d.Namespace, d.Name), cmp.Or(d.Status, "without a status"),
			lifecycle.DomainProgress(d.JoinedNodes, d.ReadyNodes, d.NumNodes)))
		if n := cliques(d); n > 1 {
			parts = append(parts, fmt.Sprintf("its nodes are in %d cliques, and only those of the same clique share memory", n))
		}
	case d.Problem == "":
		parts = append(parts, "ComputeDomain "+d.ID+" is not known")
	}
	for _, text := range []string{d.Problem, d.Unknown} {
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "; ")
}

// cliques counts the cliques of the nodes that have joined.
func cliques(d *api.ComputeDomain) int {
	var all []string
	for i := range d.Nodes {
		if node := &d.Nodes[i]; node.Status != "" && node.Clique != "" && !slices.Contains(all, node.Clique) {
			all = append(all, node.Clique)
		}
	}
	return len(all)
}

func nodesThatLack(p *page, d *api.ComputeDomain) []string {
	var said []string
	for i := range d.Nodes {
		if node := &d.Nodes[i]; node.Lacks != "" {
			said = append(said, fmt.Sprintf("Node %s: %s", node.Name, node.Lacks))
		}
	}
	if rest := len(said) - shownNodes; rest > 0 && !p.Opts.Wide {
		said = append(said[:shownNodes], fmt.Sprintf("and %s more: -o wide lists them", english.Count(rest, "node")))
	}
	return said
}
