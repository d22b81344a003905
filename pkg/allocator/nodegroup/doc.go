// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodegroup knows which nodes are equivalent for the claims of a
// question, so that one of them answers for all: by their signatures, which are
// for these claims alone, or by their contents, which hold for claims with changes,
// too.
//
// It decides nothing.
package nodegroup
