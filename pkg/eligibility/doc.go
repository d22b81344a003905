// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eligibility knows why the allocator takes a device for no request,
// whatever is allocated: what is the matter with its slice, its pool, the nodes
// that it is for, or the feature gates that it needs. It knows nothing of requests.
// pkg/inventory and pkg/explain ask it.
package eligibility
