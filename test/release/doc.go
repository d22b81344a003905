// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release has the tests of what is released: they build all of it and
// do with it what a user would. `make release-check` runs them.
package release
