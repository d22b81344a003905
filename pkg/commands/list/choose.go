// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
	"k8s.io/kubectl/pkg/cmd/get"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/tables"
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

// sortBy sorts items by a field of their JSON form, as kubectl get does: items without the
// field first, quantities as such, the others in their order. kubectl's own sorter ends the
// program when a list is empty or a field is no single value.
func sortBy[T runtime.Object](items []T, field string) ([]T, error) {
	const form = "It is a JSONPath expression over the fields of -o json, such as .name."
	expression, err := get.RelaxedJSONPathExpression(field)
	if err != nil {
		return nil, cli.Usagef(form, "read --sort-by: %w", err)
	}
	path := jsonpath.New("sort-by").AllowMissingKeys(true)
	if err := path.Parse(expression); err != nil {
		return nil, cli.Usagef(form, "read --sort-by: %w", err)
	}
	type keyed struct {
		item T
		key  any
	}
	list := make([]keyed, 0, len(items))
	known := false
	for _, item := range items {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", item.GetObjectKind().GroupVersionKind().Kind, err)
		}
		key := firstValue(path, object)
		switch key.(type) {
		case map[string]any, []any:
			return nil, cli.Usagef(form, "read --sort-by: %s is not a single value", field)
		}
		known = known || key != nil
		list = append(list, keyed{item, key})
	}
	if !known && len(items) > 0 {
		return nil, cli.Usagef(form, "read --sort-by: none of the items has a field %s", field)
	}
	slices.SortStableFunc(list, func(a, b keyed) int { return compareValues(a.key, b.key) })
	sorted := make([]T, 0, len(list))
	for _, k := range list {
		sorted = append(sorted, k.item)
	}
	return sorted, nil
}

// firstValue returns the value at a path in an object, nil if there is none.
func firstValue(path *jsonpath.JSONPath, object map[string]any) any {
	// Its errors are about missing fields on the path.
	found, err := path.FindResults(object)
	if err != nil || len(found) == 0 || len(found[0]) == 0 || !found[0][0].IsValid() || !found[0][0].CanInterface() {
		return nil
	}
	return found[0][0].Interface()
}

// compareValues orders values of JSON, including values of different types.
func compareValues(a, b any) int {
	rank := func(value any) int {
		switch value.(type) {
		case nil:
			return 0
		case bool:
			return 1
		case int64, float64:
			return 2
		default:
			return 3
		}
	}
	if rank(a) != rank(b) {
		return cmp.Compare(rank(a), rank(b))
	}
	switch rank(a) {
	case 0:
		return 0
	case 1:
		return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
	case 2:
		return cmp.Compare(number(a), number(b))
	}
	x, y := fmt.Sprint(a), fmt.Sprint(b)
	p, isP := selector.ParseQuantity(x)
	q, isQ := selector.ParseQuantity(y)
	switch {
	case isP && isQ:
		return p.Cmp(q)
	case isP:
		return -1
	case isQ:
		return 1
	default:
		return cmp.Compare(x, y)
	}
}

func number(value any) float64 {
	switch n := value.(type) {
	case int64:
		return float64(n)
	case float64:
		return n
	default:
		return 0
	}
}

// Values of --by; labelGroup is the start of the value for a label.
const (
	labelGroup     = "label="
	groupNamespace = "namespace"
)

// groupNames returns what items can be grouped by, besides labels: fields that have no longer
// name for the API server, and groups.
func (l *listing[T]) groupNames() []string {
	if l.groupedBy != nil {
		return l.groupedBy
	}
	var names []string
	for _, f := range l.fields {
		if !strings.Contains(f.name, ".") {
			names = append(names, f.name)
		}
	}
	for _, g := range l.groups {
		names = append(names, g.name)
	}
	slices.Sort(names)
	return names
}

// valuesOf returns the values of a property of an item.
func (l *listing[T]) valuesOf(item T, property string, from *listed) []string {
	if key, ok := strings.CutPrefix(property, labelGroup); ok {
		if value, ok := l.labels(item)[key]; ok {
			return []string{value}
		}
		return nil
	}
	for _, g := range l.groups {
		if g.name == property {
			return g.of(item, from)
		}
	}
	return []string{l.fieldSet(item)[property]}
}

// checkGroups fails for a property that items cannot be grouped by.
func (o *lister[T]) checkGroups() error {
	key, isLabel := strings.CutPrefix(o.by, labelGroup)
	switch {
	case o.by == "", isLabel && key != "" && o.labelsOf != "", slices.Contains(o.groupNames(), o.by):
		return nil
	}
	return cli.NotAllowed("by", o.by, o.groupings("KEY"))
}

// groupings lists the values of --by; key stands for the name of a label.
func (l *listing[T]) groupings(key string) []string {
	if l.labelsOf == "" {
		return l.groupNames()
	}
	return append(slices.Clone(l.groupNames()), labelGroup+key)
}

// counts reports whether to print the items in groups.
func (o *lister[T]) counts() bool { return o.by != "" && o.groupedBy == nil }

// grouped returns the groups of items, and the listing that prints them.
func (o *lister[T]) grouped(items []T, from *listed) (*lister[*api.Group], []*api.Group, error) {
	how := inventory.Groups[T]{By: o.by, Of: o.name, Names: func(item T) []string { return o.valuesOf(item, o.by, from) }}
	// An item that is in several groups has devices of all of them.
	if o.devices != nil && !slices.ContainsFunc(o.groups, func(g group[T]) bool { return g.name == o.by }) {
		how.Devices = func(items []T) api.DeviceCounts { return o.devices(items, from) }
	}
	if slices.Contains(o.fieldNames(), "state") && o.by != "state" {
		how.State = func(item T) string { return o.fieldSet(item)["state"] }
	}
	groups := pointers(how.List(items))
	printing := &lister[*api.Group]{
		listing[*api.Group]{
			name: "Group", plural: "groups", names: func(g *api.Group) []string { return []string{g.Name} },
			table: func(groups []*api.Group, _ *listed) *metav1.Table {
				return tables.Groups(groups, strings.TrimPrefix(o.by, labelGroup), o.word())
			},
			total: func([]*api.Group, *listed) string { return o.total(items, from) },
		},
		&request{output: o.output, noHeaders: o.noHeaders, limit: o.limit, fitsHeight: o.fitsHeight, sortBy: o.sortBy, printer: o.printer, streams: o.streams},
	}
	if o.sortBy == "" {
		return printing, groups, nil
	}
	groups, err := sortBy(groups, o.sortBy)
	return printing, groups, err
}

// word returns the plural of the kind in one short word.
func (l *listing[T]) word() string {
	if name, ok := strings.CutSuffix(strings.ToLower(l.name), "s"); ok {
		return name + "ses"
	}
	return strings.ToLower(l.name) + "s"
}
