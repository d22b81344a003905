// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
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

// namesIn returns the names of a type in a snapshot.
func namesIn(snap *snapshot.Snapshot, namespace, resource string) []string {
	var list []string
	switch resource {
	case nameNode:
		list = namesOf(snap.Nodes)
		if len(list) > 0 {
			break
		}
		// A file may lack the nodes of its slices.
		for _, slice := range snap.Slices {
			if slice.Spec.NodeName != nil {
				list = append(list, *slice.Spec.NodeName)
			}
		}
	case nameClass:
		return namesOf(snap.Classes)
	case "slice":
		return namesOf(snap.Slices)
	case nameRule:
		return namesOf(snap.TaintRules)
	case "attribute":
		found := map[string]bool{}
		eachPublished(snap, func(driver string, name resourceapi.QualifiedName) {
			found[string(name)], found[strings.TrimPrefix(string(name), driver+"/")] = true, true
		})
		return slices.Sorted(maps.Keys(found))
	case nameDriver, namePool, nameDevice:
		return namesOfDevices(snap, resource)
	case nameNamespace:
		list = namesOf(snap.Namespaces)
		// A file may lack the namespaces of its objects.
		for _, c := range Candidates(snap) {
			list = append(list, c.Object.GetNamespace())
		}
	default:
		for _, c := range Candidates(snap) {
			pod, isPod := c.Object.(*corev1.Pod)
			if names(resource, c.Kind) && (namespace == "" || c.Object.GetNamespace() == namespace) && (!isPod || mayUseDevices(pod)) {
				list = append(list, c.Object.GetName())
			}
		}
	}
	return list
}

// namesOfDevices returns the drivers, pools or devices that slices publish or claims have, in
// each form of their names.
func namesOfDevices(snap *snapshot.Snapshot, kind string) []string {
	found := map[string]bool{}
	add := func(driver, pool, device string) {
		switch kind {
		case nameDriver:
			found[driver] = true
		case namePool:
			found[pool], found[driver+"/"+pool] = true, true
		default:
			found[device], found[pool+"/"+device], found[driver+"/"+pool+"/"+device] = true, true, true
		}
	}
	for _, slice := range snap.Slices {
		if kind != nameDevice {
			add(slice.Spec.Driver, slice.Spec.Pool.Name, "")
			continue
		}
		for i := range slice.Spec.Devices {
			add(slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Devices[i].Name)
		}
	}
	for _, claim := range snap.Claims {
		if allocation := claim.Status.Allocation; allocation != nil {
			for i := range allocation.Devices.Results {
				result := &allocation.Devices.Results[i]
				add(result.Driver, result.Pool, result.Device)
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func namesOf[T metav1.Object](objects []T) []string {
	names := make([]string, len(objects))
	for i := range objects {
		names[i] = objects[i].GetName()
	}
	return names
}

// mayUseDevices reports whether a pod has claims, or requests extended resources, for which
// the scheduler may make one.
func mayUseDevices(pod *corev1.Pod) bool {
	if len(pod.Spec.ResourceClaims) > 0 {
		return true
	}
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(container corev1.Container) bool {
		for name := range container.Resources.Requests {
			if strings.Contains(string(name), "/") {
				return true
			}
		}
		return false
	})
}

// eachPublished visits the attributes and capacities of all devices.
func eachPublished(snap *snapshot.Snapshot, visit func(driver string, name resourceapi.QualifiedName)) {
	for _, slice := range snap.Slices {
		for i := range slice.Spec.Devices {
			for name := range slice.Spec.Devices[i].Attributes {
				visit(slice.Spec.Driver, name)
			}
			for name := range slice.Spec.Devices[i].Capacity {
				visit(slice.Spec.Driver, name)
			}
		}
	}
}

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
