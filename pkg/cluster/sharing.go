// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"iter"
	"maps"
	"slices"
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

// layers is an immutable map. A changed map shares most of it: the cost of a change grows
// with the change, and hardly with the map.
type layers[K comparable, V any] struct {
	// list has the newest values last. Each map is more than twice as large as the
	// next one, so that there are few of them.
	list []map[K]V
}

// Get returns the value of a key.
func (l layers[K, V]) Get(key K) (value V, found bool) {
	for _, layer := range slices.Backward(l.list) {
		if value, found = layer[key]; found {
			return value, true
		}
	}
	return value, false
}

// With returns the map with other values for some keys. It takes ownership of changes.
func (l layers[K, V]) With(changes map[K]V) layers[K, V] {
	if len(changes) == 0 {
		return l
	}
	list := slices.Clone(l.list)
	for len(list) > 0 && len(list[len(list)-1]) <= 2*len(changes) {
		merged := maps.Clone(list[len(list)-1])
		maps.Copy(merged, changes)
		list, changes = list[:len(list)-1], merged
	}
	return layers[K, V]{append(list, changes)}
}

// All visits each key once, in no order.
func (l layers[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for i, layer := range l.list {
			above := layers[K, V]{l.list[i+1:]}
			for key, value := range layer {
				if _, changed := above.Get(key); !changed && !yield(key, value) {
					return
				}
			}
		}
	}
}
