// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// chooseView goes to any view.
func (m *Model) chooseView() tea.Cmd {
	ids := make([]views.ID, 0, len(m.views)+1)
	for id := range m.views {
		ids = append(ids, views.ID(id))
	}
	ids = append(ids, views.Pods, views.Findings)
	return choose(m.host, "go to", func() []widget.Found {
		items := make([]widget.Found, 0, len(ids))
		for _, id := range ids {
			digit := ""
			if id < views.Pods {
				digit = id.Key()
			}
			items = append(items, widget.Found{Kind: digit, Name: id.String()})
		}
		if m.opts.Contexts != nil {
			items = append(items, widget.Found{Name: contextsName})
		}
		return append(items, widget.Found{Name: quitName})
	}, func(item widget.Found) tea.Cmd {
		switch item.Name {
		case contextsName:
			return m.chooseContext()
		case quitName:
			return tea.Quit
		}
		for _, id := range ids {
			if id.String() == item.Name {
				return m.goTo(id)
			}
		}
		return nil
	})
}

// quitName ends the dashboard, where views are chosen.
const quitName = "quit"

// chooseObject finds an object by its name, and selects it in a list of its kind, which leads back
// to where one was.
func (m *Model) chooseObject() tea.Cmd {
	p := m.live.Picture()
	if p == nil {
		m.message = "nothing is known yet"
		return nil
	}
	kinds := map[string]views.ID{"pod": views.Pods, "claim": views.Claims, "device": views.Devices, "node": views.Nodes, "class": views.Classes, "pool": views.Pools}
	return choose(m.host, "find", func() []widget.Found { return names(p) }, func(item widget.Found) tea.Cmd {
		if space, _, _ := strings.Cut(item.Name, "/"); (item.Kind == "pod" || item.Kind == "claim") && space != m.namespace {
			// What is found is shown whatever its namespace.
			m.namespace = ""
		}
		if item.Kind == "node" && !slices.ContainsFunc(p.Inventory.Nodes(), func(n inventory.Node) bool { return n.Scope == item.Name }) {
			// The list has nodes with devices.
			m.message = "node " + item.Name + " has no devices"
			return m.push(newPage(views.YAMLText(&inventory.Node{Node: api.Node{Name: item.Name}})))
		}
		found := newList(kinds[item.Kind], views.Scope{})
		if nodes := m.first.nodes.chart; item.Kind == "node" && nodes != nil {
			found.chart = &nodeMap{table: &found.table, by: nodes.by, order: nodes.order}
		}
		found.table.Choose(item.Name)
		return m.push(found)
	})
}

// names returns the names of all objects that have a list.
func names(p *live.Picture) []widget.Found {
	var items []widget.Found
	add := func(kind, name string) { items = append(items, widget.Found{Kind: kind, Name: name}) }
	pods := p.Inventory.Pods()
	for i := range pods {
		add("pod", pods[i].Namespace+"/"+pods[i].Name)
	}
	for _, claim := range p.Cluster.Snapshot.Claims {
		add("claim", claim.Namespace+"/"+claim.Name)
	}
	for _, class := range p.Cluster.Snapshot.Classes {
		add("class", class.Name)
	}
	for _, node := range p.Cluster.Snapshot.Nodes {
		add("node", node.Name)
	}
	for i := range p.Pools {
		add("pool", inventory.PoolName(&p.Pools[i]))
	}
	devices := p.Inventory.Devices()
	for i := range devices {
		add("device", inventory.DeviceName(&devices[i]))
	}
	return items
}

// goTo shows a view.
func (m *Model) goTo(id views.ID) tea.Cmd {
	if id < views.Pods {
		return m.show(id)
	}
	if id == views.Findings {
		m.view = views.Causes
	}
	// Pods belong to no view: it leads back to the one from which somebody came.
	m.stack = []screen{m.views[m.view]}
	return m.push(newList(id, views.Scope{}))
}

// show goes to a view.
func (m *Model) show(id views.ID) tea.Cmd {
	for other, view := range m.views {
		if list, ok := view.(*listScreen); ok && views.ID(other) != id {
			list.letGo(m.host)
		}
	}
	if id != views.Overview {
		m.first.letGo()
	}
	m.line.Close()
	m.view = id
	m.stack = []screen{m.views[id]}
	m.resize()
	return m.refresh()
}
