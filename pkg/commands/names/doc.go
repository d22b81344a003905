// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package names is how users name things: types and their short names, what a name
// without a type stands for, and what a shell can complete a word to.
//
// It finds objects by name and says what to write instead. It explains nothing and
// changes nothing. pkg/commands and the packages below it may import it.
package names
