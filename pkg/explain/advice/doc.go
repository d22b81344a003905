// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package advice says why claims do not fit, and what would have to be different: the answer
// about a node in one code and one sentence, a minimal set of facts that conflict on a node, the
// changes that make the claims fit, each verified with the allocator, and the outlook without
// any change.
//
// [Reasons] does not decide whether claims fit, and says nothing of the pod besides its claims;
// [Group] groups the nodes whose answers are equal. pkg/explain and pkg/diff import the package.
package advice
