// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package summary makes what the first page of the dashboard shows out of a picture: the
// verdict, how much is used, what is stuck, who uses what, what needs a hand. It also keeps
// an hour of history.
//
// It draws nothing: pkg/tui/overview does. Only pkg/tui may import it.
package summary
