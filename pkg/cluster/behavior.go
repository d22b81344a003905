// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Library is the version of k8s.io/dynamic-resource-allocation that
// this program is built with.
const Library = "v0.37.2"

// Behavior is something that kube-scheduler does in some releases and not in others, with
// the same feature gates.
type Behavior string

// The behaviors that change whether a pod is scheduled, or where to.
const (
	// AllPoolErrorEndsAttempt: a request for all devices that meets an incomplete or
	// invalid pool on one node ends the attempt for all nodes, else for that node.
	AllPoolErrorEndsAttempt Behavior = "AllPoolErrorEndsAttempt"
	// TimeoutEndsAttempt: a search that takes longer than the filter timeout on one
	// node ends the attempt for all nodes, else for that node.
	TimeoutEndsAttempt Behavior = "TimeoutEndsAttempt"
	// AllWithCountersPanics: kube-scheduler panics if a request for all devices gets a
	// device that consumes counters.
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
	// differ from the priority of the group.
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

// The behaviors of the search for devices, which pkg/allocator repeats.
const (
	// RejectedKeepsCounters: a device that is rejected for a taint or a constraint, or that
	// the search releases when several claims can share it, keeps its counters reserved.
	RejectedKeepsCounters Behavior = "RejectedKeepsCounters"
	// CountersByPoolName: the pools of two drivers that have the same name have their
	// counters in common.
	CountersByPoolName Behavior = "CountersByPoolName"
	// SharesNotCharged: devices that claims share leave their counters untouched once
	// they are allocated.
	SharesNotCharged Behavior = "SharesNotCharged"
	// SharesChargedTwice: the counters of a device are charged again for each further
	// share, if the shares before have no capacity.
	SharesChargedTwice Behavior = "SharesChargedTwice"
	// AllLeavesOutFull: a request for all devices leaves out those without enough
	// capacity left, and fits with the others.
	AllLeavesOutFull Behavior = "AllLeavesOutFull"
	// CapacityWraps: a capacity that is rounded up beyond the largest number becomes a
	// negative one, and fits.
	CapacityWraps Behavior = "CapacityWraps"
	// CountersConcernAll: slices with counter sets concern every node, so that incomplete
	// and invalid pools with counters are in the way of requests on nodes without their devices.
	CountersConcernAll Behavior = "CountersConcernAll"
	// CountsOverflow: the counts of the requests of a claim are added without looking at
	// the largest number, and kube-scheduler panics where the sum is negative.
	CountsOverflow Behavior = "CountsOverflow"
	// AlternativesMixedUp: alternatives that ask for all devices use intermediate results
	// of other alternatives of their request.
	AlternativesMixedUp Behavior = "AlternativesMixedUp"
	// Permutes: the devices of a request are tried in every order.
	Permutes Behavior = "Permutes"
)

// BehaviorChange is one line of the table of behavior by release.
type BehaviorChange struct {
	Behavior Behavior
	// Upstream is the pull request that changed it, at the end.
	Upstream int
	// Spans are the releases that behave so.
	Spans []BehaviorSpan
}

// BehaviorSpan are releases from one on, and before another one. Empty is without end.
type BehaviorSpan struct{ From, Before string }

// BehaviorChanges returns the table. All releases from 1.35 to the release of the library
// do the same where the table has no line, as far as is known. A fix that a vendor has taken
// over without saying so in the version is not seen.
//
// test/allocators compares the search for devices, the taints of rules and evictions with the
// code of all patch releases. [MixedClaimsFailScore], [TimeoutEndsAttempt] and [ListsNotCompared]
// are in kube-scheduler itself and were read in all patch releases of k8s.io/kubernetes but 1.35.7,
// 1.35.9, 1.35.10 and 1.36.6, which could not be had. No patch release has the fix of
// [AllPoolErrorEndsAttempt].
func BehaviorChanges() []BehaviorChange {
	return []BehaviorChange{
		{AllPoolErrorEndsAttempt, 141898, []BehaviorSpan{{"", "1.38.0"}}},
		{TimeoutEndsAttempt, 137607, []BehaviorSpan{{"1.36.0", ""}}},
		{AllWithCountersPanics, 138885, []BehaviorSpan{{"1.35.0", "1.35.6"}, {"1.36.0", "1.36.2"}}},
		{MixedClaimsFailScore, 139017, []BehaviorSpan{{"1.35.0", "1.35.6"}, {"1.36.0", "1.36.2"}}},
		{DistinctPerRequest, 140600, []BehaviorSpan{{"", "1.37.0"}}},
		{ListsNotCompared, 139332, []BehaviorSpan{{"1.36.0", "1.37.0"}}},
		{UnsortedPools, 136641, []BehaviorSpan{{"", "1.36.0"}}},
		{GroupsNotCompared, 139920, []BehaviorSpan{{"", "1.37.0"}}},

		{OpenRuleTaintsAll, 141620, []BehaviorSpan{{"", "1.37.1"}}},
		{ExtendedNotEvicted, 142289, []BehaviorSpan{{"", "1.37.2"}}},
		{RejectedKeepsCounters, 140431, []BehaviorSpan{{"", "1.36.3"}}},
		{CountersByPoolName, 140435, []BehaviorSpan{{"", "1.36.4"}}},
		{SharesNotCharged, 139040, []BehaviorSpan{{"", "1.36.2"}}},
		{SharesChargedTwice, 140437, []BehaviorSpan{{"1.36.2", "1.37.0"}}},
		{AllLeavesOutFull, 140769, []BehaviorSpan{{"", "1.37.0"}}},
		{CapacityWraps, 140442, []BehaviorSpan{{"", "1.37.0"}}},
		{CountersConcernAll, 138917, []BehaviorSpan{{"", "1.37.0"}}},
		{CountsOverflow, 141307, []BehaviorSpan{{"", "1.35.9"}, {"1.36.0", "1.36.5"}, {"1.37.0", "1.37.1"}}},
		{AlternativesMixedUp, 137347, []BehaviorSpan{{"", "1.36.0"}}},
		{Permutes, 133678, []BehaviorSpan{{"", "1.36.0"}}},
	}
}

// fixedBehavior returns the pull request that ends a behavior, and the first release after the
// given release that does not have the behavior.
func fixedBehavior(b Behavior, release string) (upstream int, fixed string) {
	parsed, err := version.ParseGeneric(release)
	for _, change := range BehaviorChanges() {
		if change.Behavior != b {
			continue
		}
		for _, s := range change.Spans {
			if err == nil && s.has(parsed) {
				return change.Upstream, s.Before
			}
		}
		return change.Upstream, change.Spans[len(change.Spans)-1].Before
	}
	return 0, ""
}

// oldestMinor is the oldest minor release that is supported, and lastPatch a number that no
// patch release gets to.
const (
	oldestMinor = 35
	lastPatch   = 999
)

// BehaviorsOf returns the behaviors of kube-scheduler of a version such as "v1.36.3-gke.100". A
// release that is older than all supported releases has the behaviors of the last patch release
// of the oldest supported minor release.
func BehaviorsOf(release string) map[Behavior]bool {
	parsed, err := version.ParseGeneric(release)
	if err != nil {
		parsed = version.MustParseGeneric("1" + strings.TrimPrefix(Library, "v0"))
	}
	if parsed.LessThan(patchRelease(oldestMinor, 0)) {
		parsed = patchRelease(oldestMinor, lastPatch)
	}
	return behaviorsAt(parsed)
}

// behaviorsWithin returns the behavior of an unknown release: the behaviors that kube-scheduler
// is assumed to have, and whether schedulers of the minor releases from one to another, both
// included, differ in them. Assumed is the first release, and the library's release if both
// are zero.
func behaviorsWithin(from, to uint) (assumed, varies map[Behavior]bool) {
	assumed = BehaviorsOf("")
	if from > 0 {
		assumed = behaviorsAt(patchRelease(max(from, oldestMinor), lastPatch))
	}
	first, last := patchRelease(max(from, oldestMinor), 0), patchRelease(max(from, to, oldestMinor), lastPatch)
	if from == 0 {
		last = patchRelease(lastPatch, 0)
	}
	varies = map[Behavior]bool{}
	for _, change := range BehaviorChanges() {
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

// patchRelease returns the version 1.minor.patch.
func patchRelease(minor, patch uint) *version.Version {
	return version.MajorMinor(1, minor).WithPatch(patch)
}

func behaviorsAt(release *version.Version) map[Behavior]bool {
	found := map[Behavior]bool{}
	for _, change := range BehaviorChanges() {
		found[change.Behavior] = change.in(release)
	}
	return found
}

func (c *BehaviorChange) in(release *version.Version) bool {
	return slices.ContainsFunc(c.Spans, func(s BehaviorSpan) bool { return s.has(release) })
}

func (s BehaviorSpan) has(release *version.Version) bool {
	return (s.From == "" || release.AtLeast(version.MustParseGeneric(s.From))) &&
		(s.Before == "" || release.LessThan(version.MustParseGeneric(s.Before)))
}

// Text says the behavior in a clause whose subject is a kube-scheduler or what it handles.
func (b Behavior) Text() string {
	switch b {
	case AllPoolErrorEndsAttempt:
		return "a request for all devices that meets an incomplete pool on one node keeps the pod from all nodes"
	case TimeoutEndsAttempt:
		return "a search that takes too long on one node keeps the pod from all nodes"
	case AllWithCountersPanics:
		return "it panics where a request for all devices takes a partition"
	case MixedClaimsFailScore:
		return "a pod with some claims allocated and others not is not scheduled if several nodes are suitable"
	case DistinctPerRequest:
		return "distinctAttribute lets one request get devices with the same value"
	case ListsNotCompared:
		return "constraints do not compare attributes that are lists"
	case UnsortedPools:
		return "pools are tried in no certain order"
	case OpenRuleTaintsAll:
		return "a DeviceTaintRule without deviceSelector taints all devices, and evicts nobody"
	case ExtendedNotEvicted:
		return "taints do not evict pods from the devices of extended resources"
	case GroupsNotCompared:
		return "pods are placed even if their priorities differ from that of their PodGroup"
	case RejectedKeepsCounters:
		return "a device that is rejected for a taint or a constraint keeps its counters reserved during the search"
	case CountersByPoolName:
		return "pools of two drivers that have the same name have their counters in common"
	case SharesNotCharged:
		return "allocated devices that claims share leave their counters untouched"
	case SharesChargedTwice:
		return "a further share of a device without capacity is charged its counters again"
	case AllLeavesOutFull:
		return "a request for all devices leaves out devices without enough capacity left"
	case CapacityWraps:
		return "a capacity that is rounded up beyond the largest number becomes negative, and fits"
	case CountersConcernAll:
		return "incomplete and invalid pools with counters are in the way on nodes that have none of their devices"
	case CountsOverflow:
		return "it panics where the sum of the counts of a claim overflows"
	case AlternativesMixedUp:
		return "alternatives that ask for all devices are mixed up with others of their request"
	case Permutes:
		return "the devices of a request are tried in every order"
	default:
		return string(b)
	}
}

// behaviorMessage is a text that only kube-schedulers with one behavior write.
type behaviorMessage struct {
	behavior Behavior
	// word is a part of every such text, which is looked for first.
	word    string
	pattern *regexp.Regexp
}

// behaviorMessages returns the texts that prove a behavior. A scheduler writes them into the condition
// PodScheduled of a pod, and into events. Errors that end an attempt for all nodes begin with
// the point that failed (RunFilterPlugins and RunScorePlugins in pkg/scheduler/framework/runtime);
// what keeps a pod from one node stands behind "0/3 nodes are available".
//
//   - computeScore in pkg/scheduler/framework/plugins/dynamicresources: since the fix, the text
//     goes on with "needing allocation".
//   - validateDeviceRequest in structured/internal/*/allocator_*.go.
//   - Filter in pkg/scheduler/framework/plugins/dynamicresources: up to 1.35 it names no node.
func behaviorMessages() []behaviorMessage {
	return []behaviorMessage{
		{MixedClaimsFailScore, "number of allocations", regexp.MustCompile(`number of allocations \d+ is smaller than number of claims($|[^ ]| *$)`)},
		{AllPoolErrorEndsAttempt, "asks for all devices", regexp.MustCompile(`^running "DynamicResources" filter plugin: .*asks for all devices, but resource pool `)},
		{TimeoutEndsAttempt, "timed out trying", regexp.MustCompile(`^running "DynamicResources" filter plugin: .*node \S+: timed out trying to allocate devices`)},
	}
}

// behaviorProvedBy returns the behavior that a message of kube-scheduler proves, whatever is known of
// its release; false for all other messages.
func behaviorProvedBy(text string) (Behavior, bool) {
	for _, m := range behaviorMessages() {
		if strings.Contains(text, m.word) && m.pattern.MatchString(text) {
			return m.behavior, true
		}
	}
	return "", false
}
