// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/tables"
)

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
