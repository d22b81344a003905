// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package node

// State is how a check came out. All checks hold to one rule: what is known to
// be broken is a [Problem], what could not be known is [Unknown], and what a
// machine need not have is [OK]. Something that is not there is a problem only
// if something else says that it has to be: a file that names it, a claim of the
// cluster. For what is only looked for, it may be that this is the wrong place.
type State string

const (
	// OK is something that is as it should be, or that does not concern this
	// machine; the message says so then.
	OK State = "OK"
	// Problem is something that is known to be broken.
	Problem State = "Problem"
	// Unknown is something that could not be known; the message says why.
	Unknown State = "Unknown"
)
