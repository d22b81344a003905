// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package english knows how clauses, lists and counts are put into words. It
// knows nothing of clusters, and what it gives is never parsed again. Every
// package that writes for people may import it.
package english
