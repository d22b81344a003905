// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// completionTime is how long a shell waits for names at most.
const completionTime = 3 * time.Second

// completable is what can be completed in a snapshot; the resource has to be read
// for it.
type completable struct {
	resource string
	of       func(snap *snapshot.Snapshot, namespace string) []string
}

// completableNames tells how to complete names of a kind: claim, pod, node, namespace,
// class, driver, pool, device, slice or rule.
func completableNames(kind string) completable {
	each := func(resource string, add func(snap *snapshot.Snapshot, namespace string, found func(string))) completable {
		return completable{resource: resource, of: func(snap *snapshot.Snapshot, namespace string) []string {
			var list []string
			add(snap, namespace, func(name string) { list = append(list, name) })
			slices.Sort(list)
			return slices.Compact(list)
		}}
	}
	switch kind {
	case "pod":
		return each(snapshot.ResourcePods, func(snap *snapshot.Snapshot, namespace string, found func(string)) {
			for _, pod := range snap.Pods {
				if (namespace == "" || pod.Namespace == namespace) && len(pod.Spec.ResourceClaims) > 0 {
					found(pod.Name)
				}
			}
		})
	case "claim":
		return each(snapshot.ResourceClaims, func(snap *snapshot.Snapshot, namespace string, found func(string)) {
			for _, claim := range snap.Claims {
				if namespace == "" || claim.Namespace == namespace {
					found(claim.Name)
				}
			}
		})
	case "node":
		return each(snapshot.ResourceNodes, func(snap *snapshot.Snapshot, _ string, found func(string)) {
			for _, node := range snap.Nodes {
				found(node.Name)
			}
		})
	case "namespace":
		return each(snapshot.ResourceNamespaces, func(snap *snapshot.Snapshot, _ string, found func(string)) {
			for _, namespace := range snap.Namespaces {
				found(namespace.Name)
			}
			// A file need not have namespaces for all of its objects.
			for _, claim := range snap.Claims {
				found(claim.Namespace)
			}
		})
	case "class":
		return each(snapshot.ResourceClasses, func(snap *snapshot.Snapshot, _ string, found func(string)) {
			for _, class := range snap.Classes {
				found(class.Name)
			}
		})
	case "rule":
		return each(snapshot.ResourceTaintRules, func(snap *snapshot.Snapshot, _ string, found func(string)) {
			for _, rule := range snap.TaintRules {
				found(rule.Name)
			}
		})
	default:
		return each(snapshot.ResourceSlices, func(snap *snapshot.Snapshot, _ string, found func(string)) {
			for _, slice := range snap.Slices {
				pool := slice.Spec.Driver + "/" + slice.Spec.Pool.Name
				switch kind {
				case "driver":
					found(slice.Spec.Driver)
				case "pool":
					found(slice.Spec.Pool.Name)
				case "slice":
					found(slice.Name)
				case "device":
					for i := range slice.Spec.Devices {
						found(pool + "/" + slice.Spec.Devices[i].Name)
					}
				}
			}
		})
	}
}

// complete makes a completion function for names of a kind, each with a prefix.
// What cannot be read in time completes to nothing.
func (f *readingFlags) complete(kind, prefix string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if !strings.HasPrefix(typed, prefix) && !strings.HasPrefix(prefix, typed) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		// A shell shows what is printed: no progress, no warnings.
		silent := genericiooptions.NewTestIOStreamsDiscard()
		reading := *f
		if paths, err := cmd.Flags().GetStringArray("snapshot"); err == nil {
			reading.paths = paths
		}
		reader, err := reading.toReader(cmd, silent)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		what := completableNames(kind)
		from, err := reader.read(ctx, scope{only: []string{what.resource}})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var list []cobra.Completion
		for _, name := range what.of(from.snap, from.namespace) {
			if full := prefix + name; strings.HasPrefix(full, typed) {
				list = append(list, full)
			}
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// targets completes "claim", "pod/NAME" and the like.
func (f *readingFlags) completeTargets(kinds ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		kind, _, slashed := strings.Cut(typed, "/")
		if slashed && slices.Contains(kinds, kind) {
			return f.complete(kind, kind+"/")(cmd, args, typed)
		}
		var list []cobra.Completion
		for _, kind := range kinds {
			if strings.HasPrefix(kind, typed) {
				list = append(list, kind+"/")
			}
		}
		return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// completeFlags completes the values of flags by the kind of name that they
// take. Flags that a command does not have are passed over.
func (f *readingFlags) completeFlags(cmd *cobra.Command) {
	for _, kind := range []string{"node", "driver", "pool", "device", "class"} {
		if cmd.Flags().Lookup(kind) != nil {
			// It only fails if somebody registered one before.
			_ = cmd.RegisterFlagCompletionFunc(kind, f.complete(kind, ""))
		}
	}
}
