// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verdict decides who fits where: one target in a cluster ([Decide]), and the pods that
// wait, one after another, with what those that come first leave for the others ([Queue]).
//
// A verdict has codes and facts, and no sentences: what settles the matter before any node is
// tried, what the allocator says of each node, what else is in the way (quotas and limits, the
// gang, volumes), where the pod stands in its life. What could not be read is not evaluated.
//
// Nodes that are equivalent for the claims share an answer: [NodeSignatures] tells them by what
// these claims look at, [NodeContents] by all that they have, which holds for changed claims too.
// Where the allocator would try all combinations of devices, claims are counted
// ([CountingAnswer], with pkg/allocator/decision). Counting never overrules the allocator: where
// numbers are too large, or a selector may fail, it does not know.
//
// pkg/explain and what stands on it ask down.
package verdict
