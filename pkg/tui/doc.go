// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tui is the dashboard of "kubectl dra top": it shows what
// [github.com/kubectl-dra/kubectl-dra/pkg/inventory] and
// [github.com/kubectl-dra/kubectl-dra/pkg/explain] know of a cluster that keeps
// changing, on a terminal.
//
// [Model] has the views and takes in what happens. What is shown is a screen, one opened
// from the other; a screen knows what all share, its host, but not the Model. A cluster is
// followed by [github.com/kubectl-dra/kubectl-dra/pkg/tui/live.Cluster], at a pace that
// leaves most of a processor to others. Screens take what they need from the newest picture,
// also in the background: lists are filtered and sorted there, so that a key is answered at
// once whatever the size of the cluster. Update only keeps state and View only draws, of a
// list just the rows that are visible.
//
// The package never talks to the API server and never decides anything about
// allocation. It, the packages below it and the prompt of pkg/commands are the only ones that
// import Bubble Tea; only pkg/commands may import it.
package tui
