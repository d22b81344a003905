// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Place is somewhere to go to: a text, or a view with some of its rows.
type Place struct {
	Text  *Text
	View  ID
	Scope Scope
	// Map is how nodes are shown as a cell each; nil for a list.
	Map *NodeMap
}

// NodeMap puts nodes into groups, and these in order.
type NodeMap struct {
	By    inventory.Grouping
	Order inventory.Order
}

// PlaceOf returns a view as it is opened from elsewhere.
func PlaceOf(id ID) *Place { return &Place{View: id} }

// rowsOf returns the rows of a view that belong to something.
func rowsOf(id ID, of string, has func(item any) bool) *Place {
	return &Place{View: id, Scope: Scope{Of: of, Matcher: func(context.Context, *live.Picture) (func(any) bool, error) { return has, nil }}}
}

// placeOfText returns nil where there is nothing to read.
func placeOfText(of *Text) *Place {
	if of == nil {
		return nil
	}
	return &Place{Text: of}
}

// PlaceOfTeams returns what teams have of one namespace.
func PlaceOfTeams(name string) *Place {
	return rowsOf(Teams, "namespace "+name, func(item any) bool {
		t, ok := item.(*inventory.Team)
		return ok && t.Namespace == name
	})
}

// PlaceOfPods returns the pods of an owner that have no node, or do not run.
func PlaceOfPods(owner api.ObjectRef) *Place {
	return rowsOf(Pods, owner.Namespace+"/"+owner.Argument(), func(item any) bool {
		pod, ok := item.(*inventory.Pod)
		return ok && whatif.Owner(pod.Pod) == owner && pod.Status.Phase == corev1.PodPending
	})
}

// PlaceOfPools returns the place of a driver's pools.
func PlaceOfPools(driver string) *Place {
	return rowsOf(Pools, "driver "+driver, func(item any) bool {
		pool, ok := item.(*api.Pool)
		return ok && pool.Driver == driver
	})
}
