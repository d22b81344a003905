// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// refusals returns changes that make the scheduler or the API server look at the claims
// at all.
func refusals(ctx context.Context, c *Case) []change {
	if c.Devices != api.Error {
		return nil
	}
	switch c.NodeCode { //nolint:exhaustive // The others are about what is asked or free.
	case api.ClassNotFound:
		return meantClasses(ctx, c)
	case api.SelectorError:
		return guarded(ctx, c)
	case api.AdminAccessDenied:
		return adminAccess(c)
	case api.FeatureDisabled:
		return gatesOn(c)
	}
	return nil
}

// meantClasses corrects the names of classes that do not exist, all in one change.
func meantClasses(ctx context.Context, c *Case) []change {
	var corrected []change
	for _, at := range places(c.waiting()) {
		required := *at.in(c.waiting()).class
		if c.Cluster.Snapshot.Class(required) != nil {
			continue
		}
		meant := c.Catalog.MeantClass(ctx, required, c.Cluster.Snapshot.Classes)
		if meant == "" {
			return nil
		}
		corrected = append(corrected, withClass(c, at, meant, lossNone))
	}
	return []change{joined(corrected)}
}

// guarded makes selectors that fail false instead.
func guarded(ctx context.Context, c *Case) []change {
	var list []change
	claims := c.waiting()
	seen := map[string]bool{}
	for _, at := range places(claims) {
		a := at.in(claims)
		if class := c.Cluster.Snapshot.Class(*a.class); class != nil && !seen[class.Name] {
			seen[class.Name] = true
			for k, selector := range class.Spec.Selectors {
				if guarded, ok := guard(ctx, c, selector); ok {
					name := api.Ref("DeviceClass", "", class.Name)
					list = append(list, change{
						actor: api.ActorAdmin, text: fmt.Sprintf("let the selector of class %s be false where it fails now: %s", class.Name, guarded),
						objects: []api.Edit{whatif.NewEdit(name, "replace", fmt.Sprintf("/spec/selectors/%d/cel/expression", k), guarded)},
					})
				}
			}
		}
		for k, selector := range *a.selectors {
			if guarded, ok := guard(ctx, c, selector); ok {
				list = append(list, change{
					actor: api.ActorUser, text: fmt.Sprintf("let the selector of request %s be false where it fails now: %s", a.name, guarded),
					claims: []claimEdit{{at.claim, "replace", fmt.Sprintf("%s/selectors/%d/cel/expression", at.pointer(), k), guarded}},
				})
			}
		}
	}
	return list
}

// adminAccess asks for the label of the namespace, or does without.
func adminAccess(c *Case) []change {
	var without []claimEdit
	namespace := ""
	claims := c.waiting()
	for _, at := range places(claims) {
		exact := claims[at.claim].Spec.Devices.Requests[at.request].Exactly
		if exact != nil && ptr.Deref(exact.AdminAccess, false) {
			without = append(without, claimEdit{at.claim, "remove", at.pointer() + "/adminAccess", nil})
			namespace = claims[at.claim].Namespace
		}
	}
	list := []change{{actor: api.ActorUser, loss: lossCondition, text: "remove adminAccess", claims: without}}
	n := c.Cluster.Snapshot.Namespace(namespace)
	if n == nil {
		return list
	}
	label := whatif.NewEdit(api.Ref("Namespace", "", namespace), "add", "/metadata/labels/"+whatif.PointerToken(resourceapi.DRAAdminNamespaceLabelKey), "true")
	if len(n.Labels) == 0 {
		label = whatif.NewEdit(label.Object, "add", "/metadata/labels", map[string]string{resourceapi.DRAAdminNamespaceLabelKey: "true"})
	}
	return append(list, change{
		actor: api.ActorAdmin, objects: []api.Edit{label},
		text: fmt.Sprintf("label namespace %s with %s=true, if its users may access devices that others use", namespace, resourceapi.DRAAdminNamespaceLabelKey),
	})
}

// gatesOn turns on the feature gates that are off, each by itself.
func gatesOn(c *Case) []change {
	var list []change
	for _, gate := range []string{"DRAPrioritizedList", "DRAAdminAccess", "DRAConsumableCapacity", "DRADerivedAttributes"} {
		if !c.Cluster.Gates.Enabled(gate) {
			list = append(list, change{actor: api.ActorAdmin, gate: gate, text: gateText(gate)})
		}
	}
	return list
}
