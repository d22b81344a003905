// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
)

// proofTime bounds the search for a conflict and for remedies.
const proofTime = 3 * time.Second

// maxRemedies is how many changes are suggested.
const maxRemedies = 5

// prove finds out which facts cannot hold together on the most promising node,
// and what would make the claims fit there. It adds nothing if that cannot be
// told, or not in time.
func (x *inquiry) prove(ctx context.Context) error {
	node := x.promising()
	if node == nil || len(x.claims) == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, proofTime)
	defer cancel()
	s, err := x.newScene(limited, node)
	if err != nil || len(s.facts) > maxFacts {
		return ctx.Err()
	}
	chosen, err := s.conflict(limited)
	if err != nil || len(chosen) == 0 {
		return ctx.Err()
	}
	x.out.Conflict = &Conflict{Node: node.Name}
	for _, i := range chosen {
		x.out.Conflict.Facts = append(x.out.Conflict.Facts, ConflictFact{Text: s.facts[i].text, Evidence: s.facts[i].evidence})
	}
	r := remedies{inquiry: x, scene: s}
	// An error means that no more can be found.
	_ = r.find(limited, chosen)
	x.out.Remedies = r.found[:min(len(r.found), maxRemedies)]
	return ctx.Err()
}

// promising is the node where the least stands in the way.
func (x *inquiry) promising() *corev1.Node {
	for _, group := range x.out.Nodes {
		for _, name := range group.Names {
			at := slices.IndexFunc(x.site.candidates, func(n *corev1.Node) bool { return n.Name == name })
			if at >= 0 {
				return x.site.candidates[at]
			}
		}
	}
	return nil
}

// remedies looks for changes that make the claims fit on the scene's node, and
// tries each with the allocator.
type remedies struct {
	*inquiry
	scene *scene
	found []Remedy
}

func (r *remedies) find(ctx context.Context, conflict []int) error {
	for _, i := range conflict {
		f := &r.scene.facts[i]
		var err error
		switch claims := r.copies(); {
		case f.counts != nil:
			err = r.smallerCount(ctx, f.counts[0], f.counts[1])
		case f.remedy.change == "":
		case f.drops != nil:
			r.scene.drop(claims, []selectorPart{*f.drops})
			err = r.try(ctx, ActorUser, f.remedy, r.site.alloc, claims)
		case f.relax != nil:
			f.relax(claims)
			r.scene.drop(claims, nil)
			err = r.try(ctx, ActorUser, f.remedy, r.site.alloc, claims)
		}
		if err != nil {
			return err
		}
	}
	return r.freed(ctx)
}

func (r *remedies) copies() []*resourceapi.ResourceClaim {
	claims := make([]*resourceapi.ResourceClaim, 0, len(r.scene.claims))
	for _, claim := range r.scene.claims {
		claims = append(claims, claim.DeepCopy())
	}
	return claims
}

// try asks the allocator about the amended claims and keeps the change if it
// finds devices.
func (r *remedies) try(ctx context.Context, actor string, change remedy, alloc *allocator.Allocator, claims []*resourceapi.ResourceClaim) error {
	verdict := alloc.Check(ctx, r.scene.node, claims)
	if err := ctx.Err(); err != nil || verdict.Outcome != allocator.Fits {
		return err
	}
	found := Remedy{Actor: actor, Change: change.change, Patch: r.patch(change), Verified: true, Node: r.scene.node.Name}
	for i := range verdict.Allocations {
		for j := range verdict.Allocations[i].Devices.Results {
			device := allocatedDevice(&verdict.Allocations[i].Devices.Results[j])
			device.ShareID = ""
			found.Devices = append(found.Devices, device)
		}
	}
	r.found = append(r.found, found)
	return nil
}

// patch writes an operation as a command. The specs of claims and templates
// cannot be changed, so the object is made anew.
func (r *remedies) patch(change remedy) string {
	if change.operation == "" {
		return ""
	}
	claim := r.scene.claims[change.claim]
	kind, name, prefix := "resourceclaim", claim.Name, "/spec"
	if template := r.subject.claims[r.claims[change.claim].index].Template; template != "" {
		kind, name, prefix = "resourceclaimtemplate", template, "/spec/spec"
	} else if claim.UID == "" {
		return ""
	}
	operation := strings.Replace(change.operation, `"path": "`, `"path": "`+prefix, 1)
	return fmt.Sprintf("kubectl get %[1]s %[2]s -n %[3]s -o yaml | kubectl patch --local -f - --type=json -p %[4]s -o yaml | kubectl replace --force -f -",
		kind, shellQuoted(name), shellQuoted(claim.Namespace), shellQuoted("["+operation+"]"))
}

// shellQuoted writes a word so that a shell takes it as it is. Names come from
// the cluster, and commands get pasted.
func shellQuoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._/:", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 && word[0] != '-' {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// smallerCount looks for the most devices that a request could have.
func (r *remedies) smallerCount(ctx context.Context, i, j int) error {
	request := &r.scene.claims[i].Spec.Devices.Requests[j]
	with := func(count int64) []*resourceapi.ResourceClaim {
		claims := r.copies()
		claims[i].Spec.Devices.Requests[j].Exactly.Count = count
		return claims
	}
	low, high := int64(0), min(request.Exactly.Count, resourceapi.AllocationResultsMaxSize+1)
	for high-low > 1 {
		count := (low + high) / 2
		hasty, cancel := context.WithTimeout(ctx, patience/4)
		verdict := r.site.alloc.Check(hasty, r.scene.node, with(count))
		cancel()
		if verdict.Outcome == allocator.Fits {
			low = count
		} else {
			high = count
		}
	}
	if low == 0 {
		return ctx.Err()
	}
	change := remedy{
		claim:     i,
		change:    fmt.Sprintf("ask for %d instead of %d devices in request %s", low, request.Exactly.Count, request.Name),
		operation: fmt.Sprintf(`{"op": "replace", "path": "/devices/requests/%d/exactly/count", "value": %d}`, j, low),
	}
	return r.try(ctx, ActorUser, change, r.site.alloc, with(low))
}

// freed looks for the fewest claims that would have to give back their
// devices. Those of pods with the highest priority are spared first.
func (r *remedies) freed(ctx context.Context) error {
	var asked, holders []int
	for i := range r.scene.facts {
		if freed := r.scene.facts[i].freed; freed == nil || r.own(freed) {
			asked = append(asked, i)
		} else {
			holders = append(holders, i)
		}
	}
	if len(holders) == 0 {
		return nil
	}
	if ok, err := r.scene.fits(ctx, asked); err != nil || !ok {
		return err
	}
	priorities := map[int]int32{}
	for _, i := range holders {
		priorities[i] = r.priority(r.scene.facts[i].freed)
	}
	slices.SortStableFunc(holders, func(a, b int) int { return cmp.Compare(priorities[b], priorities[a]) })
	// One that is enough alone is spared last.
	for at, i := range slices.Backward(holders) {
		others := slices.Delete(slices.Clone(holders), at, at+1)
		ok, err := r.scene.fits(ctx, slices.Concat(asked, others))
		if err != nil {
			return err
		}
		if ok {
			holders = slices.Concat(others, []int{i})
			break
		}
	}
	kept := slices.Clone(asked)
	var victims []*resourceapi.ResourceClaim
	for _, i := range holders {
		ok, err := r.scene.fits(ctx, append(slices.Clone(kept), i))
		if err != nil {
			return err
		}
		if ok {
			kept = append(kept, i)
		} else {
			victims = append(victims, r.scene.facts[i].freed)
		}
	}
	amended := *r.snap
	amended.Claims = slices.DeleteFunc(slices.Clone(r.snap.Claims), func(c *resourceapi.ResourceClaim) bool { return slices.Contains(victims, c) })
	alloc, err := r.site.alloc.Amended(ctx, &amended)
	if err != nil {
		return fmt.Errorf("set up the allocator: %w", err)
	}
	if len(victims) == 0 {
		return nil
	}
	names := make([]string, 0, len(victims))
	for _, claim := range victims {
		name := claim.Namespace + "/" + claim.Name
		if users := usersOf(r.snap, claim); len(users) > 0 {
			name += fmt.Sprintf(" (pod %s)", users[0].Name)
		}
		names = append(names, name)
	}
	change := remedy{change: fmt.Sprintf("claim %s gives back its devices", names[0])}
	if len(names) > 1 {
		change.change = fmt.Sprintf("%d claims give back their devices: %s", len(names), sample(names, 4))
	}
	return r.try(ctx, ActorNobody, change, alloc, r.copies())
}

// own says whether a claim is one of the pod's.
func (r *remedies) own(claim *resourceapi.ResourceClaim) bool {
	return slices.ContainsFunc(r.subject.claims, func(pc allocator.PodClaim) bool {
		return pc.Claim != nil && pc.Claim.Namespace == claim.Namespace && pc.Claim.Name == claim.Name
	})
}

// priority is the highest of the pods that use a claim.
func (r *remedies) priority(claim *resourceapi.ResourceClaim) int32 {
	highest := int32(0)
	for _, pod := range usersOf(r.snap, claim) {
		highest = max(highest, ptr.Deref(pod.Spec.Priority, 0))
	}
	return highest
}
