// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Kinds of names that users write in arguments and flags.
const (
	nameNode      = "node"
	nameClass     = "DeviceClass"
	nameDriver    = "driver"
	namePool      = "pool"
	nameDevice    = "device"
	nameNamespace = "namespace"
)

// NotFound returns the error for a name that was not found; out is the advice.
func NotFound(kind, name, where, out string) error {
	return Usagef(out, "find %s %s: not found in %s", kind, name, where)
}

// NotAllowed returns the error for a value of a flag that is none of a few.
func NotAllowed(flag, value string, allowed []string) error {
	return Usagef("Allowed are "+english.JoinAnd(allowed)+".", "read --%s: %q is not a valid value%s", flag, value, english.DidYouMean(value, allowed))
}

// Near suggests a name of a kind in a snapshot, in a namespace or, if that is empty, in all; the
// clause is empty if no name is near.
func Near(snap *snapshot.Snapshot, namespace, kind, name string) string {
	return english.DidYouMean(name, namesIn(snap, namespace, fullResource(kind)))
}

// Absent returns the error for a name that a snapshot does not have, with the nearest; nil if it
// exists, or if that is not known. An empty name is none.
func Absent(snap *snapshot.Snapshot, kind, name string) error {
	of := map[string]struct{ resource, verb string }{
		nameNode:   {snapshot.ResourceNodes, "tree node/"},
		nameClass:  {snapshot.ResourceClasses, "classes"},
		nameDriver: {snapshot.ResourceSlices, "slices"},
		namePool:   {snapshot.ResourceSlices, "pools"},
		nameDevice: {snapshot.ResourceSlices, "devices"},
	}[kind]
	if name == "" || snap.Gap(of.resource) != nil || slices.Contains(namesIn(snap, "", fullResource(kind)), name) {
		return nil
	}
	return NotFound(kind, name, snap.Source+Near(snap, "", kind, name), "List what there is: kubectl dra "+of.verb)
}

// AbsentDevices returns the errors for the given driver, pool and device that no ResourceSlice and
// no allocated claim has.
func AbsentDevices(snap *snapshot.Snapshot, driver, pool, device string) []error {
	return slices.DeleteFunc([]error{Absent(snap, nameDriver, driver), Absent(snap, namePool, pool), Absent(snap, nameDevice, device)},
		func(err error) bool { return err == nil })
}

// AbsentNode returns the error for a node that does not exist, nil if it may.
func AbsentNode(snap *snapshot.Snapshot, name string) error { return Absent(snap, nameNode, name) }

// AbsentClass returns the error for a DeviceClass that does not exist, nil if it may.
func AbsentClass(snap *snapshot.Snapshot, name string) error { return Absent(snap, nameClass, name) }

// maxNames limits how many names an error has.
const maxNames = 10

// AbsentNamespace returns the error for a namespace that does not exist, nil if it may. A file
// without Namespace objects names the namespaces of its objects: an empty namespace may exist, unless
// its name is near another. A cluster whose namespaces were not read is asked for them.
func (s *Source) AbsentNamespace(ctx context.Context, name string) error {
	if name == "" || s.Snap.Gap(snapshot.ResourceNamespaces) != nil {
		return nil
	}
	names := namesIn(s.Snap, "", nameNamespace)
	known := len(s.Snap.Namespaces) > 0
	if s.Clients != nil && !known {
		var err error
		if names, err = s.Clients.Names(ctx, snapshot.ResourceNamespaces, ""); err != nil {
			// Without the right to list namespaces, it may exist.
			return nil //nolint:nilerr // what cannot be known is no error
		}
		known = true
	}
	near := english.DidYouMean(name, names)
	if slices.Contains(names, name) || !known && near == "" {
		return nil
	}
	slices.Sort(names)
	return NotFound(nameNamespace, name, s.Snap.Source+near, "Namespaces are "+english.Sample(slices.Compact(names), maxNames)+".")
}
