// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Words for what users name in arguments and flags.
const (
	nameNode      = "node"
	nameClass     = "class"
	nameDriver    = "driver"
	namePool      = "pool"
	nameDevice    = "device"
	nameRule      = "rule"
	nameNamespace = "namespace"
)

// nameKind describes the objects that a word stands for.
type nameKind struct {
	// resource has their names, verb lists them, and kind is their kind in messages, empty for the
	// word itself.
	resource, verb, kind string
}

// kindOf returns the description of the objects that a word stands for, empty if it is unknown.
func kindOf(word string) nameKind {
	return map[string]nameKind{
		nameNode:    {snapshot.ResourceNodes, "nodes", ""},
		nameClass:   {snapshot.ResourceClasses, "classes", "DeviceClass"},
		nameDriver:  {snapshot.ResourceSlices, "slices", ""},
		namePool:    {snapshot.ResourceSlices, "pools", ""},
		nameDevice:  {snapshot.ResourceSlices, "devices", ""},
		nameRule:    {snapshot.ResourceTaintRules, "taints --field-selector 'rule!='", "DeviceTaintRule"},
		"attribute": {snapshot.ResourceSlices, "attributes", ""},
		"claim":     {snapshot.ResourceClaims, "claims", ""},
		"pod":       {snapshot.ResourcePods, "tree", ""},
		"slice":     {snapshot.ResourceSlices, "slices", ""},
		"taint":     {snapshot.ResourceSlices, "taints", ""},
		"usage":     {snapshot.ResourceClaims, "usage", ""},
	}[word]
}

// NotFound returns the error for a name that was not found. The advice is the command that lists
// the names that exist.
func NotFound(word, name, where string) error {
	of := kindOf(word)
	if word == "pod" && strings.Contains(name, "/") {
		of.verb += " -A"
	}
	return &UsageError{err: fmt.Errorf("find %s %s: not found in %s", cmp.Or(of.kind, word), name, where), list: of.verb}
}

// Missing returns the error for a name that a snapshot does not have, in a namespace or, if that
// is empty, in all; it suggests the nearest name.
func Missing(snap *snapshot.Snapshot, namespace, word, name string) error {
	return NotFound(word, name, snap.Source+Near(snap, namespace, word, name))
}

// WithFlags returns an error whose advice reads what cmd read: the command in it has the flags of
// cmd that choose the cluster or the files, and the namespace. A token is left out.
func WithFlags(cmd *cobra.Command, err error) error {
	var usage *UsageError
	if !errors.As(err, &usage) || usage.list == "" {
		return err
	}
	own := cmd.Root().PersistentFlags()
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		switch list, several := flag.Value.(pflag.SliceValue); {
		case flag.Name == "all-namespaces":
			usage.list += " -A"
		case flag.Name == "namespace":
			usage.list += " -n " + shell.Quote(flag.Value.String())
		case flag.Name == "token", flag.Name != "snapshot" && own.Lookup(flag.Name) == nil:
		case several:
			for _, value := range list.GetSlice() {
				usage.list += " --" + flag.Name + " " + shell.Quote(value)
			}
		default:
			usage.list += " --" + flag.Name + "=" + shell.Quote(flag.Value.String())
		}
	})
	return err
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
func Absent(snap *snapshot.Snapshot, word, name string) error {
	if name == "" || snap.Gap(kindOf(word).resource) != nil || slices.Contains(namesIn(snap, "", word), name) {
		return nil
	}
	return Missing(snap, "", word, name)
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
	return Usagef("Namespaces are "+english.Sample(slices.Compact(names), maxNames)+".", "find namespace %s: not found in %s%s", name, s.Snap.Source, near)
}
