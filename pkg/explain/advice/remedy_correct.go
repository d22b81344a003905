// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// corrected is a selector of a request, or of a class, as it was probably meant.
type corrected struct {
	at    requestPlace
	class *resourceapi.DeviceClass
	// index is the index of the selector, expression its correction.
	index      int
	expression string
	changes    []selector.Change
	// guarded is the expression that is false where the other fails; it is empty if
	// it fails on no device.
	guarded string
}

// safely lets expressions be false where they fail.
func safely(list []corrected) []corrected {
	list = slices.Clone(list)
	for i := range list {
		list[i].expression = cmp.Or(list[i].guarded, list[i].expression)
	}
	return list
}

// corrections tries what selectors were probably meant to say: each for itself,
// and all of them where that is not enough. Those of the claims come before those
// of the classes.
func (r *remedies) corrections(ctx context.Context) error {
	if r.Devices != api.DoesNotFit && r.Devices != api.Error {
		return nil
	}
	ofClaims, ofClasses := correctedInClaims(ctx, r.Case), correctedInClasses(ctx, r.Case)
	helped := false
	for _, c := range slices.Concat(ofClaims, ofClasses) {
		ok, err := r.proposeCorrected(ctx, c)
		if err != nil {
			return err
		}
		helped = helped || ok
	}
	if helped {
		return nil
	}
	for _, list := range [][]corrected{ofClaims, ofClasses, slices.Concat(ofClaims, ofClasses)} {
		if len(list) < 2 {
			continue
		}
		if ok, err := r.proposeCorrected(ctx, list...); err != nil || ok {
			return err
		}
	}
	return nil
}

// proposeCorrected proposes selectors as they were meant, and else so that they
// are false where they fail on devices of other drivers.
func (r *remedies) proposeCorrected(ctx context.Context, list ...corrected) (bool, error) {
	ok, err := r.propose(ctx, correction(r.waiting(), list...))
	if ok || err != nil || !slices.ContainsFunc(list, func(c corrected) bool { return c.guarded != "" }) {
		return ok, err
	}
	return r.propose(ctx, correction(r.waiting(), safely(list)...))
}

// correctedInClaims corrects the selectors of requests, with the words of the
// devices of their class.
func correctedInClaims(ctx context.Context, c *Case) []corrected {
	var list []corrected
	claims := c.waiting()
	for _, at := range places(claims) {
		a := at.in(claims)
		for i, each := range *a.selectors {
			if made, ok := correct(ctx, c, each, c.Cluster.Snapshot.Class(*a.class)); ok {
				made.at, made.index = at, i
				list = append(list, made)
			}
		}
	}
	return list
}

// correctedInClasses corrects the selectors of the classes that are asked for.
func correctedInClasses(ctx context.Context, c *Case) []corrected {
	var list []corrected
	claims := c.waiting()
	for _, at := range places(claims) {
		class := c.Cluster.Snapshot.Class(*at.in(claims).class)
		if class == nil || slices.ContainsFunc(list, func(c corrected) bool { return c.class == class }) {
			continue
		}
		for i, each := range class.Spec.Selectors {
			if made, ok := correct(ctx, c, each, nil); ok {
				made.at, made.class, made.index = at, class, i
				list = append(list, made)
			}
		}
	}
	return list
}

// correct puts a selector right that is evaluated on devices of a class, or on all
// devices if none is given.
func correct(ctx context.Context, c *Case, from resourceapi.DeviceSelector, class *resourceapi.DeviceClass) (corrected, bool) {
	if from.CEL == nil {
		return corrected{}, false
	}
	correction, ok := c.Selectors.Correct(c.Selectors.Compile(from.CEL.Expression), c.Catalog.WordsOf(ctx, class))
	if !ok {
		return corrected{}, false
	}
	made := corrected{expression: correction.Expression, changes: correction.Changes}
	right := resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: made.expression}}
	made.guarded, _ = guard(ctx, c, right)
	if made.guarded != "" && failsIn(ctx, c, class, made.expression) {
		made.expression, made.guarded = made.guarded, ""
	}
	return made, true
}

// failsIn reports whether an expression fails on a device that a class selects.
// Whether that is of consequence may depend on the order in which devices are
// looked at, so that it is better avoided.
func failsIn(ctx context.Context, c *Case, class *resourceapi.DeviceClass, expression string) bool {
	if class == nil {
		return false
	}
	sel := c.Selectors.Compile(expression)
	return slices.ContainsFunc(c.Cluster.Pools.Devices(), func(d cluster.Device) bool {
		return c.Catalog.InClass(ctx, class, d.ID.Driver, d.Device) && c.Selectors.Evaluate(ctx, sel, d.ID.Driver, d.Device).Err != nil
	})
}

// correction makes one change of corrected selectors. It is the administrator's if
// one of them is of a class.
func correction(claims []*resourceapi.ResourceClaim, list ...corrected) change {
	all := change{actor: api.ActorUser, anywhere: true}
	var texts []string
	for _, c := range list {
		path := fmt.Sprintf("/selectors/%d/cel/expression", c.index)
		var said []string
		for _, each := range c.changes {
			said = append(said, fmt.Sprintf("%s instead of %s", each.To, each.From))
		}
		where := "request " + nameIn(claims, c.at)
		if c.class != nil {
			all.actor, where = api.ActorAdmin, "class "+c.class.Name
			all.objects = append(all.objects, whatif.NewEdit(api.Ref("DeviceClass", "", c.class.Name), "replace", "/spec"+path, c.expression))
		} else {
			all.claims = append(all.claims, claimEdit{c.at.claim, "replace", c.at.pointer() + path, c.expression})
		}
		texts = append(texts, fmt.Sprintf("correct the selector of %s: %s", where, english.JoinAnd(said)))
	}
	all.text = strings.Join(texts, "; ")
	return all
}

// guard rewrites a selector so that no device of the cluster makes it fail for
// what it lacks.
func guard(ctx context.Context, c *Case, from resourceapi.DeviceSelector) (string, bool) {
	if from.CEL == nil {
		return "", false
	}
	return c.Cluster.Pools.Guard(ctx, c.Selectors, from.CEL.Expression)
}
