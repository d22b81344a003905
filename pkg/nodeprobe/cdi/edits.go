// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// looker looks at the paths that specs name, once each.
type looker struct {
	host *node.Host
	seen map[string]look
}

type look struct {
	info fs.FileInfo
	err  error
}

func (l *looker) stat(path string) (fs.FileInfo, error) {
	seen, ok := l.seen[path]
	if !ok {
		seen.info, seen.err = l.host.Stat(path)
		l.seen[path] = seen
	}
	return seen.info, seen.err
}

// missing says why a path could not be looked at.
func missing(err error) (Presence, string) {
	if errors.Is(err, fs.ErrNotExist) {
		return Absent, ""
	}
	return NotSeen, err.Error()
}

func (l *looker) edits(raw *specs.ContainerEdits) Edits {
	edits := Edits{Env: raw.Env, AdditionalGIDs: raw.AdditionalGIDs}
	for _, d := range raw.DeviceNodes {
		edits.DeviceNodes = append(edits.DeviceNodes, l.deviceNode(d))
	}
	for _, m := range raw.Mounts {
		edits.Mounts = append(edits.Mounts, l.mount(m))
	}
	for _, h := range raw.Hooks {
		edits.Hooks = append(edits.Hooks, l.hook(h))
	}
	for _, d := range raw.NetDevices {
		edits.NetDevices = append(edits.NetDevices, NetDevice{HostInterface: d.HostInterfaceName, Name: d.Name})
	}
	if raw.IntelRdt != nil {
		edits.IntelRDT = raw.IntelRdt.ClosID
	}
	return edits
}

// deviceNode compares a device file with the node's, as the library does
// (fillMissingInfo, pkg/cdi/container-edits_unix.go): with a type and a number
// in the spec the runtime makes it, whatever the node has.
func (l *looker) deviceNode(d *specs.DeviceNode) DeviceNode {
	n := DeviceNode{Path: d.Path, HostPath: cmp.Or(d.HostPath, d.Path), Type: d.Type, Permissions: d.Permissions, State: Present}
	enough := d.Type != "" && (d.Major != 0 || d.Type == "p")
	if d.Major != 0 {
		n.Number = fmt.Sprintf("%d:%d", d.Major, d.Minor)
	}
	info, err := l.stat(n.HostPath)
	if err != nil {
		if n.State, n.Found = missing(err); enough && n.State == Absent {
			n.State = NotNeeded
		}
		return n
	}
	kind, is := typeOf(info)
	switch {
	case kind == "":
		n.State, n.Found = Different, is
	case d.Type != "" && d.Type != kind && (d.Type != "u" || kind != "c"):
		n.State, n.Found = Different, is
	case n.Number != "" && kind != "p":
		if number, ok := numberOf(info); ok && number != n.Number {
			n.State, n.Found = Different, number
		}
	}
	return n
}

// typeOf returns the letter of specs for the kind of a file, empty if it is no device.
func typeOf(info fs.FileInfo) (letter, words string) {
	switch mode := info.Mode(); {
	case mode&fs.ModeCharDevice != 0:
		return "c", "a character device"
	case mode&fs.ModeDevice != 0:
		return "b", "a block device"
	case mode&fs.ModeNamedPipe != 0:
		return "p", "a pipe"
	case mode.IsDir():
		return "", "a directory"
	case mode.IsRegular():
		return "", "a regular file"
	default:
		return "", "no device"
	}
}

// mount checks the source of a mount; only bind mounts need it on the node.
func (l *looker) mount(m *specs.Mount) Mount {
	mount := Mount{HostPath: m.HostPath, ContainerPath: m.ContainerPath, Type: m.Type, Options: m.Options, State: Present}
	bind := slices.Contains(m.Options, "bind") || slices.Contains(m.Options, "rbind") || m.Type == "bind" || m.Type == "rbind"
	if _, err := l.stat(m.HostPath); err != nil {
		if mount.State, mount.Found = missing(err); !bind && m.Type != "" && mount.State == Absent {
			mount.State = NotNeeded
		}
	}
	return mount
}

func (l *looker) hook(h *specs.Hook) Hook {
	hook := Hook{Name: h.HookName, Path: h.Path, Args: h.Args, State: Present}
	info, err := l.stat(h.Path)
	switch {
	case err != nil:
		hook.State, hook.Found = missing(err)
	case !info.Mode().IsRegular():
		hook.State, hook.Found = Different, "not a regular file"
	case info.Mode().Perm()&0o111 == 0:
		hook.State, hook.Found = Different, "not executable"
	}
	return hook
}

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
