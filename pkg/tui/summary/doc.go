// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package summary makes the first page of the dashboard of the overview of a cluster: signs,
// colors, and what is behind each row. It also keeps an hour of history.
//
// It draws nothing: pkg/tui/overview does. Only pkg/tui may import it.
package summary
