// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package views knows what the screens of the dashboard show of a picture:
//
//   - the lists (views.go): which views there are, and which rows and columns each has;
//   - the rows of a list (arrange.go): which are wanted, in which order;
//   - texts about a row (text.go): why it waits, its YAML, its tree, the lines beside it;
//   - the first page (summary.go), with an hour of history;
//   - nodes as signs (cell.go);
//   - places (place.go): where the dashboard can go from a row, as plain data from which a
//     screen can be made.
//
// It keeps no state but the history, and draws nothing on the terminal. Only pkg/tui may
// import it.
package views
