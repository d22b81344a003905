// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release has the tests of releases: they build one and use it as a user would.
// `make release-check` runs them.
package release
