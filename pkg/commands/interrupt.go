// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// Grace periods of a command that was interrupted.
const (
	// readingGrace is for commands that only have to stop.
	readingGrace = 2 * time.Second
	// undoingGrace is for commands that may have to undo changes in a cluster or on a node,
	// or to remove a file: longer than any limit of theirs.
	undoingGrace = time.Minute
)

// graceOf returns the grace period of the command in a command line.
func graceOf(root *cobra.Command, args []string) time.Duration {
	cmd, _, err := root.Find(args)
	if err != nil {
		return readingGrace
	}
	for cmd.HasParent() && cmd.Parent() != root {
		cmd = cmd.Parent()
	}
	switch cmd.Name() {
	case "node-probe", "pools", "snapshot", "taints", "test":
		return undoingGrace
	default:
		return readingGrace
	}
}

// runUntil runs a command until it ends or, if it ignores the context, until some time
// after the context is done.
func runUntil(ctx context.Context, grace time.Duration, command func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- command() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		return ctx.Err()
	}
}
