// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package behavior has what kube-schedulers of some releases do otherwise than those of others,
// with the same feature gates: one table, with the upstream change of each line.
//
// It knows versions and nothing of clusters. Any package may import it.
package behavior

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Library is the version of k8s.io/dynamic-resource-allocation that
// this program is built with.
const Library = "v0.37.2"

// Behavior is what kube-schedulers of some releases do, and those of others do
// not, with the same feature gates.
type Behavior string

// The behaviors that change whether a pod is scheduled, or where to.
const (
	// AllPoolErrorEndsAttempt: a request for all devices that meets an incomplete or
	// invalid pool on one node ends the attempt for all nodes, else for that node.
	AllPoolErrorEndsAttempt Behavior = "AllPoolErrorEndsAttempt"
	// TimeoutEndsAttempt: a search that takes longer than the filter timeout on one
	// node ends the attempt for all nodes, else for that node.
	TimeoutEndsAttempt Behavior = "TimeoutEndsAttempt"
	// AllWithCountersPanics: kube-scheduler panics when a request for all devices
	// takes one that consumes counters.
	AllWithCountersPanics Behavior = "AllWithCountersPanics"
	// MixedClaimsFailScore: a pod with claims that are allocated and others that are
	// not cannot be scheduled if more than one node is suitable.
	MixedClaimsFailScore Behavior = "MixedClaimsFailScore"
	// DistinctPerRequest: distinctAttribute compares a device only with the last one of
	// each request, so that one request can get devices with the same value.
	DistinctPerRequest Behavior = "DistinctPerRequest"
	// ListsNotCompared: constraints compare no attributes that are lists, although
	// the gate for them is on.
	ListsNotCompared Behavior = "ListsNotCompared"
	// UnsortedPools: pools are tried in no certain order.
	UnsortedPools Behavior = "UnsortedPools"
	// GroupsNotCompared: the pods of a PodGroup are placed even if their priorities
	// differ from that of the group.
	GroupsNotCompared Behavior = "GroupsNotCompared"
)

// The behaviors with taints of devices, the second one of kube-controller-manager.
const (
	// OpenRuleTaintsAll: a DeviceTaintRule without deviceSelector taints all devices. The
	// controller that evicts never looks at such a rule.
	OpenRuleTaintsAll Behavior = "OpenRuleTaintsAll"
	// ExtendedNotEvicted: taints do not evict pods from the devices of extended resources.
	ExtendedNotEvicted Behavior = "ExtendedNotEvicted"
)

// Change is one line of the table of behavior by release.
type Change struct {
	Behavior Behavior
	// Upstream is the pull request that changed it, at the end.
	Upstream int
	// Spans are the releases that behave so.
	Spans []Span
}

// Span are releases from one on, and before another one. Empty is without end.
type Span struct{ From, Before string }

// Changes returns the table. What is on no line is the same in all releases from
// 1.35 to that of the library, as far as is known. A fix that a vendor has taken
// over without saying so in the version is not seen.
//
// The patch releases are those whose modules have the fix
// (k8s.io/dynamic-resource-allocation v0.35.6 and v0.36.2), or whose branch got it
// on the same day. No patch release up to v0.35.10, v0.36.6 and v0.37.2
// has the fix of [AllPoolErrorEndsAttempt], and none up to v0.36.6 that of
// [DistinctPerRequest]. [ListsNotCompared] is in kube-scheduler itself: 1.36.3 to
// 1.36.5 were looked at.
func Changes() []Change {
	return []Change{
		{AllPoolErrorEndsAttempt, 141898, []Span{{"", "1.38.0"}}},
		{TimeoutEndsAttempt, 137607, []Span{{"1.36.0", ""}}},
		{AllWithCountersPanics, 138885, []Span{{"1.35.0", "1.35.6"}, {"1.36.0", "1.36.2"}}},
		{MixedClaimsFailScore, 139017, []Span{{"1.35.0", "1.35.6"}, {"1.36.0", "1.36.2"}}},
		{DistinctPerRequest, 140600, []Span{{"", "1.37.0"}}},
		{ListsNotCompared, 139332, []Span{{"1.36.0", "1.37.0"}}},
		{UnsortedPools, 136641, []Span{{"", "1.36.0"}}},
		{GroupsNotCompared, 139920, []Span{{"", "1.37.0"}}},

		{OpenRuleTaintsAll, 141620, []Span{{"", "1.37.1"}}},
		{ExtendedNotEvicted, 142289, []Span{{"", "1.37.2"}}},
	}
}

// oldest is the oldest minor release that is supported, and lastPatch a number that no patch
// release gets to.
const (
	oldest    = 35
	lastPatch = 999
)

// Of are those of kube-scheduler of a version such as "v1.36.3-gke.100". Releases that are
// older than all that are supported are answered as the last patch of the oldest.
func Of(release string) map[Behavior]bool {
	parsed, err := version.ParseGeneric(release)
	if err != nil {
		parsed = version.MustParseGeneric("1" + strings.TrimPrefix(Library, "v0"))
	}
	if parsed.LessThan(patch(oldest, 0)) {
		parsed = patch(oldest, lastPatch)
	}
	return at(parsed)
}

// Within is what is known where a release is not: what kube-scheduler is assumed to do, and
// whether schedulers of the minor releases from one to another, both included, differ in it.
// Assumed is the first of them, and the library's release where they are zero.
func Within(from, to uint) (assumed, varies map[Behavior]bool) {
	assumed = Of("")
	if from > 0 {
		assumed = at(patch(max(from, oldest), lastPatch))
	}
	first, last := patch(max(from, oldest), 0), patch(max(from, to, oldest), lastPatch)
	if from == 0 {
		last = patch(lastPatch, 0)
	}
	varies = map[Behavior]bool{}
	for _, change := range Changes() {
		has := change.in(first)
		for _, s := range change.Spans {
			for _, edge := range []string{s.From, s.Before} {
				if edge == "" {
					continue
				}
				if v := version.MustParseGeneric(edge); first.LessThan(v) && v.LessThan(last) && change.in(v) != has {
					varies[change.Behavior] = true
				}
			}
		}
	}
	return assumed, varies
}

// patch is the version 1.minor.patch.
func patch(minor, patch uint) *version.Version { return version.MajorMinor(1, minor).WithPatch(patch) }

func at(release *version.Version) map[Behavior]bool {
	found := map[Behavior]bool{}
	for _, change := range Changes() {
		found[change.Behavior] = change.in(release)
	}
	return found
}

func (c *Change) in(release *version.Version) bool {
	return slices.ContainsFunc(c.Spans, func(s Span) bool { return s.has(release) })
}

func (s Span) has(release *version.Version) bool {
	return (s.From == "" || release.AtLeast(version.MustParseGeneric(s.From))) &&
		(s.Before == "" || release.LessThan(version.MustParseGeneric(s.Before)))
}
