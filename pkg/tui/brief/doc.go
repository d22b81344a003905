// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package brief draws an explanation beside a list: what becomes of the devices as
// bars, and what would help, with the commands.
//
// It works nothing out. Only pkg/tui may import it.
package brief
