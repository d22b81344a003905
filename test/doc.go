// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package test has the tests that need more than one package, or a real
// Kubernetes. In scenarios/ is what they put into it.
package test
