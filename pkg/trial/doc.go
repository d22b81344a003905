// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trial knows how to try out whether Dynamic Resource Allocation works: which
// claims and pods are made for it, and which must not be ([New]), which stages they
// pass through and when ([Record]), what the container has to see ([Contents]), and
// what follows from all that ([Finish], [Report]).
//
// It creates nothing and asks no server: pkg/commands/trial does, and tells it what
// came of it. What fits it asks pkg/explain and pkg/forecast. Only pkg/commands may
// import it.
package trial
