// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/about"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/arrange"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
)

// Place is somewhere to go to: a text, or a view with some of its rows.
type Place struct {
	Text  *about.Text
	View  views.ID
	Scope arrange.Scope
	// Map is how nodes are shown as a cell each; nil for a list.
	Map *Map
}

// Map puts nodes into groups, and these in order.
type Map struct {
	By    inventory.Grouping
	Order inventory.Order
}

// All returns a view as it is opened from elsewhere.
func All(id views.ID) *Place { return &Place{View: id} }

// list returns the rows of a view that belong to something.
func list(id views.ID, of string, has func(item any) bool) *Place {
	return &Place{View: id, Scope: arrange.Scope{Of: of, Matcher: arrange.Always(has)}}
}

// text returns nil where there is nothing to read.
func text(of *about.Text) *Place {
	if of == nil {
		return nil
	}
	return &Place{Text: of}
}

// WithoutPod returns the pending claims that no pod uses.
func WithoutPod(name string) *Place {
	return list(views.Pending, name, func(item any) bool {
		claim, ok := item.(*api.Claim)
		return ok && slices.ContainsFunc(claim.Flags, func(flag api.ClaimFlag) bool { return flag.Name == api.FlagWaitingForPod })
	})
}

// Teams returns what teams have of one namespace.
func Teams(name string) *Place {
	return list(views.Teams, "namespace "+name, func(item any) bool {
		t, ok := item.(*inventory.Team)
		return ok && t.Namespace == name
	})
}

// Pods returns the pods of an owner such as "job/train" that have no node, or do not run.
func Pods(namespace, owner string) *Place {
	return list(views.Pods, namespace+"/"+owner, func(item any) bool {
		pod, ok := item.(*inventory.Pod)
		return ok && pod.Namespace == namespace && lifecycle.WorkloadName(pod.Pod) == owner && pod.Status.Phase == corev1.PodPending
	})
}

// Devices returns the place of one node's devices.
func Devices(node string) *Place {
	return list(views.Devices, "node "+node, func(item any) bool {
		d, ok := item.(*api.Device)
		return ok && d.Scope == node
	})
}

// Pools returns the place of a driver's pools.
func Pools(driver string) *Place {
	return list(views.Pools, "driver "+driver, func(item any) bool {
		pool, ok := item.(*api.Pool)
		return ok && pool.Driver == driver
	})
}
