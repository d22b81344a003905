// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cdi

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// ErrUnresolvable is the error of a runtime that finds a device in no spec.
var ErrUnresolvable = errors.New("is in no CDI spec that runtimes use")

// Resolve returns the edits that a runtime makes for a device, from its spec and its own.
// The error gives the reason if there are none; it is a [node.ErrNotRead] if the device may
// be in a spec that could not be read.
func (f *Findings) Resolve(id string) (*Edits, error) {
	for s := range f.Specs {
		spec := &f.Specs[s]
		for d := range spec.Devices {
			device := &spec.Devices[d]
			switch {
			case device.ID != id || device.ShadowedBy != "":
			case device.ConflictsWith != "":
				return nil, fmt.Errorf("device %s %w: both %s and %s have it", id, ErrUnresolvable, spec.Path, device.ConflictsWith)
			default:
				if notRead, reason := f.notReadAfter(spec.Path); notRead != "" {
					return nil, &notReadError{id, "in " + spec.Path, notRead, reason}
				}
				return both(spec, device), nil
			}
		}
	}
	if notRead, reason := f.notRead(); notRead != "" {
		return nil, &notReadError{id, "in no CDI spec that could be read", notRead, reason}
	}
	for i := range f.Specs {
		if f.Specs[i].Error != "" {
			return nil, fmt.Errorf("device %s %w; %s cannot be read", id, ErrUnresolvable, f.Specs[i].Path)
		}
	}
	return nil, fmt.Errorf("device %s %w", id, ErrUnresolvable)
}

// notReadError means that the lookup of a device depends on files that could not be read.
type notReadError struct{ id, where, notRead, reason string }

func (e *notReadError) Error() string {
	return fmt.Sprintf("device %s is %s, and %s may have it: %s", e.id, e.where, e.notRead, e.reason)
}

func (e *notReadError) Unwrap() error { return node.ErrNotRead }

// notRead returns the first file or directory that was not read and in which runtimes may
// find specs; empty if there is none.
func (f *Findings) notRead() (path, reason string) {
	for i := range f.Directories {
		if f.Directories[i].NotRead {
			return f.Directories[i].Path, f.Directories[i].Error
		}
	}
	for i := range f.Specs {
		if f.Specs[i].NotRead {
			return f.Specs[i].Path, f.Specs[i].Error
		}
	}
	return "", ""
}

// notReadAfter returns what could not be read of the directory of a spec and of later ones:
// a device there takes the place of an earlier one of the same name, and in the same
// directory rules it out (Cache.refresh, pkg/cdi/cache.go). Both are empty if all was read.
func (f *Findings) notReadAfter(spec string) (notRead, reason string) {
	counts := map[string]bool{}
	for i := range f.Directories {
		d := &f.Directories[i]
		if !counts[path.Dir(spec)] && d.Path != path.Dir(spec) {
			continue
		}
		counts[path.Dir(spec)], counts[d.Path] = true, true
		if d.NotRead {
			return d.Path, d.Error
		}
	}
	for i := range f.Specs {
		if s := &f.Specs[i]; s.NotRead && counts[path.Dir(s.Path)] {
			return s.Path, s.Error
		}
	}
	return "", ""
}

// both returns the edits of a spec and of a device in it.
func both(spec *Spec, device *Device) *Edits {
	a, b := &spec.Edits, &device.Edits
	edits := &Edits{
		Spec:           spec.Path,
		DeviceNodes:    slices.Concat(a.DeviceNodes, b.DeviceNodes),
		Mounts:         slices.Concat(a.Mounts, b.Mounts),
		Env:            slices.Concat(a.Env, b.Env),
		Hooks:          slices.Concat(a.Hooks, b.Hooks),
		NetDevices:     slices.Concat(a.NetDevices, b.NetDevices),
		AdditionalGIDs: slices.Concat(a.AdditionalGIDs, b.AdditionalGIDs),
		IntelRDT:       b.IntelRDT,
	}
	if edits.IntelRDT == "" {
		edits.IntelRDT = a.IntelRDT
	}
	return edits
}

const checkResolve = "cdi/resolve"

// Ask resolves devices and keeps only the checks about them.
func (f *Findings) Ask(ids []string) {
	f.Checks = nil
	for _, id := range ids {
		r := Resolution{ID: id}
		edits, err := f.Resolve(id)
		if err != nil {
			check := node.Failed(checkResolve, "", err)
			r.Error, r.Unknown = err.Error(), check.State == node.Unknown
			f.Checks = append(f.Checks, check)
		} else {
			r.Edits = edits
			faults := &faults{path: edits.Spec}
			faults.add(edits)
			checks := faults.checks()
			for i := range checks {
				checks[i].Message = id + ": " + checks[i].Message
			}
			if len(checks) == 0 {
				checks = append(checks, node.Good(checkResolve, edits.Spec, "%s is in a spec, and the node has all that it names", id))
			}
			f.Checks = append(f.Checks, checks...)
		}
		f.Resolved = append(f.Resolved, r)
	}
}
