// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// faults are the errors in a spec.
type faults struct {
	path                 string
	nodes, mounts, hooks things
}

// things are the paths of one kind that specs name.
type things struct {
	all                        int
	absent, different, notRead set
}

func (t *things) add(state Presence, path, found string) {
	t.all++
	switch state {
	case Absent:
		t.absent.add(path)
	case Different:
		t.different.add(path + " is " + found)
	case NotSeen:
		t.notRead.add(found)
	case Present, NotNeeded:
	}
}

// set has each of its items once, in the order in which they came.
type set struct {
	items []string
	has   map[string]bool
}

func (s *set) add(item string) {
	if s.has[item] {
		return
	}
	if s.has == nil {
		s.has = map[string]bool{}
	}
	s.has[item] = true
	s.items = append(s.items, item)
}

func (x *faults) add(e *Edits) {
	for _, d := range e.DeviceNodes {
		found := d.Found
		if d.Number != "" {
			found += ", not " + d.Number
		}
		x.nodes.add(d.State, d.HostPath, found)
	}
	for _, m := range e.Mounts {
		x.mounts.add(m.State, m.HostPath, m.Found)
	}
	for _, h := range e.Hooks {
		x.hooks.add(h.State, h.Path, h.Found)
	}
}

func (x *faults) checks() []node.Check {
	var checks []node.Check
	for _, kind := range []struct {
		name, noun string
		things     *things
	}{{checkDeviceNodes, "device node", &x.nodes}, {checkMounts, "mount", &x.mounts}, {checkHooks, "hook", &x.hooks}} {
		if absent := kind.things.absent.items; len(absent) > 0 {
			checks = append(checks, node.Bad(kind.name, x.path, "%s not on the node: %s", english.Count(len(absent), kind.noun), node.Sample(absent)))
		}
		if different := kind.things.different.items; len(different) > 0 {
			checks = append(checks, node.Bad(kind.name, x.path, "%s not as the spec says: %s", english.Count(len(different), kind.noun), node.Sample(different)))
		}
		if notRead := kind.things.notRead.items; len(notRead) > 0 {
			checks = append(checks, node.NotKnown(kind.name, x.path, "%s could not be looked at: %s", english.Count(len(notRead), kind.noun), node.Sample(notRead)))
		}
	}
	return checks
}
