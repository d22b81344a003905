// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"slices"

	"charm.land/bubbles/v2/key"
)

// namedKey is a key with the name that settings have for it. What is told together with
// the one before it in the help follows it.
type namedKey struct {
	name    string
	binding *key.Binding
	follows bool
}

// named returns all keys that can be chosen. Those of views, and the answers to a question,
// cannot.
func (k *keyMap) named() []namedKey {
	return []namedKey{
		{"down", &k.down, false},
		{"up", &k.up, true},
		{"page-down", &k.pageDown, false},
		{"page-up", &k.pageUp, true},
		{"first", &k.top, false},
		{"last", &k.end, true},
		{"left", &k.left, false},
		{"right", &k.right, true},
		{"open", &k.enter, false},
		{"back", &k.back, false},
		{"next-view", &k.next, false},
		{"previous-view", &k.prev, false},
		{"go-to", &k.goTo, false},
		{"find", &k.find, false},
		{"filter", &k.filter, false},
		{"namespace", &k.namespace, false},
		{"all-namespaces", &k.everywhere, false},
		{"sort", &k.sort, false},
		{"sort-next", &k.sortNext, false},
		{"sort-previous", &k.sortPrev, true},
		{"reverse", &k.reverse, false},
		{"look-again", &k.again, false},
		{"map-used", &k.used, false},
		{"map-fragmented", &k.fragmented, false},
		{"map-free", &k.whole, false},
		{"map-trouble", &k.trouble, false},
		{"why", &k.why, false},
		{"yaml", &k.yaml, false},
		{"tree", &k.tree, false},
		{"copy", &k.copy, false},
		{"map", &k.heat, false},
		{"group", &k.group, false},
		{"pane", &k.pane, false},
		{"pane-wider", &k.wider, false},
		{"pane-narrower", &k.narrower, true},
		{"change", &k.change, false},
		{"later", &k.later, false},
		{"earlier", &k.earlier, true},
		{"later-cause", &k.laterCause, false},
		{"earlier-cause", &k.earlierCause, true},
		{"freeze", &k.freeze, false},
		{"not-read", &k.gaps, false},
		{"mouse", &k.mouse, false},
		{"help", &k.help, false},
		{"suspend", &k.suspend, false},
		{"quit", &k.quit, false},
	}
}

// reserved returns keys that stay what they are for, so that there is a way out whatever a
// file says.
func reserved() map[string][]string {
	return map[string][]string{"quit": {quitAlways}, "back": {"esc"}}
}

// choose takes keys for actions by name. It fails if a key would be for two of them.
func (k *keyMap) choose(chosen map[string][]string) error {
	named := k.named()
	shared := map[string]bool{}
	for i, a := range named {
		for _, b := range named[:i] {
			shared[a.name+" "+b.name] = overlap(a.binding, b.binding) != ""
		}
	}
	for i, n := range named {
		keys := chosen[n.name]
		if len(keys) == 0 {
			continue
		}
		first := keys[0]
		for _, more := range reserved()[n.name] {
			if !slices.Contains(keys, more) {
				keys = append(slices.Clone(keys), more)
			}
		}
		n.binding.SetKeys(keys...)
		switch {
		case n.follows:
			with := named[i-1].binding
			with.SetHelp(with.Keys()[0]+"/"+first, with.Help().Desc)
		case i+1 < len(named) && named[i+1].follows:
			n.binding.SetHelp(first+"/"+named[i+1].binding.Keys()[0], n.binding.Help().Desc)
		case n.binding.Help().Key != "":
			n.binding.SetHelp(first, n.binding.Help().Desc)
		}
	}
	for i, a := range named {
		for _, b := range named[:i] {
			if both := overlap(a.binding, b.binding); both != "" && !shared[a.name+" "+b.name] {
				return fmt.Errorf("field keys: %s is for %s and for %s", both, b.name, a.name)
			}
		}
	}
	return nil
}

// overlap returns a key of both bindings; empty if there is none.
func overlap(a, b *key.Binding) string {
	for _, name := range a.Keys() {
		if slices.Contains(b.Keys(), name) {
			return name
		}
	}
	return ""
}
