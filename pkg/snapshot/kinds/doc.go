// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kinds knows the kinds of objects that a snapshot has: how they are decoded from
// JSON and from older versions, what the API server rejects, and which fields nothing reads.
// It knows objects alone.
package kinds
