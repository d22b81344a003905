// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/diff"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
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

// PlaceBehind returns the place behind an item: from a class to its pools, their devices, the
// claims that have them, their pods. It is nil if there is none.
func PlaceBehind(item any) *Place {
	switch x := item.(type) {
	case *inventory.Node:
		return rowsOf(Devices, x.Scope, func(item any) bool {
			d, ok := item.(*api.Device)
			return ok && d.Scope == x.Scope
		})
	case *api.Class:
		return &Place{View: Pools, Scope: poolsOfClass(x.Name)}
	case *api.Pool:
		return rowsOf(Devices, "pool "+x.Driver+"/"+x.Name, func(item any) bool {
			d, ok := item.(*api.Device)
			return ok && d.Driver == x.Driver && d.Pool == x.Name
		})
	case *api.Device:
		if len(x.Holders) == 0 {
			return placeOfText(TreeText(item))
		}
		return rowsOf(Claims, "device "+x.Pool+"/"+x.Name, func(item any) bool {
			c, ok := item.(*api.Claim)
			return ok && slices.ContainsFunc(x.Holders, func(h api.Holder) bool { return h.Namespace == c.Namespace && h.Claim == c.Name })
		})
	case *inventory.Team:
		of := x.Namespace + ", class " + x.Class
		if x.Class == allClasses {
			of = x.Namespace
		}
		return rowsOf(Claims, of, func(item any) bool {
			c, ok := item.(*api.Claim)
			return ok && c.Namespace == x.Namespace && (x.Class == allClasses || slices.ContainsFunc(c.Requests, func(r api.ClaimRequest) bool {
				return r.DeviceClass == x.Class || slices.Contains(r.DeviceClasses, x.Class)
			}))
		})
	case *api.Claim:
		if x.PodCount == 0 || x.State == api.ClaimStatePending {
			return placeOfText(WhyText(item))
		}
		return rowsOf(Pods, "claim "+x.Namespace+"/"+x.Name, func(item any) bool {
			p, ok := item.(*inventory.Pod)
			return ok && p.Namespace == x.Namespace && slices.Contains(p.Claims, x.Name)
		})
	case *api.Taint:
		return rowsOf(Devices, "taint "+inventory.TaintText(x), func(item any) bool {
			d, ok := item.(*api.Device)
			return ok && slices.Contains(x.Devices, inventory.DeviceName(d))
		})
	case *inventory.Pod, *api.ObjectRef:
		return placeOfText(WhyText(item))
	case *render.CauseLine:
		return placeOfText(CauseText(x))
	case *api.Finding:
		return placeOfText(FindingText(x))
	default:
		return nil
	}
}

// PlaceBehindEvent returns the objects that an event is about, or explains the claim or pod if
// it is one.
func PlaceBehindEvent(e *diff.Event) *Place {
	objects := e.Objects()
	of := func(id ID, has func(item any) bool) *Place {
		return rowsOf(id, e.String(), has)
	}
	if item := ItemOfEvent(e); item != nil {
		return placeOfText(WhyText(item))
	}
	switch e.Code.Kind() {
	case diff.EventOfClaim:
		return of(Claims, func(item any) bool {
			c, ok := item.(*api.Claim)
			return ok && c.Namespace == e.Namespace && objects[c.Name]
		})
	case diff.EventOfPod:
		return of(Pods, func(item any) bool {
			p, ok := item.(*inventory.Pod)
			return ok && p.Namespace == e.Namespace && objects[p.Name]
		})
	case diff.EventOfNode:
		return of(Nodes, func(item any) bool {
			n, ok := item.(*inventory.Node)
			return ok && objects[n.Name]
		})
	case diff.EventOfSlice:
		return of(Pools, func(item any) bool {
			pool, ok := item.(*api.Pool)
			return ok && objects[pool.Driver+"/"+pool.Name]
		})
	default:
		return of(Taints, func(item any) bool {
			t, ok := item.(*api.Taint)
			return ok && objects[t.Rule]
		})
	}
}

// ItemOfEvent returns the claim or pod of an event; nil if it has several, or something else.
func ItemOfEvent(e *diff.Event) any {
	if e.Count != 1 {
		return nil
	}
	for name := range e.Objects() {
		if e.Code.Kind() == diff.EventOfClaim {
			return &api.Claim{Namespace: e.Namespace, Name: name}
		}
		if e.Code.Kind() == diff.EventOfPod {
			return &inventory.Pod{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}}}
		}
	}
	return nil
}

// poolsOfClass returns the pools with at least one device that a class selects.
func poolsOfClass(name string) Scope {
	return Scope{Of: "class " + name, Matcher: func(ctx context.Context, p *live.Picture) (func(any) bool, error) {
		class := p.Cluster.Snapshot.Class(name)
		if class == nil {
			return nil, fmt.Errorf("DeviceClass %s no longer exists", name)
		}
		ids, _, err := p.Inventory.Choose(ctx, class.Spec.Selectors)
		if err != nil {
			return nil, err
		}
		pools := map[snapshot.PoolID]bool{}
		for _, id := range ids {
			pools[snapshot.PoolID{Driver: id.Driver, Name: id.Pool}] = true
		}
		return func(item any) bool {
			pool, ok := item.(*api.Pool)
			return ok && pools[snapshot.PoolID{Driver: pool.Driver, Name: pool.Name}]
		}, nil
	}}
}
