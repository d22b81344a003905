// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// numbers returns a column of whole numbers.
func numbers[T any](name string, of func(*T) int) render.Column[T] {
	return bounds(name, of, func(*T) api.Bound { return "" })
}

// bounds returns a column of whole numbers that may only be bounds.
func bounds[T any](name string, of func(*T) int, bound func(*T) api.Bound) render.Column[T] {
	return render.Column[T]{
		Name: name,
		Cell: func(item *T) string { return render.Bounded(of(item), bound(item)) },
		Sort: func(item *T) (float64, bool) { return float64(of(item)), true },
	}
}

// counts returns the columns of device counts, each made by number.
func counts[T any](number func(name string, of func(*api.DeviceCounts) int) render.Column[T]) []render.Column[T] {
	return []render.Column[T]{
		number("Total", func(c *api.DeviceCounts) int { return c.Total }),
		number("Free", func(c *api.DeviceCounts) int { return c.Free }),
		number("Allocated", func(c *api.DeviceCounts) int { return c.Allocated }),
		number("Shared", func(c *api.DeviceCounts) int { return c.Shared }),
		number("Blocked", func(c *api.DeviceCounts) int { return c.Blocked }),
		number("Tainted", func(c *api.DeviceCounts) int { return c.Tainted }),
		number("Unhealthy", func(c *api.DeviceCounts) int { return c.Unhealthy }),
		number("Unusable", func(c *api.DeviceCounts) int { return c.Unusable }),
	}
}

// withGone inserts a column that counts gone devices, if there are some.
func withGone[T any](items []*T, columns []render.Column[T], at int, gone func(*T) int) []render.Column[T] {
	if !slices.ContainsFunc(items, func(item *T) bool { return gone(item) > 0 }) {
		return columns
	}
	return slices.Insert(columns, at, numbers("Gone", gone))
}

// unlessUnknown returns a column of numbers; an unknown number is a question mark.
func unlessUnknown[T any](name string, of func(*T) int, known func(*T) bool) render.Column[T] {
	return render.Column[T]{
		Name: name,
		Cell: func(item *T) string {
			if !known(item) {
				return "?"
			}
			return fmt.Sprint(of(item))
		},
		Sort: func(item *T) (float64, bool) { return float64(of(item)), known(item) },
	}
}

// ages returns the column for the time since something was made.
func ages[T any](of func(*T) (seconds int64, created *metav1.Time)) render.Column[T] {
	return render.Column[T]{
		Name: "Age",
		Cell: func(item *T) string { return age(of(item)) },
		Sort: func(item *T) (float64, bool) {
			seconds, created := of(item)
			return float64(seconds), created != nil
		},
	}
}

// age returns an age as kubectl writes it, empty if it is not known.
func age(seconds int64, since *metav1.Time) string {
	if since == nil {
		return ""
	}
	return render.Age(seconds)
}
