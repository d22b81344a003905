// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package amend is for facts that are made of those before, where little changed: what two
// lists of objects do not have in common, and maps that share what is the same.
//
// It knows nothing of what it holds. Only pkg/cluster imports it.
package amend
