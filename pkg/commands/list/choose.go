// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// choose returns the wanted items in the wanted order. An empty namespace stands for all.
func (o *lister[T]) choose(all []T, namespace string) ([]T, error) {
	var items []T
	for _, item := range all {
		if !o.visible(item, namespace) ||
			!o.selected(item, o.byLabels, o.byFields) || !called(o.patterns, o.names(item)) || o.keep != nil && !o.keep(item, o.request) {
			continue
		}
		items = append(items, item)
	}
	if o.sortBy == "" || o.counts() {
		return items, nil
	}
	return sortBy(items, o.sortBy)
}

// visible reports whether an item is in the listed namespace.
func (o *lister[T]) visible(item T, namespace string) bool {
	return o.namespace == nil || o.allNamespaces || namespace == "" || o.namespace(item) == namespace
}

// called reports whether one of several names matches a pattern, or is one literally;
// without patterns all do.
func called(patterns, names []string) bool {
	if len(patterns) == 0 {
		return true
	}
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			matches, _ := path.Match(pattern, name)
			return matches || pattern == name
		})
	})
}

// gapError returns the error about the gaps in the requested objects, nil if there are
// none.
func (o *lister[T]) gapError(from *listed) *cli.GapError {
	namespace := ""
	if o.namespace != nil && !o.allNamespaces {
		namespace = from.Namespace
	}
	gaps := cli.GapsIn(from.Snap, o.asks, namespace, o.asksEverywhere || o.allNamespaces)
	if len(gaps) == 0 {
		return nil
	}
	return &cli.GapError{Doing: "list " + o.plural, Gaps: gaps, Namespace: namespace, Live: o.reader.Live()}
}

// missing fails for names that no item has. A pattern may match nothing, and items that the
// flags leave out exist all the same.
func (o *lister[T]) missing(all []T, from *listed) error {
	var lacking, elsewhere, names []string
	for _, item := range all {
		if o.visible(item, from.Namespace) {
			names = append(names, o.names(item)...)
		}
	}
	for _, name := range o.patterns {
		if strings.ContainsAny(name, `*?[\`) {
			continue
		}
		found := false
		for _, item := range all {
			switch {
			case !slices.Contains(o.names(item), name):
			case o.visible(item, from.Namespace):
				found = true
			default:
				elsewhere = append(elsewhere, o.namespaceOf(item))
			}
		}
		if !found {
			lacking = append(lacking, name)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	where := from.Snap.Source
	if len(from.Snap.Gaps) > 0 {
		where = "what can be read of " + where
	}
	if o.namespace != nil && !o.allNamespaces && from.Namespace != "" {
		where = "namespace " + from.Namespace + " of " + where
	}
	kind, missing := strings.ToLower(o.name), strings.Join(lacking, ", ")
	if len(elsewhere) > 0 {
		slices.Sort(elsewhere)
		return cli.Usagef("There is one in namespace "+strings.Join(slices.Compact(elsewhere), ", ")+": choose it with -n.", "find %s %s: not found in %s", kind, missing, where)
	}
	if len(lacking) == 1 {
		where += english.DidYouMean(lacking[0], names)
	}
	return cli.NotFound(kind, missing, where)
}

// absentNames fails for names of the flags that do not exist.
func (o *lister[T]) absentNames(ctx context.Context, from *listed) error {
	if o.absent != nil {
		if err := o.absent(from); err != nil {
			return err
		}
	}
	if o.namespace == nil || o.allNamespaces {
		return nil
	}
	return from.AbsentNamespace(ctx, from.Namespace)
}
