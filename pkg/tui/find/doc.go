// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package find is a list to choose a name from by typing parts of it.
//
// It knows names and what kind of thing each is, and nothing of a cluster. Names are
// listed and compared in commands, so that a key is answered at once however many
// there are. Only pkg/tui may import it.
package find
