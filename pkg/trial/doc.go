// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trial tests whether Dynamic Resource Allocation works: it plans the claims and
// pods ([New]), records their stages ([Record]), checks the container ([Contents]), and
// draws the conclusions ([Finish], [Report]).
//
// It creates nothing and asks no server: pkg/commands/trial does, and passes on the
// results. It asks pkg/explain and pkg/forecast what fits. Only pkg/commands may import it.
package trial
