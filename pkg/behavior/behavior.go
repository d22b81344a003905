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
	// PoolsByNode: a pool is what targets the node. It is complete if that is as
	// many slices as it is said to have; requests for a number of devices use
	// incomplete pools, and end the attempt at invalid ones.
	PoolsByNode Behavior = "PoolsByNode"
	// DistinctPerRequest: distinctAttribute compares a device only with the last one of
	// each request, so that one request can get devices with the same value.
	DistinctPerRequest Behavior = "DistinctPerRequest"
	// ListsNotCompared: constraints compare no attributes that are lists, although
	// the gate for them is on.
	ListsNotCompared Behavior = "ListsNotCompared"
	// CapacityOfOther: with consumable capacity, the capacity of another device of the
	// slice is compared with the request.
	CapacityOfOther Behavior = "CapacityOfOther"
	// NoPriorityScore: nodes are not scored by the alternatives of a prioritized list.
	NoPriorityScore Behavior = "NoPriorityScore"
	// UnsortedPools: pools are tried in no certain order.
	UnsortedPools Behavior = "UnsortedPools"
	// GroupsNotCompared: the pods of a PodGroup are placed even if their priorities
	// differ from that of the group.
	GroupsNotCompared Behavior = "GroupsNotCompared"
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
// 1.34 to that of the library, as far as is known. A fix that a vendor has taken
// over without saying so in the version is not seen.
//
// The patch releases are those whose modules have the fix
// (k8s.io/dynamic-resource-allocation v0.35.6 and v0.36.2), or whose branch got it
// on the same day. No patch release up to v0.34.13, v0.35.10, v0.36.6 and v0.37.2
// has the fix of [AllPoolErrorEndsAttempt], and none up to v0.36.6 that of
// [DistinctPerRequest]. [ListsNotCompared] is in kube-scheduler itself: 1.36.3 to
// 1.36.5 were looked at.
func Changes() []Change {
	return []Change{
		{AllPoolErrorEndsAttempt, 141898, []Span{{"", "1.38.0"}}},
		{TimeoutEndsAttempt, 137607, []Span{{"1.36.0", ""}}},
		{AllWithCountersPanics, 138885, []Span{{"1.35.0", "1.35.6"}, {"1.36.0", "1.36.2"}}},
		{MixedClaimsFailScore, 139017, []Span{{"1.35.0", "1.35.6"}, {"1.36.0", "1.36.2"}}},
		{PoolsByNode, 134466, []Span{{"", "1.35.0"}}},
		{DistinctPerRequest, 140600, []Span{{"", "1.37.0"}}},
		{ListsNotCompared, 139332, []Span{{"1.36.0", "1.37.0"}}},
		{CapacityOfOther, 133706, []Span{{"", "1.35.0"}}},
		{NoPriorityScore, 134711, []Span{{"", "1.35.0"}}},
		{UnsortedPools, 136641, []Span{{"", "1.36.0"}}},
		{GroupsNotCompared, 139920, []Span{{"", "1.37.0"}}},
	}
}

// Of are those of kube-scheduler of a version such as "v1.36.3-gke.100".
// Where it is not known, which is an empty version, they are those of the library.
func Of(release string) map[Behavior]bool {
	parsed, err := version.ParseGeneric(release)
	if err != nil {
		parsed = version.MustParseGeneric("1" + strings.TrimPrefix(Library, "v0"))
	}
	found := map[Behavior]bool{}
	for _, change := range Changes() {
		found[change.Behavior] = slices.ContainsFunc(change.Spans, func(s Span) bool { return s.has(parsed) })
	}
	return found
}

func (s Span) has(release *version.Version) bool {
	return (s.From == "" || release.AtLeast(version.MustParseGeneric(s.From))) &&
		(s.Before == "" || release.LessThan(version.MustParseGeneric(s.Before)))
}
