// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// edited is a list of objects, sorted by namespace and name, with some objects replaced or
// added. The original list is not modified.
type edited[T metav1.Object] struct {
	list    []T
	changed map[objectName]T
}

type objectName struct{ namespace, name string }

func newEdited[T metav1.Object](list []T) *edited[T] {
	return &edited[T]{list: list, changed: map[objectName]T{}}
}

// find looks an object up by its name.
func (e *edited[T]) find(namespace, name string) (object T, found bool) {
	if object, found = e.changed[objectName{namespace, name}]; found {
		return object, true
	}
	if at, found := find(e.list, namespace, name); found {
		return e.list[at], true
	}
	return object, false
}

func (e *edited[T]) put(object T) {
	e.changed[objectName{object.GetNamespace(), object.GetName()}] = object
}

// merged returns the list with the replaced and added objects; the original list if there
// are none.
func (e *edited[T]) merged() []T {
	if len(e.changed) == 0 {
		return e.list
	}
	added := make([]T, 0, len(e.changed))
	for _, object := range e.changed {
		added = append(added, object)
	}
	slices.SortFunc(added, func(a, b T) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	after := make([]T, 0, len(e.list)+len(added))
	rest := e.list
	for _, object := range added {
		at, exists := find(rest, object.GetNamespace(), object.GetName())
		after = append(append(after, rest[:at]...), object)
		if exists {
			at++
		}
		rest = rest[at:]
	}
	return append(after, rest...)
}

// find looks an object up in a list that is sorted by namespace and name, and
// returns where it is or would be.
func find[T metav1.Object](list []T, namespace, name string) (int, bool) {
	return slices.BinarySearchFunc(list, [2]string{namespace, name}, func(o T, key [2]string) int {
		return cmp.Or(strings.Compare(o.GetNamespace(), key[0]), strings.Compare(o.GetName(), key[1]))
	})
}
