// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// change is something that somebody could do.
type change struct {
	actor string
	text  string
	// changes counts the changes, 0 for a single thing; loss is how much they take away
	// from the request.
	changes, loss int
	// lessOf names the reduced part of the request, if the change does nothing else.
	lessOf string
	// claims are edits of the claims that wait, or of their templates.
	claims []claimEdit
	// objects are edits of other objects.
	objects []api.Edit
	// unbounded are requests that no longer say how much of a capacity they take.
	unbounded []requestPlace
	// gate is a feature gate to turn on.
	gate string
	// silent is true if there is no command for it.
	silent bool
	// anywhere is true if it may help on other nodes than the scenario's.
	anywhere bool
}

// joined makes one change of several.
func joined(parts []change) change {
	all := change{changes: len(parts)}
	var texts []string
	for _, part := range parts {
		if !slices.Contains(texts, part.text) {
			texts = append(texts, part.text)
		}
		all.actor, all.loss, all.gate = together(all.actor, part.actor), max(all.loss, part.loss), cmp.Or(all.gate, part.gate)
		all.claims, all.objects = append(all.claims, part.claims...), append(all.objects, part.objects...)
		all.silent, all.anywhere = all.silent || part.silent, all.anywhere || part.anywhere
		all.unbounded = append(all.unbounded, part.unbounded...)
	}
	all.text = strings.Join(texts, "; and ")
	return all
}

// claimEdit is an operation on the spec of a claim: that with this index among
// those that wait.
type claimEdit struct {
	claim    int
	op, path string
	value    any
}

func actorOrder(actor string) int {
	return slices.Index([]string{api.ActorUser, api.ActorAdmin, api.ActorNobody}, actor)
}

// together returns who has to act for two changes: an administrator if one of them is for
// administrators, and nobody only where there is nothing to do but to wait.
func together(a, b string) string {
	switch {
	case a == "" || a == api.ActorNobody:
		return b
	case b == api.ActorNobody || actorOrder(a) > actorOrder(b):
		return a
	default:
		return b
	}
}

// Losses of a request by a change. Between lossFewer and lossCondition it is a percentage
// of a number.
const (
	lossNone      = 0
	lossNear      = 1   // another value, the nearest that exists
	lossTolerance = 2   // a device with a taint
	lossFewer     = 3   // less of the same
	lossCondition = 104 // a condition is dropped
	lossOther     = 110 // something else
	lossSeveral   = 120 // several conditions are dropped
	lossBroken    = 130 // a device that its driver has tainted
)

// lossOf returns what it takes away to get available in place of required.
func lossOf(available, required int64) int {
	if required <= 0 || available >= required {
		return lossNone
	}
	return lossFewer + int((required-max(available, 0))*100/required)
}

func gateText(gate string) string {
	return fmt.Sprintf("turn on the feature gate %s in the whole cluster", gate)
}
