// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package summary makes the content of the dashboard's first page from a picture: the
// verdict, used devices, stuck pods, namespaces, and problems that need somebody. It also
// keeps an hour of history.
//
// It draws nothing: pkg/tui/overview does. Only pkg/tui may import it.
package summary
