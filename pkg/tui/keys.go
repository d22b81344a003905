// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

// keyMap has all keys. One without a help text is told with the one before it.
type keyMap struct {
	views, next, prev                                 key.Binding
	up, down, pageUp, pageDown, top, end, left, right key.Binding
	enter, back                                       key.Binding
	goTo, find, filter, namespace, everywhere         key.Binding
	sort, sortNext, sortPrev, reverse, again          key.Binding
	used, fragmented, whole, trouble                  key.Binding
	why, yaml, tree, copy, heat, group                key.Binding
	pane, wider, narrower                             key.Binding
	change, yes, no                                   key.Binding
	earlier, later, earlierCause, laterCause          key.Binding
	freeze, gaps, mouse, help, suspend, quit          key.Binding
}

func newKeyMap() keyMap {
	bind := func(help, text string, keys ...string) key.Binding {
		return key.NewBinding(key.WithKeys(keys...), key.WithHelp(help, text))
	}
	with := func(keys ...string) key.Binding { return key.NewBinding(key.WithKeys(keys...)) }
	return keyMap{
		down:       bind("j/k", "down, up", "down", "j"),
		up:         with("up", "k"),
		pageDown:   bind("pgdn/up", "a page", "pgdown", "ctrl+f", "ctrl+d"),
		pageUp:     with("pgup", "ctrl+b", "ctrl+u"),
		top:        bind("g/G", "ends", "home", "g"),
		end:        with("end", "G"),
		left:       bind("h/l", "sideways", "left", "h"),
		right:      with("right", "l"),
		enter:      bind("enter", "open", "enter"),
		back:       bind("esc", "back", "esc", "backspace"),
		views:      bind("1-9 0", "views"),
		next:       bind("tab", "next view", "tab"),
		prev:       with("shift+tab"),
		goTo:       bind(":", "go to a view", ":"),
		find:       bind("f", "find a name", "f"),
		filter:     bind("/", "filter", "/"),
		namespace:  bind("n", "namespace", "n"),
		everywhere: bind("N", "all namespaces", "N"),
		sort:       bind("s", "sort by", "s"),
		sortNext:   bind(". ,", "next sort", "."),
		sortPrev:   with(","),
		reverse:    bind("r", "reverse", "r"),
		again:      bind("r", "look again", "r"),
		// Capitals sort the map: f, w and x mean something everywhere.
		used:       bind("U", "most used", "U"),
		fragmented: bind("F", "fragmented", "F"),
		whole:      bind("W", "all free", "W"),
		trouble:    bind("X", "trouble", "X"),
		why:        bind("w", "why", "w"),
		yaml:       bind("y", "YAML", "y"),
		tree:       bind("t", "tree", "t"),
		copy:       bind("c", "copy command", "c"),
		heat:       bind("v", "map", "v"),
		group:      bind("b", "group by", "b"),
		pane:       bind("p", "pane", "p"),
		wider:      bind("> <", "pane size", ">"),
		narrower:   with("<"),
		change:     bind("x", "change", "x"),
		yes:        bind("y", "do it", "y"),
		no:         bind("n", "leave it", "n"),
		later:      bind("] [", "later, earlier", "]"),
		earlier:    with("["),
		laterCause: bind("} {", "next cause", "}"),

		earlierCause: with("{"),

		freeze:  bind("space", "freeze", "space"),
		gaps:    bind("!", "not read", "!"),
		mouse:   bind("m", "mouse", "m"),
		help:    bind("?", "keys", "?"),
		suspend: bind("ctrl+z", "suspend", "ctrl+z"),
		quit:    bind("q", "quit", "q", quitAlways),
	}
}

// quitAlways is the key that ends the dashboard wherever one is.
const quitAlways = "ctrl+c"

// quitAlways returns the binding of the key that ends the dashboard wherever one is.
func (k *keyMap) quitAlways() key.Binding {
	return key.NewBinding(key.WithKeys(quitAlways), key.WithHelp(quitAlways, k.quit.Help().Desc))
}

// mapOr returns the key of the map, with its effect where that is shown.
func (k *keyMap) mapOr(shown bool, effect string) key.Binding {
	b := k.heat
	if shown {
		b.SetHelp(b.Help().Key, effect)
	}
	return b
}

// keyGroup is where the help has a key.
type keyGroup int

const (
	keysMove keyGroup = iota
	keysFind
	keysCloser
	keysDashboard
)

func keyGroupTitles() []string { return []string{"Move", "Find", "Look closer", "Dashboard"} }

// action is the action of a key. The effect of keys, the line of keys, the help, and which
// keys do nothing all come from the actions of the screen and the dashboard.
type action struct {
	key.Binding
	group keyGroup
	do    func() tea.Cmd
}

// just makes an action of something that leads to nothing more.
func just(do func()) func() tea.Cmd {
	return func() tea.Cmd {
		do()
		return nil
	}
}
