// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-dra is a kubectl plugin that explains Dynamic Resource
// Allocation. Called as "kubectl dra".
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
)

// version is set by the linker for a release.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the next one kills, as if nobody had asked for it.
	context.AfterFunc(ctx, stop)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(commands.Run(ctx, os.Args[1:], streams, version))
}
