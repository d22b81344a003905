// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// difference is the part of a list of objects that another list lacks.
type difference[T any] struct {
	Removed, Added []T
}

// None reports whether both lists are equal.
func (d *difference[T]) None() bool { return len(d.Removed)+len(d.Added) == 0 }

// manyChanges is the inverse of the changed part of a list from which on it is as fast to
// look at all of it.
const manyChanges = 8

// differ compares two lists of snapshots. It returns nil if they have too little in common.
func differ[T interface {
	comparable
	metav1.Object
}](before, after []T) *difference[T] {
	d := &difference[T]{}
	most := len(before)/manyChanges + manyChanges
	var none T
	for was, is := range snapshot.Changes(before, after) {
		if was != none {
			d.Removed = append(d.Removed, was)
		}
		if is != none {
			d.Added = append(d.Added, is)
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
