// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// mostChoices limits how many sets of the pods of a node are considered.
const mostChoices = 12

// usersAmong returns the movers that have some of the devices, or of their pools, by their
// node.
func (d *devices) usersAmong(movers []*mover) map[string][]*user {
	users := map[string][]*user{}
	for _, m := range movers {
		if u := d.userOf(m); u != nil {
			users[m.pod.Spec.NodeName] = append(users[m.pod.Spec.NodeName], u)
		}
	}
	for _, list := range users {
		slices.SortFunc(list, func(a, b *user) int {
			return cmp.Or(strings.Compare(a.first, b.first), strings.Compare(a.pod.Namespace, b.pod.Namespace), strings.Compare(a.pod.Name, b.pod.Name))
		})
	}
	return users
}

// userOf weighs the devices of a mover. It is nil if it has none of their pools.
func (d *devices) userOf(m *mover) *user {
	var found *user
	for _, claim := range m.claims {
		results := claim.Status.Allocation.Devices.Results
		for i := range results {
			if !d.pools[snapshot.PoolID{Driver: results[i].Driver, Name: results[i].Pool}] {
				continue
			}
			name := results[i].Pool + "/" + results[i].Device
			if found == nil {
				found = &user{mover: m, first: name}
			}
			found.first = min(found.first, name)
			if d.eligible[resultID(&results[i])] {
				found.weight++
			}
		}
	}
	if found != nil {
		found.weight = max(found.weight, 1)
	}
	return found
}

// choicesOf returns sets of pods with so many devices: single ones, and such as have
// devices side by side; the smallest first.
func choicesOf(users []*user, missing int) [][]*user {
	type choice struct{ from, to, weight int }
	var choices []choice
	for from := range users {
		weight := 0
		for to := from; to < len(users); to++ {
			if weight += users[to].weight; weight >= missing {
				choices = append(choices, choice{from, to + 1, weight})
				break
			}
		}
	}
	slices.SortStableFunc(choices, func(a, b choice) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(a.to-a.from, b.to-b.from))
	})
	sets := make([][]*user, 0, len(choices))
	for _, c := range choices[:min(len(choices), mostChoices)] {
		sets = append(sets, users[c.from:c.to])
	}
	return sets
}

// packedBound returns a number of claims of a shape of which it is proved that no more fit,
// whichever nodes pods are on: of the devices that can serve them, some are always in use,
// because they belong to claims that no others can serve.
func packedBound(snap *snapshot.Snapshot, all []*mover, shape *claimShape, later *slotCount) int {
	if later.divisible || len(shape.Capacity)+len(shape.Tolerations) > 0 || slices.ContainsFunc(later.unsuitable, func(node *corev1.Node) bool { return !closed(node) }) {
		return unlimited
	}
	movers := map[*resourceapi.ResourceClaim]bool{}
	for _, users := range later.movable(all) {
		for _, u := range users {
			free := slices.ContainsFunc(u.pod.Spec.Tolerations, opens)
			for _, claim := range u.claims {
				if free || !asksWithin(claim, shape) {
					movers[claim] = true
				}
			}
		}
	}
	kept := 0
	for _, claim := range snap.Claims {
		if claim.Status.Allocation == nil || movers[claim] {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			if later.eligible[resultID(&claim.Status.Allocation.Devices.Results[i])] {
				kept++
			}
		}
	}
	return max(0, len(later.eligible)-kept) / shape.Devices
}

// asksWithin reports whether a claim can be served by nothing else than what serves
// claims of a shape.
func asksWithin(claim *resourceapi.ResourceClaim, shape *claimShape) bool {
	for i := range claim.Spec.Devices.Requests {
		exactly := claim.Spec.Devices.Requests[i].Exactly
		if exactly == nil || exactly.DeviceClassName != shape.Class || len(exactly.Tolerations) > 0 || ptr.Deref(exactly.AdminAccess, false) {
			return false
		}
		for _, expression := range shape.Selectors {
			if !slices.ContainsFunc(exactly.Selectors, func(s resourceapi.DeviceSelector) bool { return s.CEL != nil && s.CEL.Expression == expression }) {
				return false
			}
		}
	}
	return true
}

// movable returns the movable users of these devices, see [devices.usersAmong].
func (d *devices) movable(all []*mover) map[string][]*user {
	if d.users == nil {
		d.users = d.usersAmong(all)
	}
	return d.users
}
