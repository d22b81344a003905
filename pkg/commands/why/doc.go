// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package why has the verb why: it finds the targets, waiting pods or devices in a cluster,
// a snapshot or manifests, and prints the answers about them.
//
// The answers are from pkg/explain, the text is from pkg/render. Only pkg/commands imports
// it.
package why
