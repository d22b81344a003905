// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
)

// placed is a selector with its place.
type placed struct {
	object           api.ObjectRef
	path, expression string
}

// findUnmatched finds parts of selectors that no device can fulfill, because no device has
// the name or the value. It looks at claims without devices, and at templates.
func findUnmatched(ctx context.Context, in *cluster) ([]api.Finding, error) {
	if len(in.cluster.Pools.Devices()) == 0 {
		return nil, nil
	}
	evaluator := in.cluster.Gates.Selectors()
	catalog := eligibility.NewCatalog(in.cluster, evaluator)
	places := map[string][]placed{}
	var expressions []string
	told, err := toldByPods(ctx, in)
	if err != nil {
		return nil, err
	}
	for _, p := range selectorsInUse(in) {
		if told[p.object] {
			continue
		}
		if places[p.expression] == nil {
			expressions = append(expressions, p.expression)
		}
		places[p.expression] = append(places[p.expression], p)
	}
	var found []api.Finding
	for _, expression := range expressions {
		sel := evaluator.Compile(expression)
		for i := range sel.Conjuncts {
			if _, _, equality := sel.Conjuncts[i].Equality(); !equality {
				// Others may hold for a device that does not have it.
				continue
			}
			unknown := catalog.UnknownValue(&sel.Conjuncts[i])
			if unknown.Text == "" {
				continue
			}
			f := api.Finding{
				Message: fmt.Sprintf("no device can match %s: %s", sel.Conjuncts[i].Expression, unknown.Text),
				Remedy:  &api.NextStep{Actor: api.ActorUser, Text: "correct the selector", Commands: []string{"kubectl dra devices -o wide"}},
			}
			for _, p := range places[expression] {
				if !slices.Contains(f.Objects, p.object) {
					f.Objects = append(f.Objects, p.object)
				}
				f.Evidence = append(f.Evidence, api.Evidence{Object: p.object, Path: p.path, Found: p.expression})
			}
			found = append(found, f)
			break
		}
	}
	return found, nil
}

// toldByPods returns the claims and templates of waiting pods whose answer is that a
// selector is why: other checks report these pods.
func toldByPods(ctx context.Context, in *cluster) (map[api.ObjectRef]bool, error) {
	told := map[api.ObjectRef]bool{}
	if !in.opts.Makes(codeNever) || !in.opts.Makes(codeFails) || slices.ContainsFunc(waitingNeeds(), func(r string) bool { return in.cluster.Snapshot.Gap(r) != nil }) {
		return told, nil
	}
	answers, err := in.answers(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range answers {
		if !failsToSchedule(e) && !neverFits(e) || !slices.Contains([]api.Code{api.SelectorError, api.RequestSelectorFalse, api.AttributeMissing}, e.Code) {
			continue
		}
		for i := range e.Claims {
			told[api.Ref(api.KindClaim, e.Claims[i].Namespace, e.Claims[i].Name)] = true
		}
		if pod := in.cluster.Snapshot.Pod(e.Target.Namespace, e.Target.Name); pod != nil {
			for _, entry := range pod.Spec.ResourceClaims {
				told[api.Ref(api.KindTemplate, pod.Namespace, ptr.Deref(entry.ResourceClaimTemplateName, ""))] = true
			}
		}
	}
	return told, nil
}

// selectorsInUse lists the selectors of requests, starting with templates.
func selectorsInUse(in *cluster) []placed {
	var list []placed
	add := func(o api.ObjectRef, path string, selectors []resourceapi.DeviceSelector) {
		for i, s := range selectors {
			if s.CEL != nil {
				list = append(list, placed{o, fmt.Sprintf("%s.selectors[%d].cel.expression", path, i), s.CEL.Expression})
			}
		}
	}
	each := func(o api.ObjectRef, path string, requests []resourceapi.DeviceRequest) {
		for i := range requests {
			at := fmt.Sprintf("%s.devices.requests[%d]", path, i)
			if exactly := requests[i].Exactly; exactly != nil {
				add(o, at+".exactly", exactly.Selectors)
			}
			// One of several alternatives may be for missing devices.
		}
	}
	for _, template := range in.cluster.Snapshot.Templates {
		each(api.RefTo(api.KindTemplate, template), "spec.spec", template.Spec.Spec.Devices.Requests)
	}
	for _, claim := range in.cluster.Snapshot.Claims {
		if claim.Status.Allocation == nil {
			each(api.RefTo(api.KindClaim, claim), "spec", claim.Spec.Devices.Requests)
		}
	}
	return list
}
