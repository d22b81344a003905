// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alarm tells whether a cluster got worse since it was last looked at.
//
// It knows names of troubles and when there were which, and nothing of a cluster. Only
// pkg/tui may import it.
package alarm
