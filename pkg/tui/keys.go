// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"charm.land/bubbles/v2/key"
)

// keyMap has all keys. Those that depend on a view are in the views.
type keyMap struct {
	next, prev                                        key.Binding
	up, down, pageUp, pageDown, top, end, left, right key.Binding
	enter, back                                       key.Binding
	filter, namespace, freeze, gaps                   key.Binding
	sortNext, sortPrev, reverse                       key.Binding
	why, yaml, tree                                   key.Binding
	mouse, help, suspend, quit                        key.Binding
}

func newKeyMap() keyMap {
	bind := func(help, text string, keys ...string) key.Binding {
		return key.NewBinding(key.WithKeys(keys...), key.WithHelp(help, text))
	}
	return keyMap{
		next:      bind("tab", "next view", "tab"),
		prev:      bind("shift+tab", "previous view", "shift+tab"),
		up:        bind("up/k", "up", "up", "k"),
		down:      bind("down/j", "down", "down", "j"),
		pageUp:    bind("pgup", "a page up", "pgup", "ctrl+b"),
		pageDown:  bind("pgdn", "a page down", "pgdown", "ctrl+f"),
		top:       bind("g", "first row", "home", "g"),
		end:       bind("G", "last row", "end", "G"),
		left:      bind("left/h", "columns to the left", "left", "h"),
		right:     bind("right/l", "columns to the right", "right", "l"),
		enter:     bind("enter", "open", "enter"),
		back:      bind("esc", "back", "esc"),
		filter:    bind("/", "filter", "/"),
		namespace: bind("n", "namespace", "n"),
		freeze:    bind("space", "freeze", "space"),
		gaps:      bind("!", "what could not be read", "!"),
		sortNext:  bind(">", "sort by the next column", ">", "."),
		sortPrev:  bind("<", "sort by the column before", "<", ","),
		reverse:   bind("r", "reverse the order", "r"),
		why:       bind("w", "why", "w"),
		yaml:      bind("y", "YAML", "y"),
		tree:      bind("t", "tree", "t"),
		mouse:     bind("m", "mouse on or off", "m"),
		help:      bind("?", "all keys", "?"),
		suspend:   bind("ctrl+z", "suspend", "ctrl+z"),
		quit:      bind("q", "quit", "q", "ctrl+c"),
	}
}

// all groups the keys for the page that explains them.
func (k *keyMap) all() []keyGroup {
	return []keyGroup{
		{"Move", []key.Binding{k.up, k.down, k.pageUp, k.pageDown, k.top, k.end, k.left, k.right, k.enter, k.back, k.next, k.prev}},
		{"Find", []key.Binding{k.filter, k.namespace, k.sortNext, k.sortPrev, k.reverse}},
		{"Details", []key.Binding{k.why, k.yaml, k.tree}},
		{"The dashboard", []key.Binding{k.freeze, k.gaps, k.mouse, k.help, k.suspend, k.quit}},
	}
}

type keyGroup struct {
	title string
	keys  []key.Binding
}
