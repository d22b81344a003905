// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package obstacle knows what keeps a pod from being placed, whatever the node and
// whatever devices there are: quotas and limits, its gang, its volumes. What
// could not be read is reported as not evaluated.
//
// It decides nothing about devices. pkg/explain may import it.
package obstacle
