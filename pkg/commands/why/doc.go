// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package why has the verb why: which targets, waiting pods or devices it is asked
// about, in a cluster, a snapshot or manifests, and what of the answers it prints.
//
// The answers are those of pkg/explain, the text is that of pkg/render. Only
// pkg/commands imports it.
package why
