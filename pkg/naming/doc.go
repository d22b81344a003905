// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package naming knows how names are ordered and how near two of them are, to
// suggest the one that was probably meant. It knows nothing of what the names
// are for. Every package may import it but pkg/api and pkg/snapshot.
package naming
