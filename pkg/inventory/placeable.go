// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
)

// plainNodes are the nodes on which a pod without tolerations and other conditions
// can be placed. It is safe for concurrent use.
type plainNodes struct {
	facts *cluster.Cluster

	mu sync.Mutex
	// all is nil until it is asked for.
	all    []*corev1.Node
	byName map[string]bool
	// matched has the selectors that were asked about.
	matched map[*corev1.NodeSelector]bool
}

// reach reports whether a device can be used on any of them. A node that is not
// known counts as one.
func (p *plainNodes) reach(d *cluster.Device) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list()
	switch name, all, selector := d.NodeSelection(); {
	case ptr.Deref(name, "") != "":
		plain, known := p.byName[*name]
		return plain || !known
	case ptr.Deref(all, false):
		return len(p.all) > 0
	case selector != nil:
		matches, known := p.matched[selector]
		if !known {
			parsed, err := nodeaffinity.NewNodeSelector(selector)
			matches = err == nil && slices.ContainsFunc(p.all, parsed.Match)
			p.matched[selector] = matches
		}
		return matches
	default:
		return false
	}
}

func (p *plainNodes) list() {
	if p.byName != nil {
		return
	}
	p.byName, p.matched = map[string]bool{}, map[*corev1.NodeSelector]bool{}
	nodes, _ := p.facts.Nodes.All()
	pod := &corev1.Pod{}
	for _, node := range nodes {
		plain := len(p.facts.Nodes.Fit(pod, node)) == 0
		if p.byName[node.Name] = plain; plain {
			p.all = append(p.all, node)
		}
	}
}
