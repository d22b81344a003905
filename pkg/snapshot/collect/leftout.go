// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// leftOutRules returns the gap that rules leave which cannot be expressed.
func leftOutRules(names []string) snapshot.Gap {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	return snapshot.Gap{Resource: snapshot.ResourceTaintRules, LeftOut: true, Reason: fmt.Sprintf("left out DeviceTaintRule %s: %v", strings.Join(names, ", "), kinds.ErrDroppedSelector)}
}

// leftOutError is an object that the API server has and that a snapshot cannot
// have. The others of its list are read all the same.
type leftOutError struct {
	kind string
	name objectName
	err  error
}

func (e *leftOutError) Error() string {
	return fmt.Sprintf("left out %s %s: %v", e.kind, e.name, e.err)
}

func (e *leftOutError) Unwrap() error { return e.err }

// bounded leaves out the objects of a server that have a quantity with a long
// exponent: large ones can be decoded, but not computed with. Where the API server
// computes with them itself, it stores quantities of some millions, and others wherever it
// does not. It cannot decode small ones, and rounds them.
func bounded[P metav1.Object](convert func(object any) (P, error)) func(object any) (P, error) {
	kind, types := reflect.TypeFor[P]().Elem(), quantityTypes{}
	if !types.holds(kind) {
		return convert
	}
	return func(object any) (P, error) {
		converted, err := convert(object)
		if err != nil {
			return converted, err
		}
		if path, err := types.locate(reflect.ValueOf(converted).Elem()); err != nil {
			left := &leftOutError{kind: kind.Name(), name: nameOf(converted)}
			if workload, ok := any(converted).(*snapshot.Workload); ok {
				left.kind, path = workload.Kind, ".spec.template"+path
			}
			left.err = kinds.AtField(strings.TrimPrefix(path, "."), err)
			return converted, left
		}
		return converted, nil
	}
}

// quantityTypes has the types in whose values there may be a quantity; of structs,
// the fields that have one.
type quantityTypes map[reflect.Type][]int

// holds reports whether there may be a quantity in a value of a type.
func (t quantityTypes) holds(kind reflect.Type) bool {
	if fields, known := t[kind]; known {
		return fields != nil
	}
	// A type that has itself in it has no quantity for that.
	t[kind] = nil
	switch kind.Kind() { //nolint:exhaustive // the others have no parts
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		if t.holds(kind.Elem()) {
			t[kind] = []int{}
		}
	case reflect.Struct:
		if kind == reflect.TypeFor[resource.Quantity]() {
			t[kind] = []int{}
			return true
		}
		for i := range kind.NumField() {
			if kind.Field(i).IsExported() && t.holds(kind.Field(i).Type) {
				t[kind] = append(t[kind], i)
			}
		}
	}
	return t[kind] != nil
}

// locate returns the path of a field of an addressable value that has a quantity with
// a long exponent: of the first one, with the keys of maps in alphabetical order.
func (t quantityTypes) locate(value reflect.Value) (path string, err error) {
	fields := t[value.Type()]
	if fields == nil {
		return "", nil
	}
	switch value.Kind() { //nolint:exhaustive // the others have no parts
	case reflect.Pointer:
		if !value.IsNil() {
			return t.locate(value.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range value.Len() {
			if path, err := t.locate(value.Index(i)); err != nil {
				return fmt.Sprintf("[%d]%s", i, path), err
			}
		}
	case reflect.Map:
		if value.Len() == 0 {
			return "", nil
		}
		entry := reflect.New(value.Type().Elem()).Elem()
		for entries := value.MapRange(); entries.Next(); {
			entry.SetIterValue(entries)
			if below, found := t.locate(entry); found != nil {
				if below = fmt.Sprintf("[%q]%s", entries.Key(), below); err == nil || below < path {
					path, err = below, found
				}
			}
		}
	case reflect.Struct:
		if value.Type() == reflect.TypeFor[resource.Quantity]() {
			quantity, _ := value.Addr().Interface().(*resource.Quantity)
			if _, small := quantity.AsInt64(); small {
				return "", nil
			}
			// Of a copy, since the text would stay in it.
			return "", kinds.CheckExponent(new(quantity.DeepCopy()).String())
		}
		for _, i := range fields {
			if path, err := t.locate(value.Field(i)); err != nil {
				field := value.Type().Field(i)
				if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
					path = "." + name + path
				}
				return path, err
			}
		}
	}
	return path, err
}

// leftOutGap returns the gap that objects of a resource leave which a snapshot cannot have;
// leftOut has the reason by what they are called.
func leftOutGap(resource string, leftOut map[string]error) snapshot.Gap {
	names := slices.Sorted(maps.Keys(leftOut))
	err := leftOut[names[0]]
	if errors.Is(err, kinds.ErrDroppedSelector) {
		return leftOutRules(names)
	}
	gap := snapshot.Gap{Resource: resource, LeftOut: true, Reason: err.Error()}
	if object := (*leftOutError)(nil); errors.As(err, &object) && len(names) > 1 {
		gap.Reason = fmt.Sprintf("left out %s %s and %d more: %v", object.kind, object.name, len(names)-1, object.err)
	}
	return gap
}

// objectName tells the objects of one list apart.
type objectName struct{ namespace, name string }

func nameOf(object metav1.Object) objectName {
	return objectName{object.GetNamespace(), object.GetName()}
}

func (n objectName) String() string { return strings.TrimPrefix(n.namespace+"/"+n.name, "/") }

func (n objectName) compare(other objectName) int {
	return cmp.Or(cmp.Compare(n.namespace, other.namespace), cmp.Compare(n.name, other.name))
}

// errNotKept is an object that does not belong into a snapshot.
var errNotKept = errors.New("not kept")
