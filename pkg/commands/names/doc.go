// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package names resolves the names that users type: types and their short names, names
// without a type, and completions for a shell.
//
// It finds objects by name and says what to write instead. It explains nothing and changes
// nothing. pkg/commands and the packages below it may import it.
package names
