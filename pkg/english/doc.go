// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package english knows how clauses, lists and counts are put into words, how names are
// ordered, and which name was meant by one with a typo. It knows nothing of clusters, and
// its texts are never parsed again. Every package that writes for people may import it.
package english
