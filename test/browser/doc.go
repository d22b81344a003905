// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package browser tests in a browser the page that kubectl dra report writes. It is a module of
// its own, so that nothing else gets the dependencies of what drives the browser.
package browser
