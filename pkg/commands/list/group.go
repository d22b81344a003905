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
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// Values of --by; labelGroup is the start of the value for a label.
const (
	labelGroup     = "label="
	groupNamespace = "namespace"
)

// groupNames returns what items can be grouped by, besides labels: fields that have no longer
// name for the API server, and groups.
func (k *kind[T]) groupNames() []string {
	var names []string
	for _, f := range k.fields {
		if !strings.Contains(f.name, ".") {
			names = append(names, f.name)
		}
	}
	for _, g := range k.groups {
		names = append(names, g.name)
	}
	slices.Sort(names)
	return names
}

// valuesOf returns the values of a property of an item.
func (k *kind[T]) valuesOf(item T, property string, from *listed) []string {
	if key, ok := strings.CutPrefix(property, labelGroup); ok {
		if value, ok := k.labels(item)[key]; ok {
			return []string{value}
		}
		return nil
	}
	for _, g := range k.groups {
		if g.name == property {
			return g.of(item, from)
		}
	}
	return []string{k.fieldSet(item)[property]}
}

// checkGroups fails for a property that items cannot be grouped by.
func (o *listOptions[T]) checkGroups(f *listFlags) error {
	key, isLabel := strings.CutPrefix(f.by, labelGroup)
	switch {
	case f.by == "":
		return nil
	case isLabel && key != "" && f.labelGroups, slices.Contains(f.groupNames, f.by):
		return nil
	}
	return cli.Usagef("There are "+strings.Join(f.groupings(), ", ")+".", "read --by: %s have no property %q", o.plural, f.by)
}

// grouped returns the groups of items, and the listing that prints them.
func (o *listOptions[T]) grouped(items []T, from *listed) (*listOptions[*api.Group], []*api.Group, error) {
	how := inventory.Groups[T]{By: o.by, Of: o.name, Names: func(item T) []string { return o.valuesOf(item, o.by, from) }}
	if o.devices != nil {
		how.Devices = func(items []T) api.DeviceCounts { return o.devices(items, from) }
	}
	if slices.Contains(o.fieldNames(), "state") && o.by != "state" {
		how.State = func(item T) string { return o.fieldSet(item)["state"] }
	}
	groups := pointers(how.List(items))
	printing := &listOptions[*api.Group]{
		listing: listing[*api.Group]{
			kind: kind[*api.Group]{name: "Group", plural: "groups", names: func(g *api.Group) []string { return []string{g.Name} }},
			table: func(groups []*api.Group, _ *listed) *metav1.Table {
				return render.Groups(groups, strings.TrimPrefix(o.by, labelGroup), o.word())
			},
			total: func([]*api.Group, *listed) string { return o.total(items, from) },
		},
		output: o.output, noHeaders: o.noHeaders, limit: o.limit, printer: o.printer, streams: o.streams,
	}
	if o.sortBy == "" {
		return printing, groups, nil
	}
	groups, err := sortBy(groups, o.sortBy)
	return printing, groups, err
}

// word returns the plural of the kind in one short word.
func (k *kind[T]) word() string {
	if name, ok := strings.CutSuffix(strings.ToLower(k.name), "s"); ok {
		return name + "ses"
	}
	return strings.ToLower(k.name) + "s"
}
