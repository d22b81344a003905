// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/save"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/events"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/picture"
)

// errGone is an object that was there when it was selected.
var errGone = errors.New("is gone")

// open is the screen behind an item: from a class to its pools, their devices,
// the claims that have them, their pods. Nil if there is nothing behind it.
func open(item any) screen {
	switch x := item.(type) {
	case *inventory.Node:
		return newList(viewDevices, scope{of: x.Scope, matcher: always(func(item any) bool {
			d, ok := item.(*api.Device)
			return ok && d.Scope == x.Scope
		})})
	case *api.Class:
		return newList(viewPools, ofClass(x.Name))
	case *api.Pool:
		return newList(viewDevices, scope{of: "pool " + x.Driver + "/" + x.Name, matcher: always(func(item any) bool {
			d, ok := item.(*api.Device)
			return ok && d.Driver == x.Driver && d.Pool == x.Name
		})})
	case *api.Device:
		if len(x.Holders) == 0 {
			return treePage(item)
		}
		return newList(viewClaims, scope{of: "device " + x.Pool + "/" + x.Name, matcher: always(func(item any) bool {
			c, ok := item.(*api.Claim)
			return ok && slices.ContainsFunc(x.Holders, func(h api.Holder) bool { return h.Namespace == c.Namespace && h.Claim == c.Name })
		})})
	case *inventory.Team:
		return newList(viewClaims, scope{of: x.Namespace + ", class " + x.Class, matcher: always(func(item any) bool {
			c, ok := item.(*api.Claim)
			return ok && c.Namespace == x.Namespace && slices.ContainsFunc(c.Requests, func(r api.ClaimRequest) bool {
				return r.DeviceClass == x.Class || slices.Contains(r.DeviceClasses, x.Class)
			})
		})})
	case *api.Claim:
		if x.PodCount == 0 || x.State == api.ClaimStatePending {
			return whyPage(item)
		}
		return newList(viewPods, scope{of: "claim " + x.Namespace + "/" + x.Name, matcher: always(func(item any) bool {
			p, ok := item.(*inventory.Pod)
			return ok && p.Namespace == x.Namespace && slices.Contains(p.Claims, x.Name)
		})})
	case *api.Taint:
		return newList(viewDevices, scope{of: "taint " + inventory.TaintText(x), matcher: always(func(item any) bool {
			d, ok := item.(*api.Device)
			return ok && slices.Contains(x.Devices, inventory.DeviceName(d))
		})})
	case *inventory.Pod:
		return whyPage(item)
	case *api.Finding:
		return findingPage(x)
	default:
		return nil
	}
}

// openEvent has the objects that an event is about, or explains the claim if it is one.
func openEvent(e *events.Event) screen {
	objects := e.Objects()
	of := func(id viewID, has func(item any) bool) screen {
		return newList(id, scope{of: e.String(), matcher: always(has)})
	}
	switch e.Kind {
	case events.Claim:
		if claim := itemOfEvent(e); claim != nil {
			return whyPage(claim)
		}
		return of(viewClaims, func(item any) bool {
			c, ok := item.(*api.Claim)
			return ok && c.Namespace == e.Namespace && objects[c.Name]
		})
	case events.Slice:
		return of(viewPools, func(item any) bool {
			pool, ok := item.(*api.Pool)
			return ok && objects[pool.Driver+"/"+pool.Name]
		})
	default:
		return of(viewTaints, func(item any) bool {
			t, ok := item.(*api.Taint)
			return ok && objects[t.Rule]
		})
	}
}

// itemOfEvent is the claim that an event is about; nil if it is about more, or no claim.
func itemOfEvent(e *events.Event) any {
	if e.Kind == events.Claim && e.Count == 1 {
		for name := range e.Objects() {
			return &api.Claim{Namespace: e.Namespace, Name: name}
		}
	}
	return nil
}

// ofClass has the pools with at least one device that a class selects.
func ofClass(name string) scope {
	return scope{of: "class " + name, matcher: func(ctx context.Context, p *picture.Picture) (func(any) bool, error) {
		class := p.Snap.Class(name)
		if class == nil {
			return nil, fmt.Errorf("DeviceClass %s no longer exists", name)
		}
		ids, _, err := p.Inventory.Choose(ctx, class.Spec.Selectors)
		if err != nil {
			return nil, err
		}
		type poolKey struct{ driver, name string }
		pools := map[poolKey]bool{}
		for _, id := range ids {
			pools[poolKey{id.Driver, id.Pool}] = true
		}
		return func(item any) bool {
			pool, ok := item.(*api.Pool)
			return ok && pools[poolKey{pool.Driver, pool.Name}]
		}, nil
	}}
}

// whyPage explains the claim or pod that an item is, or the claim that has the
// device. Nil if there is none.
func whyPage(item any) screen {
	options := explain.Options{Kind: api.KindClaim}
	if f, ok := item.(*api.Finding); ok {
		item = itemOf(f)
	}
	switch x := item.(type) {
	case *api.Claim:
		options.Namespace, options.Name = x.Namespace, x.Name
	case *inventory.Pod:
		options.Kind, options.Namespace, options.Name = api.KindPod, x.Namespace, x.Name
	case *api.Device:
		if len(x.Holders) == 0 {
			return nil
		}
		options.Namespace, options.Name = x.Holders[0].Namespace, x.Holders[0].Claim
	default:
		return nil
	}
	page := newPage(fmt.Sprintf("why %s %s/%s", options.Kind, options.Namespace, options.Name),
		func(ctx context.Context, p *picture.Picture, width int) (string, error) {
			answer, err := p.Explain(ctx, options)
			if err != nil {
				return "", err
			}
			var text bytes.Buffer
			err = render.Explanation(&text, answer, render.Options{Width: width, Color: true})
			return text.String(), err
		})
	page.again = true
	return page
}

// yamlPage shows the object that an item is about; nil if it is none.
func yamlPage(item any) screen {
	var name string
	var find func(p *picture.Picture) runtime.Object
	switch x := item.(type) {
	case *api.Claim:
		name = "ResourceClaim " + x.Namespace + "/" + x.Name
		find = func(p *picture.Picture) runtime.Object { return orNil(p.Snap.Claim(x.Namespace, x.Name)) }
	case *inventory.Pod:
		name = "Pod " + x.Namespace + "/" + x.Name
		find = func(p *picture.Picture) runtime.Object { return orNil(p.Snap.Pod(x.Namespace, x.Name)) }
	case *api.Class:
		name = "DeviceClass " + x.Name
		find = func(p *picture.Picture) runtime.Object { return orNil(p.Snap.Class(x.Name)) }
	case *inventory.Node:
		if x.Name == "" {
			return nil
		}
		name = "Node " + x.Name
		find = func(p *picture.Picture) runtime.Object { return orNil(p.Snap.Node(x.Name)) }
	case *api.Device:
		name = "Device " + inventory.DeviceName(x)
		find = func(*picture.Picture) runtime.Object { return x }
	case *api.Pool:
		name = "Pool " + inventory.PoolName(x)
		find = func(*picture.Picture) runtime.Object { return x }
	case *api.Taint:
		name = "Taint " + inventory.TaintText(x)
		find = func(*picture.Picture) runtime.Object { return x }
	default:
		return nil
	}
	return newPage("YAML of "+name, func(_ context.Context, p *picture.Picture, _ int) (string, error) {
		object := find(p)
		if object == nil {
			return "", fmt.Errorf("%s %w", name, errGone)
		}
		text, err := save.MarshalYAML(withKind(object))
		return render.EscapeLines(string(text)), err
	})
}

// withKind is a copy of an object of the API that says what it is.
func withKind(object runtime.Object) runtime.Object {
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil || len(kinds) == 0 {
		return object
	}
	object = object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	return object
}

// orNil makes an interface that is nil if the pointer is.
func orNil[T any, P interface {
	*T
	runtime.Object
}](object P,
) runtime.Object {
	if object == nil {
		return nil
	}
	return object
}

// treePage shows what hangs on an item; nil if nothing can.
func treePage(item any) screen {
	var name string
	var grow func(ctx context.Context, p *picture.Picture) (api.Branch, error)
	switch x := item.(type) {
	case *api.Claim:
		name = "claim " + x.Namespace + "/" + x.Name
		grow = func(_ context.Context, p *picture.Picture) (api.Branch, error) {
			claim := p.Snap.Claim(x.Namespace, x.Name)
			if claim == nil {
				return api.Branch{}, errGone
			}
			return p.Inventory.ClaimTree(claim), nil
		}
	case *inventory.Pod:
		name = "pod " + x.Namespace + "/" + x.Name
		grow = func(_ context.Context, p *picture.Picture) (api.Branch, error) {
			pod := p.Snap.Pod(x.Namespace, x.Name)
			if pod == nil {
				return api.Branch{}, errGone
			}
			return p.Inventory.PodTree(pod), nil
		}
	case *api.Class:
		name = "class " + x.Name
		grow = func(ctx context.Context, p *picture.Picture) (api.Branch, error) {
			class := p.Snap.Class(x.Name)
			if class == nil {
				return api.Branch{}, errGone
			}
			return p.Inventory.ClassTree(ctx, class)
		}
	case *inventory.Node:
		if x.Name == "" {
			return nil
		}
		name = "node " + x.Name
		grow = func(ctx context.Context, p *picture.Picture) (api.Branch, error) {
			return p.Inventory.NodeTree(ctx, x.Name)
		}
	case *api.Device:
		name = "device " + inventory.DeviceName(x)
		grow = func(_ context.Context, p *picture.Picture) (api.Branch, error) {
			d := p.Alloc.Facts.Pools.Device(cluster.DeviceID{Driver: x.Driver, Pool: x.Pool, Device: x.Name})
			if d == nil {
				return api.Branch{}, errGone
			}
			return p.Inventory.DeviceTree(d), nil
		}
	case *api.Pool:
		name = "pool " + inventory.PoolName(x)
		grow = func(_ context.Context, p *picture.Picture) (api.Branch, error) {
			for _, pool := range p.Alloc.Facts.Pools.All() {
				if pool.Driver == x.Driver && pool.Name == x.Name {
					return p.Inventory.PoolTree(pool, func(*cluster.Device) bool { return true }), nil
				}
			}
			return api.Branch{}, errGone
		}
	default:
		return nil
	}
	return newPage("tree of "+name, func(ctx context.Context, p *picture.Picture, _ int) (string, error) {
		root, err := grow(ctx, p)
		if err != nil {
			return "", fmt.Errorf("%s %w", name, err)
		}
		var text bytes.Buffer
		err = render.Tree(&text, &root)
		return text.String(), err
	})
}
