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

// refusals tries what makes the scheduler or the API server look at the claims
// at all.
func (r *remedies) refusals(ctx context.Context) error {
	if r.Devices != api.Error {
		return nil
	}
	switch r.NodeCode { //nolint:exhaustive // for the others see below
	case api.ClassNotFound:
		return r.meantClasses(ctx)
	case api.SelectorError:
		return r.guarded(ctx)
	case api.AdminAccessDenied:
		return r.adminAccess(ctx)
	case api.FeatureDisabled:
		for _, gate := range []string{"DRAPrioritizedList", "DRAAdminAccess", "DRAConsumableCapacity", "DRADerivedAttributes"} {
			if err := r.gateOn(ctx, gate); err != nil {
				return err
			}
		}
	}
	return nil
}

// meantClasses corrects the names of classes that do not exist, all in one change.
func (r *remedies) meantClasses(ctx context.Context) error {
	var corrected []change
	for _, at := range places(r.waiting()) {
		required := *at.in(r.waiting()).class
		if r.Cluster.Snapshot.Class(required) != nil {
			continue
		}
		meant := r.Catalog.MeantClass(ctx, required, r.Cluster.Snapshot.Classes)
		if meant == "" {
			return nil
		}
		corrected = append(corrected, r.withClass(at, meant, lossNone))
	}
	_, err := r.propose(ctx, joined(corrected))
	return err
}

// guarded makes selectors that fail false instead.
func (r *remedies) guarded(ctx context.Context) error {
	claims := r.waiting()
	seen := map[string]bool{}
	for _, at := range places(claims) {
		a := at.in(claims)
		if class := r.Cluster.Snapshot.Class(*a.class); class != nil && !seen[class.Name] {
			seen[class.Name] = true
			for k, selector := range class.Spec.Selectors {
				if guarded, ok := r.guard(ctx, selector); ok {
					name := api.Ref("DeviceClass", "", class.Name)
					if _, err := r.propose(ctx, change{
						actor: api.ActorAdmin, text: fmt.Sprintf("let the selector of class %s be false where it fails now: %s", class.Name, guarded),
						objects: []api.Edit{whatif.NewEdit(name, "replace", fmt.Sprintf("/spec/selectors/%d/cel/expression", k), guarded)},
					}); err != nil {
						return err
					}
				}
			}
		}
		for k, selector := range *a.selectors {
			if guarded, ok := r.guard(ctx, selector); ok {
				if _, err := r.propose(ctx, change{
					actor: api.ActorUser, text: fmt.Sprintf("let the selector of request %s be false where it fails now: %s", a.name, guarded),
					claims: []claimEdit{{at.claim, "replace", fmt.Sprintf("%s/selectors/%d/cel/expression", at.pointer(), k), guarded}},
				}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// adminAccess asks for the label of the namespace, or does without.
func (r *remedies) adminAccess(ctx context.Context) error {
	var without []claimEdit
	namespace := ""
	claims := r.waiting()
	for _, at := range places(claims) {
		exact := claims[at.claim].Spec.Devices.Requests[at.request].Exactly
		if exact != nil && ptr.Deref(exact.AdminAccess, false) {
			without = append(without, claimEdit{at.claim, "remove", at.pointer() + "/adminAccess", nil})
			namespace = claims[at.claim].Namespace
		}
	}
	if _, err := r.propose(ctx, change{actor: api.ActorUser, loss: lossCondition, text: "remove adminAccess", claims: without}); err != nil {
		return err
	}
	n := r.Cluster.Snapshot.Namespace(namespace)
	if n == nil {
		return nil
	}
	label := whatif.NewEdit(api.Ref("Namespace", "", namespace), "add", "/metadata/labels/"+whatif.PointerToken(resourceapi.DRAAdminNamespaceLabelKey), "true")
	if len(n.Labels) == 0 {
		label = whatif.NewEdit(label.Object, "add", "/metadata/labels", map[string]string{resourceapi.DRAAdminNamespaceLabelKey: "true"})
	}
	_, err := r.propose(ctx, change{
		actor: api.ActorAdmin, objects: []api.Edit{label},
		text: fmt.Sprintf("label namespace %s with %s=true, if its users may access devices that others use", namespace, resourceapi.DRAAdminNamespaceLabelKey),
	})
	return err
}

func (r *remedies) gateOn(ctx context.Context, gate string) error {
	if r.Cluster.Gates.Enabled(gate) {
		return nil
	}
	_, err := r.propose(ctx, change{
		actor: api.ActorAdmin, gate: gate,
		text: gateText(gate),
	})
	return err
}
