// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Changes compares two sorted lists of snapshots. It yields each object that they do not share
// as it was and as it is; was is the zero value for a new object, is for a deleted one. An
// object that was deleted and created again under its name is one object here, with another
// UID.
func Changes[T interface {
	comparable
	metav1.Object
}](before, after []T) iter.Seq2[T, T] {
	return func(yield func(was, is T) bool) {
		if SameList(before, after) {
			return
		}
		var none T
		for i, k := 0, 0; ; {
			for i < len(before) && k < len(after) && before[i] == after[k] {
				i, k = i+1, k+1
			}
			was, is, order := none, none, 0
			switch {
			case i == len(before) && k == len(after):
				return
			case i == len(before):
				order = 1
			case k == len(after):
				order = -1
			default:
				order = Identify(before[i]).Compare(Identify(after[k]))
			}
			if order <= 0 {
				was, i = before[i], i+1
			}
			if order >= 0 {
				is, k = after[k], k+1
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
