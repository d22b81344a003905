// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package naming knows how names are ordered, and which name was meant by a name with
// a typo. It knows nothing of what the names are for. Every package may import it but pkg/api and pkg/snapshot.
package naming
