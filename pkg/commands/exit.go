// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// The exit codes, which scripts rely on.
const (
	exitFits         = 0 // Allocated or Fits, or nothing went wrong
	exitDoesNotFit   = 1 // DoesNotFit, Blocked or Error
	exitUndetermined = 2 // Undetermined
	exitUsage        = 3 // wrong flags or arguments, unreadable input
	exitFailure      = 4 // the cluster, a node or I/O failed, or what was asked for could not be read
)

// usageError is a mistake in the command line. Its way out is a line of its own.
type usageError struct {
	err error
	out string
}

func usagef(out, format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...), out: out}
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// helpHint leads to the help of a command.
func helpHint(cmd *cobra.Command) string {
	return fmt.Sprintf("See '%s --help'.", cmd.CommandPath())
}

// outcomeError carries an exit code that is a result and not a failure; there
// is nothing to print about it.
type outcomeError struct{ code int }

func (e *outcomeError) Error() string { return fmt.Sprintf("outcome %d", e.code) }

// exitCode is the one place that maps an error to the exit code.
func exitCode(err error) int {
	var (
		outcome *outcomeError
		usage   *usageError
		input   *snapshot.InputError
		target  *explain.TargetError
		unknown *snapshot.UnknownResourceError
		bare    *snapshot.NoTemplateError
	)
	switch {
	case err == nil:
		return exitFits
	case errors.As(err, &outcome):
		return outcome.code
	case errors.As(err, &usage), errors.As(err, &input), errors.As(err, &target),
		errors.As(err, &unknown), errors.As(err, &bare):
		return exitUsage
	default:
		return exitFailure
	}
}

// verdictCode is the exit code of one verdict.
func verdictCode(verdict api.Verdict) int {
	switch verdict {
	case api.Allocated, api.Fits:
		return exitFits
	case api.DoesNotFit, api.Blocked, api.Error:
		return exitDoesNotFit
	case api.Undetermined:
		return exitUndetermined
	default:
		return exitUndetermined
	}
}

// worse is the exit code for two targets. A failure hides more than a mistake
// in the input, and that more than any answer; that something does not fit is
// certain and beats what is not.
func worse(a, b int) int {
	for _, code := range []int{exitFailure, exitUsage, exitDoesNotFit, exitUndetermined} {
		if a == code || b == code {
			return code
		}
	}
	return exitFits
}

// printError tells what failed and, on a line of its own, the way out.
func printError(w io.Writer, err error) {
	var outcome *outcomeError
	if err == nil || errors.As(err, &outcome) {
		return
	}
	message := err.Error()
	if errors.Is(err, context.Canceled) {
		message = "interrupted"
	}
	lines := strings.Split(strings.TrimRight(message, "\n"), "\n")
	if out := wayOut(err); out != "" {
		lines = append(lines, out)
	}
	for i, line := range lines {
		lines[i] = render.Escape(line)
	}
	// Nothing is left to do when the error stream is broken too.
	_, _ = fmt.Fprintf(w, "error: %s\n", strings.Join(lines, "\n"))
}

// wayOut is what a user can do about an error, if the error itself does not
// say. It is empty if nobody knows.
func wayOut(err error) string {
	var (
		usage   *usageError
		unread  *unreadError
		endless *unendingError
		server  *snapshot.ServerError
	)
	switch {
	case errors.As(err, &usage):
		return usage.out
	case errors.As(err, &unread):
		return unread.out()
	case errors.As(err, &endless):
		return "Correct the expression. A claim that needs it cannot be decided either."
	case errors.As(err, &server):
		return "Check --kubeconfig and --context, or read a saved cluster with --snapshot."
	default:
		return ""
	}
}
