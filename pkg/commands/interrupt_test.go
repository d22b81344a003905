// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
)

// TestRunUntil ends a command that ignores its context, and waits for a command that does
// not.
func TestRunUntil(t *testing.T) {
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := runUntil(ctx, time.Millisecond, func() error { <-forever; return nil }); !errors.Is(err, context.Canceled) || cli.ExitCode(err) != cli.ExitFailure {
		t.Errorf("stuck: %v", err)
	}
	undone := errors.New("undone")
	if err := runUntil(ctx, time.Hour, func() error { <-ctx.Done(); return undone }); !errors.Is(err, undone) {
		t.Errorf("attentive: %v", err)
	}
	if err := runUntil(t.Context(), 0, func() error { return undone }); !errors.Is(err, undone) {
		t.Errorf("not interrupted: %v", err)
	}
}

func TestGrace(t *testing.T) {
	for _, test := range []struct {
		args []string
		want time.Duration
	}{
		{nil, readingGrace},
		{[]string{"why", "pod/x"}, readingGrace},
		{[]string{"-n", "x", "top", "--once"}, readingGrace},
		{[]string{"devices", "--class", "node-probe"}, readingGrace},
		{[]string{"nothing"}, readingGrace},
		{[]string{"pools", "--ask-server"}, undoingGrace},
		{[]string{"--context", "x", "node-probe", "prepare", "x"}, undoingGrace},
		{[]string{"taints", "add", "x"}, undoingGrace},
		{[]string{"snapshot", "-o", "x"}, undoingGrace},
	} {
		root := NewRoot(genericiooptions.IOStreams{In: nil, Out: io.Discard, ErrOut: io.Discard}, Build{})
		if got := graceOf(root, test.args); got != test.want {
			t.Errorf("%q: got %s, want %s", test.args, got, test.want)
		}
	}
}
