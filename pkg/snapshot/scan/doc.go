// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scan finds where JSON values begin and end without decoding them, so
// that a large List can be cut into items that several goroutines then decode.
//
// It never checks more of the syntax than that takes: the decoder does the
// rest. The packages objects, load and validate import it.
package scan
