// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"bytes"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubectl/pkg/scheme"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
)

// YAMLText shows the object that an item is about; it returns nil for an item without one.
func YAMLText(item any) *Text {
	var name string
	var find func(p *live.Picture) runtime.Object
	switch x := item.(type) {
	case *api.Claim:
		name = "ResourceClaim " + x.Namespace + "/" + x.Name
		find = func(p *live.Picture) runtime.Object { return orNil(p.Cluster.Snapshot.Claim(x.Namespace, x.Name)) }
	case *inventory.Pod:
		name = "Pod " + x.Namespace + "/" + x.Name
		find = func(p *live.Picture) runtime.Object { return orNil(p.Cluster.Snapshot.Pod(x.Namespace, x.Name)) }
	case *api.Class:
		name = "DeviceClass " + x.Name
		find = func(p *live.Picture) runtime.Object { return orNil(p.Cluster.Snapshot.Class(x.Name)) }
	case *inventory.Node:
		if x.Name == "" {
			return nil
		}
		name = "Node " + x.Name
		find = func(p *live.Picture) runtime.Object { return orNil(p.Cluster.Snapshot.Node(x.Name)) }
	case *api.Device:
		name = "Device " + inventory.DeviceName(x)
		find = func(*live.Picture) runtime.Object { return x }
	case *api.Pool:
		name = "Pool " + inventory.PoolName(x)
		find = func(*live.Picture) runtime.Object { return x }
	case *api.Taint:
		name = "Taint " + inventory.TaintText(x)
		find = func(*live.Picture) runtime.Object { return x }
	default:
		return nil
	}
	return &Text{Name: "YAML of " + name, Write: func(_ context.Context, p *live.Picture, _ int) (string, error) {
		object := find(p)
		if object == nil {
			return "", fmt.Errorf("%s %w", name, errGone)
		}
		text, err := files.MarshalYAML(withKind(object))
		return render.EscapeLines(string(text)), err
	}}
}

// withKind returns a copy of an object of the API that says what it is.
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

// TreeText shows what hangs on an item; nil if nothing can.
func TreeText(item any) *Text {
	var name string
	var grow func(ctx context.Context, p *live.Picture) (api.Branch, error)
	switch x := item.(type) {
	case *api.Claim:
		name = "claim " + x.Namespace + "/" + x.Name
		grow = func(_ context.Context, p *live.Picture) (api.Branch, error) {
			return treeOf(p.Cluster.Snapshot.Claim(x.Namespace, x.Name), p.Inventory.Trees().Claim)
		}
	case *inventory.Pod:
		name = "pod " + x.Namespace + "/" + x.Name
		grow = func(_ context.Context, p *live.Picture) (api.Branch, error) {
			return treeOf(p.Cluster.Snapshot.Pod(x.Namespace, x.Name), p.Inventory.Trees().Pod)
		}
	case *api.Class:
		name = "class " + x.Name
		grow = func(ctx context.Context, p *live.Picture) (api.Branch, error) {
			class := p.Cluster.Snapshot.Class(x.Name)
			if class == nil {
				return api.Branch{}, errGone
			}
			return p.Inventory.Trees().Class(ctx, class)
		}
	case *inventory.Node:
		if x.Name == "" {
			return nil
		}
		name = "node " + x.Name
		grow = func(ctx context.Context, p *live.Picture) (api.Branch, error) {
			return p.Inventory.Trees().Node(ctx, x.Name)
		}
	case *api.Device:
		name = "device " + inventory.DeviceName(x)
		grow = func(_ context.Context, p *live.Picture) (api.Branch, error) {
			return treeOf(p.Cluster.Pools.Device(cluster.DeviceID{Driver: x.Driver, Pool: x.Pool, Device: x.Name}), p.Inventory.Trees().Device)
		}
	case *api.Pool:
		name = "pool " + inventory.PoolName(x)
		grow = func(_ context.Context, p *live.Picture) (api.Branch, error) {
			for _, pool := range p.Cluster.Pools.All() {
				if pool.Driver == x.Driver && pool.Name == x.Name {
					return p.Inventory.Trees().Pool(pool, func(*cluster.Device) bool { return true }), nil
				}
			}
			return api.Branch{}, errGone
		}
	default:
		return nil
	}
	return &Text{Name: "tree of " + name, Write: func(ctx context.Context, p *live.Picture, _ int) (string, error) {
		root, err := grow(ctx, p)
		if err != nil {
			return "", fmt.Errorf("%s %w", name, err)
		}
		var text bytes.Buffer
		err = render.Trees(&text, []api.Branch{root}, 1, render.Options{})
		return text.String(), err
	}}
}

// treeOf returns the tree of a found object; it fails if that is gone.
func treeOf[T any](found *T, tree func(*T) api.Branch) (api.Branch, error) {
	if found == nil {
		return api.Branch{}, errGone
	}
	return tree(found), nil
}
