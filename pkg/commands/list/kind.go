// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// kind says how to name and choose the items of one type. T is a pointer to the type.
type kind[T runtime.Object] struct {
	// name is the name of the type, plural the word for its items in messages and help.
	name, plural string
	// prefix is the part before the name with -o name: the type of the API object and a
	// slash, empty for items that are not API objects.
	prefix string
	// names returns the names that select an item, the full one first.
	names func(T) []string
	// namespace returns the namespace of an item; nil if items have none.
	namespace func(T) string
	// labels returns the labels for a label selector; labelsOf says whose. It is nil if
	// items have none.
	labels   func(T) map[string]string
	labelsOf string
	// fields are the fields for a field selector.
	fields []field[T]
	// groups are the properties to group items by, besides fields and labels.
	groups []group[T]
	// devices counts the devices of items; nil if they have none.
	devices func(items []T, from *listed) api.DeviceCounts
	// uncertain reports whether a value of an item is only a bound; nil if none ever is.
	uncertain func(T) bool
	// ageless returns a copy without ages; nil if there are none.
	ageless func(T) T
}

// field is a field for field selectors.
type field[T runtime.Object] struct {
	name string
	of   func(T) string
	// values are all possible values, if they are a fixed set.
	values []string
	// also is the field in which to look for a value that this one does not have.
	also string
}

// group is a property that items can be grouped by; an item may have several values.
type group[T runtime.Object] struct {
	name string
	of   func(T, *listed) []string
}

// labeled reports whether the labels of an item match a selector.
func (k *kind[T]) labeled(item T, wanted labels.Selector) bool {
	return k.labels == nil || wanted.Matches(labels.Set(k.labels(item)))
}

// nameOf returns the full name of an item.
func (k *kind[T]) nameOf(item T) string { return k.names(item)[0] }

// namespaceOf returns the namespace of an item, empty if it has none.
func (k *kind[T]) namespaceOf(item T) string {
	if k.namespace == nil {
		return ""
	}
	return k.namespace(item)
}

// fieldNames returns the names of the fields, in order.
func (k *kind[T]) fieldNames() []string {
	names := make([]string, 0, len(k.fields))
	for _, f := range k.fields {
		names = append(names, f.name)
	}
	slices.Sort(names)
	return names
}

// fieldSet returns the fields for a field selector.
func (k *kind[T]) fieldSet(item T) fields.Set {
	set := make(fields.Set, len(k.fields))
	for _, f := range k.fields {
		set[f.name] = f.of(item)
	}
	return set
}

// fixedValues returns the values of a field that has a fixed set.
func (k *kind[T]) fixedValues(name string) (values []string, fixed bool) {
	for _, f := range k.fields {
		if f.name == name {
			return f.values, f.values != nil
		}
	}
	return nil, false
}

// alsoIn returns the field in which to look for a value that another one does not have.
func (k *kind[T]) alsoIn(name string) string {
	for _, f := range k.fields {
		if f.name == name {
			return f.also
		}
	}
	return ""
}

// withoutAge returns an item without ages.
func (k *kind[T]) withoutAge(item T) T {
	if k.ageless == nil {
		return item
	}
	return k.ageless(item)
}

// anyUncertain reports whether a value of one of the items is only a bound.
func (k *kind[T]) anyUncertain(items []T) bool {
	return k.uncertain != nil && slices.ContainsFunc(items, k.uncertain)
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

// pointers returns pointers to the elements of a list.
func pointers[T any](list []T) []*T {
	all := make([]*T, 0, len(list))
	for i := range list {
		all = append(all, &list[i])
	}
	return all
}

// texts returns constants of one type as plain texts.
func texts[T ~string](values ...T) []string {
	list := make([]string, 0, len(values))
	for _, value := range values {
		list = append(list, string(value))
	}
	return list
}
