// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/recording"
)

// Exit codes, which scripts rely on.
const (
	ExitFits         = 0 // Allocated or Fits, or nothing went wrong
	ExitDoesNotFit   = 1 // DoesNotFit, Blocked or Error
	ExitUndetermined = 2 // Undetermined
	ExitUsage        = 3 // wrong flags or arguments, unreadable input
	ExitFailure      = 4 // the cluster, a node or I/O failed, or the requested objects could not be read
)

// UsageError is a mistake in the command line. Its advice is printed on a line of its own.
type UsageError struct {
	err error
	out string
	// list is the command that lists what could have been named, without "kubectl dra"; empty
	// for none.
	list string
}

// Usagef returns a [UsageError] with advice, which may be empty.
func Usagef(out, format string, args ...any) error {
	return &UsageError{err: fmt.Errorf(format, args...), out: out}
}

// Error describes the wrong usage.
func (e *UsageError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.err }

// HelpHint returns the hint to the help of a command.
func HelpHint(cmd *cobra.Command) string {
	return fmt.Sprintf("See '%s --help'.", cmd.CommandPath())
}

// OutcomeError carries an exit code that is a result and not a failure; nothing is printed
// about it.
type OutcomeError struct{ Code int }

// Error returns a text that users never see.
func (e *OutcomeError) Error() string { return fmt.Sprintf("outcome %d", e.Code) }

// GapError means that the requested objects, or some of them, could not be read: "not
// permitted" is never "none". The exit code is ExitFailure.
type GapError struct {
	// Doing is the failed action, as in "list devices".
	Doing string
	// Gaps are the gaps in the requested objects; there is at least one.
	Gaps []snapshot.Gap
	// Namespace is the only requested namespace; empty for all, or if the missing objects
	// have none.
	Namespace string
	// Live is true if a cluster was read and not a file.
	Live bool
	// Partial is true if something was printed all the same.
	Partial bool
}

// Error names the objects that could not be read, and says that there may be more than was printed.
func (e *GapError) Error() string {
	reasons := make([]string, 0, len(e.Gaps))
	for _, gap := range e.Gaps {
		reasons = append(reasons, gap.Reason)
	}
	said := e.Doing + ": "
	if e.Partial {
		said += "the output is incomplete: "
	}
	return said + strings.Join(reasons, "; ")
}

// out returns the advice: the rights to ask for, and alternatives.
func (e *GapError) out() string {
	resources := make([]string, 0, len(e.Gaps))
	for _, gap := range e.Gaps {
		if !gap.LeftOut {
			resources = append(resources, gap.Resource)
		}
	}
	slices.Sort(resources)
	named := english.JoinAnd(slices.Compact(resources))
	switch {
	case len(resources) == 0:
		return "Correct or delete what was left out."
	case len(resources) == 1 && resources[0] == snapshot.ResourcePoolStatuses:
		return "docs/rbac.md has the ClusterRole for --ask-server, which takes the feature gate DRAResourcePoolStatus. Without --ask-server, the claims that you may list are counted."
	case !e.Live:
		return fmt.Sprintf("Save a snapshot that has %s, as a user who can list them: kubectl dra snapshot -o cluster.yaml.gz", named)
	case e.Namespace != "":
		return fmt.Sprintf("Ask for a Role that may list %s in namespace %s, or ask a user who can list them to save a snapshot: kubectl dra snapshot -o cluster.yaml.gz", named, e.Namespace)
	default:
		return fmt.Sprintf("Ask for a ClusterRole that may list %s, or ask a user who can list them to save a snapshot: kubectl dra snapshot -o cluster.yaml.gz", named)
	}
}

// UnendingError means that the answer is unknown for some devices because an expression
// does not end. The exit code is ExitFailure.
type UnendingError struct {
	// Doing is the failed action, as in "list devices", and reason names the expression.
	Doing, Reason string
}

// Error says that the output is incomplete, and why.
func (e *UnendingError) Error() string {
	return e.Doing + ": the output is incomplete: " + e.Reason
}

// ExitCode maps an error to the exit code.
func ExitCode(err error) int {
	var (
		outcome *OutcomeError
		usage   *UsageError
		input   *files.InputError
		target  *explain.TargetError
		unknown *collect.UnknownResourceError
		bare    *collect.NoTemplateError
		release *snapshot.UnknownReleaseError
		outside *recording.RangeError
		other   *recording.OtherClusterError
	)
	switch {
	case err == nil:
		return ExitFits
	case errors.As(err, &outcome):
		return outcome.Code
	case errors.As(err, &usage), errors.As(err, &input), errors.As(err, &target),
		errors.As(err, &unknown), errors.As(err, &bare), errors.As(err, &outside), errors.As(err, &other):
		return ExitUsage
	case errors.As(err, &release):
		return ExitUndetermined
	default:
		return ExitFailure
	}
}

// VerdictCode returns the exit code of one verdict.
func VerdictCode(verdict api.Verdict) int {
	switch verdict {
	case api.Allocated, api.Fits:
		return ExitFits
	case api.DoesNotFit, api.Blocked, api.Error:
		return ExitDoesNotFit
	case api.Undetermined:
		return ExitUndetermined
	default:
		return ExitUndetermined
	}
}

// Worse returns the exit code for two targets. A failure is worse than a mistake in the
// input, and that is worse than any answer; "does not fit" is certain and worse than an
// unknown answer.
func Worse(a, b int) int {
	for _, code := range []int{ExitFailure, ExitUsage, ExitDoesNotFit, ExitUndetermined} {
		if a == code || b == code {
			return code
		}
	}
	return ExitFits
}

// PrintError prints an error and, on a line of its own, the advice.
func PrintError(w io.Writer, err error) {
	var outcome *OutcomeError
	if err == nil || errors.As(err, &outcome) {
		return
	}
	message := err.Error()
	if errors.Is(err, context.Canceled) {
		message = "interrupted"
	}
	lines := strings.Split(strings.TrimRight(message, "\n"), "\n")
	if out := suggestion(err); out != "" {
		lines = append(lines, out)
	}
	for i, line := range lines {
		lines[i] = render.Escape(line)
	}
	// Nothing can be done if the error stream is broken, too.
	_, _ = fmt.Fprintf(w, "error: %s\n", strings.Join(lines, "\n"))
}

// suggestion returns advice about an error, empty if there is none or the error itself has
// it.
func suggestion(err error) string {
	var (
		usage   *UsageError
		gapErr  *GapError
		endless *UnendingError
		server  *collect.ServerError
	)
	switch {
	case errors.As(err, &usage) && usage.list != "":
		return "List what there is: kubectl dra " + usage.list
	case errors.As(err, &usage):
		return usage.out
	case errors.As(err, &gapErr):
		return gapErr.out()
	case errors.As(err, &endless):
		return "Correct the expression. A claim that needs it cannot be decided either."
	case errors.As(err, &server):
		return "Check --kubeconfig and --context, or read a saved cluster with --snapshot."
	default:
		return ""
	}
}

// NotAllowed returns the error for a value of a flag that is none of a few.
func NotAllowed(flag, value string, allowed []string) error {
	return Usagef("Allowed are "+english.JoinAnd(allowed)+".", "read --%s: %q is not a valid value%s", flag, value, english.DidYouMean(value, allowed))
}

// GapsIn returns the gaps in some resources. For namespaced resources the requested
// namespace is enough; an empty namespace stands for all that may be read, unless
// everywhere.
func GapsIn(snap *snapshot.Snapshot, resources []string, namespace string, everywhere bool) []snapshot.Gap {
	var gaps []snapshot.Gap
	for _, gap := range snap.Gaps {
		enough := gap.Namespace != "" && !everywhere && (namespace == "" || namespace == gap.Namespace)
		if slices.Contains(resources, gap.Resource) && !enough {
			gaps = append(gaps, gap)
		}
	}
	return gaps
}

// GapNotes returns notes on the gaps that neither the error nor [snapshot.Snapshot.Notes]
// reports.
func GapNotes(snap *snapshot.Snapshot, reported *GapError) []string {
	notes := snap.Notes()
	for _, gap := range snap.Gaps {
		if reported == nil || !slices.Contains(reported.Gaps, gap) {
			notes = append(notes, gap.Reason)
		}
	}
	return notes
}
