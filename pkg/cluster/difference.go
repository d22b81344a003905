// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// difference is the part of a list of objects that another list lacks. Objects are compared
// by pointer, which is enough for snapshots that share unchanged objects.
type difference[T any] struct {
	Removed, Added []T
}

// None reports whether both lists are equal.
func (d *difference[T]) None() bool { return len(d.Removed)+len(d.Added) == 0 }

// manyChanges is the inverse of the changed part of a list from which on it is as fast to
// look at all of it.
const manyChanges = 8

// differ compares two lists that are sorted by namespace and name. It returns nil if
// they have too little in common.
func differ[T interface {
	comparable
	metav1.Object
}](before, after []T) *difference[T] {
	d := &difference[T]{}
	if sameList(before, after) {
		return d
	}
	most := len(before)/manyChanges + manyChanges
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	for len(before)+len(after) > 0 {
		order := 0
		switch {
		case len(before) == 0:
			order = 1
		case len(after) == 0:
			order = -1
		case before[0] != after[0]:
			order = compareObjects(before[0], after[0])
		default:
			before, after = before[1:], after[1:]
			continue
		}
		if order <= 0 {
			d.Removed, before = append(d.Removed, before[0]), before[1:]
		}
		if order >= 0 {
			d.Added, after = append(d.Added, after[0]), after[1:]
		}
		if len(d.Removed)+len(d.Added) > most {
			return nil
		}
	}
	return d
}

// compareObjects returns the order of lists of objects: by namespace and name.
func compareObjects[T metav1.Object](a, b T) int {
	return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
}

// sameList reports whether two lists have the same pointers, as in snapshots that share
// unchanged objects.
func sameList[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
