// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard has the changes of a cluster that can be asked for on the dashboard, and
// how one is shown before it is made: the command that does the same, and what it does.
//
// It makes no change and works nothing out: a [Changer] does both. Only pkg/tui and
// pkg/commands/top may import it.
package guard
