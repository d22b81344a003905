// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"iter"
	"maps"
	"slices"
)

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
