// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package outlook knows under which conditions a target that does not fit would:
// after pods of lower priority or all claims are gone, on the hardware alone, with
// one more node. Each is decided by the allocator.
//
// It changes nothing of what is asked for; that is for remedies. pkg/explain may
// import it.
package outlook
