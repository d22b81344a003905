// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest is what users name with -f or -k: which of the objects can be
// explained, as if they were applied, and what a remedy changes in the files, as a
// diff. [Place] is the way in.
//
// Edits are made in the text, so that comments, blank lines and quotes stay and the
// diff has nothing but the change. Libraries that decode YAML and encode it again
// (kyaml too) rewrite all of that. Each edit is held against a JSON patch of the
// decoded documents. Only [Files.Write] writes files. Only pkg/commands imports this
// package.
package manifest
