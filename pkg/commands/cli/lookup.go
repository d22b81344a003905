// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FullNames distinguish objects with the same short name.
type FullNames[T any] struct {
	// Of returns a full name.
	Of func(T) string
	// There introduces the full names in a message: "as", or "in each of the namespaces".
	There string
	// Choose says how to choose one.
	Choose string
}

// FindNamed returns the objects with a name, in one namespace or, if that is empty, in all.
func FindNamed[T metav1.Object](list []T, namespace, name string) []T {
	var found []T
	for _, object := range list {
		if object.GetName() == name && (namespace == "" || object.GetNamespace() == namespace) {
			found = append(found, object)
		}
	}
	return found
}

// OnlyOne returns the first of the objects found under a name, nil if there are none. It fails
// if they have several full names.
func OnlyOne[T any](kind, name string, full FullNames[T], found []T) (*T, error) {
	if len(found) == 0 {
		return nil, nil //nolint:nilnil // nothing is one of the answers
	}
	var all []string
	for _, one := range found {
		all = append(all, full.Of(one))
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > 1 {
		return nil, Usagef(full.Choose, "find %s %s: it is ambiguous, there is one %s %s", kind, name, full.There, strings.Join(all, ", "))
	}
	return &found[0], nil
}

// OnlyOneIn returns the only object with a name in a namespace or, if that is empty, in all of
// them; nil if there is none.
func OnlyOneIn[T metav1.Object](list []T, kind, namespace, name string) (T, error) {
	found, err := OnlyOne(kind, name, namespaces[T](), FindNamed(list, namespace, name))
	if err != nil || found == nil {
		var none T
		return none, err
	}
	return *found, nil
}

// namespaces distinguishes objects of one name by namespace.
func namespaces[T metav1.Object]() FullNames[T] {
	return FullNames[T]{Of: func(object T) string { return object.GetNamespace() }, There: "in each of the namespaces", Choose: "Choose one with -n."}
}
