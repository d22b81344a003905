// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Changes yields each object that two sorted lists of snapshots do not share, as it was and as
// it is: was is the zero value for an object that came, is for one that went. An object that
// was deleted and created again under its name is the same object here, with another UID.
func Changes[T interface {
	comparable
	metav1.Object
}](before, after []T) iter.Seq2[T, T] {
	return func(yield func(was, is T) bool) {
		if SameList(before, after) {
			return
		}
		for len(before)+len(after) > 0 {
			order := 0
			switch {
			case len(before) == 0:
				order = 1
			case len(after) == 0:
				order = -1
			case before[0] != after[0]:
				order = Identify(before[0]).Compare(Identify(after[0]))
			default:
				before, after = before[1:], after[1:]
				continue
			}
			var was, is T
			if order <= 0 {
				was, before = before[0], before[1:]
			}
			if order >= 0 {
				is, after = after[0], after[1:]
			}
			if !yield(was, is) {
				return
			}
		}
	}
}

// SameList reports whether two lists are the same list.
func SameList[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
