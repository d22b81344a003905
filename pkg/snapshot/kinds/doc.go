// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kinds knows the kinds of objects that a snapshot has: how they are decoded from
// JSON and from older versions, what the API server rejects, which fields nothing reads, and
// which fields a redacted snapshot has in another form. It knows objects alone.
package kinds
