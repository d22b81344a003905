// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

// Problem is everything that decides whether the requests can be satisfied on
// one node. Decide reads it and never changes it. All indices must be in
// range and all amounts at least zero.
type Problem struct {
	// Devices are referred to by their index.
	Devices []Device
	// Requests are the requests of all claims, in the order of the claims and, within a
	// claim, of its requests. The requests of a claim stand together: the order matters for
	// admin access.
	Requests []Request
	// Constraints is how many constraints there are. The constraints of all
	// claims are numbered through.
	Constraints int
	// Distinct tells for each constraint whether the values of the devices must
	// be distinct (matchAttribute otherwise).
	Distinct []bool
	// Counters is the rest of each counter after all allocations. The counters of all
	// counter sets of all pools are numbered through. Where nothing is left, or less than
	// nothing, it is 0; a device of a pool with an overcommitted counter cannot be a
	// candidate.
	Counters []int64
	// GroupBase is the use of each counter set by allocated devices. Sets beyond the end
	// are unused.
	GroupBase []GroupBase
	// ClaimLimit is the most devices that one claim may get, 0 for any number.
	ClaimLimit int
}

// Device is one device of the node.
type Device struct {
	// Shared devices may be given to several requests
	// (allowMultipleAllocations), as far as their Capacity goes. All others are
	// exclusive.
	Shared bool
	// Uses are the counters that are charged when the device is taken: once for
	// a shared device however many requests it serves, and for each request that
	// takes an exclusive one, which are several only through admin access. A
	// shared device that is already in use has paid: it has no Uses and no
	// Groups.
	Uses []CounterUse
	// Groups are the compatibility groups that the device declares, for each
	// counter set that it consumes from.
	Groups []GroupUse
	// Capacity is the free amount of each capacity of a shared device: the Takes of all
	// requests together must not exceed it. For an exclusive device it limits each request
	// alone. Empty means that there is no limit.
	Capacity []int64
}

// CounterUse is an amount of one counter.
type CounterUse struct {
	Counter int
	Amount  int64
}

// GroupUse are the compatibility groups of a device in one counter set.
// Devices of a set get along when all of them have one group in common, or
// when none of them declares any group.
type GroupUse struct {
	Set    int
	Groups []int
}

// GroupBase is the use of a counter set by allocated devices: no device (not Used), devices
// without groups (Used, no Groups), or devices with one of the Groups. If the allocated
// devices have no group in common, so that no other can join, Groups holds one group that
// no device has, for example -1.
type GroupBase struct {
	Used   bool
	Groups []int
}

// Request is one request of one claim.
type Request struct {
	// Claim is the number of the claim.
	Claim int
	// Admin requests may also take an exclusive device that an earlier request
	// of another claim took. Whatever they take is blocked for later requests
	// without admin access and for all others of the same claim.
	Admin bool
	// Alternatives are the subrequests of a prioritized list; a plain request
	// has one. Exactly one of them gets its devices.
	Alternatives []Alternative
}

// Alternative is one way to satisfy a request.
type Alternative struct {
	// Count is the number of different devices. All overrides it.
	Count int
	// All means that every candidate must be taken, and that there must be at
	// least one. The caller makes sure that a matching device which can't be
	// taken makes the alternative impossible (no candidates). When such a device
	// violates a constraint, the scheduler's allocator gives up with an error,
	// even where another choice before would have helped; here that is one more
	// way that does not work.
	All bool
	// Candidates are the devices to choose from, each device at most once.
	Candidates []Candidate
}

// Candidate is a device which may serve an alternative.
type Candidate struct {
	Device int
	// Takes is how much it needs of each Capacity of the device.
	Takes []int64
	// Values has for each constraint the values that the device has, one for a
	// scalar attribute; nil where the constraint does not apply to this
	// alternative, which is the same for all of its candidates. A constraint
	// beyond the end does not apply. A constraint that applies to a device
	// without any value makes the candidate impossible.
	Values [][]int
}

// Answer is the result of Decide.
type Answer int

// The answers.
const (
	// Unknown means that the context ended before the question was decided.
	Unknown Answer = iota
	// Feasible means that there is an assignment; the result has one.
	Feasible
	// Infeasible means that there is none.
	Infeasible
)

// String returns the name of the answer.
func (a Answer) String() string {
	switch a {
	case Feasible:
		return "Feasible"
	case Infeasible:
		return "Infeasible"
	default:
		return "Unknown"
	}
}

// Result is the answer, with an example when it is Feasible.
type Result struct {
	Answer Answer
	// Chosen has one entry for each request of the problem when the answer is
	// Feasible and is nil otherwise. It is some assignment, not necessarily
	// what the scheduler would pick.
	Chosen []Choice
}

// Choice has the alternative and the devices of one request.
type Choice struct {
	// Alternative is an index in the Alternatives of the request.
	Alternative int
	// Devices are indices in the Devices of the problem, in ascending order.
	Devices []int
}
