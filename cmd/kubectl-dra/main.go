// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-dra is a kubectl plugin that explains Dynamic Resource
// Allocation. Called as "kubectl dra".
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
)

// The linker sets them for a release.
var version, commit, date string //nolint:gochecknoglobals // There is no other way.

func main() {
	// The client library logs errors that it also returns, and that are printed.
	klog.SetLogger(klog.Logger{})
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	// Somebody who runs the program with nohup wants it to go on.
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	// After the first signal the next one kills, as if nobody had asked for it.
	context.AfterFunc(ctx, stop)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	args := os.Args[1:]
	// kubectl completes a plugin by another program on the path, which can be a
	// link to this one.
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl_complete-dra") {
		args = append([]string{"__complete"}, args...)
	}
	os.Exit(commands.Main(ctx, args, streams, commands.Build{Version: version, Commit: commit, Date: date}))
}
