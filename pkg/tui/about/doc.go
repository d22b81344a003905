// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package about has what there is to read about an item of the dashboard: why it waits, its
// YAML, what hangs on it, all of a finding, and the lines beside a list.
//
// It writes texts and keeps no state. Only pkg/tui and packages below it may import it.
package about
