// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package node

// State is the result of a check. All checks follow one rule: a known error is a [Problem],
// an unknown fact is [Unknown], and something that a machine need not have is [OK]. A
// missing object is a problem only if something else requires it: a file that names it, a
// claim of the cluster. Otherwise this may be the wrong place to look.
type State string

const (
	// OK means that a check passed, or that it does not concern this machine; the message
	// says so then.
	OK State = "OK"
	// Problem means that something is known to be broken.
	Problem State = "Problem"
	// Unknown means that something could not be known; the message says why.
	Unknown State = "Unknown"
)
