// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
)

func visit(cmd *cobra.Command, fn func(*cobra.Command)) {
	fn(cmd)
	for _, child := range cmd.Commands() {
		visit(child, fn)
	}
}

func TestEveryCommandHelps(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	visit(NewRoot(streams, Build{Version: "v1.2.3"}), func(cmd *cobra.Command) {
		name := cmd.CommandPath()
		if !strings.HasPrefix(name, "kubectl dra") {
			t.Errorf("%s: users type kubectl dra", name)
		}
		if cmd.Short == "" || cmd.Long == "" {
			t.Errorf("%s: no help", name)
		}
		if strings.HasPrefix(name, "kubectl dra completion") || strings.HasPrefix(name, "kubectl dra help") {
			return
		}
		if !strings.Contains(cmd.Example, "kubectl dra ") {
			t.Errorf("%s: no example", name)
		}
	})
}

// TestAllNamespacesEverywhere covers kubectl's -A at every verb that reads a cluster.
func TestAllNamespacesEverywhere(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	visit(NewRoot(streams, Build{}), func(cmd *cobra.Command) {
		if cmd.Flags().Lookup("snapshot") != nil && cmd.Flags().ShorthandLookup("A") == nil {
			t.Errorf("%s has no -A", cmd.CommandPath())
		}
	})
	for _, test := range []struct{ flags, want string }{
		{"", "10 pods wait"}, {"-A", "10 pods wait"}, {"-n media", "2 pods wait for devices in namespace media"}, {"-n media -A", "10 pods wait"},
	} {
		streams, _, out, errOut := genericiooptions.NewTestIOStreams()
		line := strings.Fields("plan --snapshot ../../examples/cluster " + test.flags)
		if code := Run(t.Context(), line, streams, Build{}); code != 1 || !strings.HasPrefix(out.String(), test.want) {
			t.Errorf("plan %s: exit code %d, %s%s, want %s", test.flags, code, out, errOut, test.want)
		}
	}
}

// TestValuesOfAnotherType covers flags with parsed values. The message names the flag, the value and
// what is expected, without a word of Go.
func TestValuesOfAnotherType(t *testing.T) {
	for line, want := range map[string]string{
		"devices --limit x":                        `read --limit: "x" is not a whole number`,
		"fit --replicas=1.5":                       `read --replicas: "1.5" is not a whole number`,
		"fit --count 99999999999999999999":         `read --count: "99999999999999999999" is out of range`,
		"devices --free=7":                         `read --free: "7" is neither true nor false`,
		"claims -w=7":                              `read --watch: "7" is neither true nor false`,
		"doctor --older-than month":                `read --older-than: "month" is not a duration such as 90s or 5m`,
		"node-probe plugins --timeout soon":        `read --timeout: "soon" is not a duration such as 90s or 5m`,
		"pools --request-timeout x":                `read --request-timeout: "x" is not a duration such as 90s or 5m`,
		"pools --request-timeout 5 --by nosuchkey": `read --by: "nosuchkey"`,
	} {
		streams, _, _, errOut := genericiooptions.NewTestIOStreams()
		if code := Run(t.Context(), strings.Fields(line), streams, Build{}); code != 3 || !strings.HasPrefix(errOut.String(), "error: "+want) || strings.Contains(errOut.String(), "strconv") {
			t.Errorf("%s: exit code %d, want 3 and %s:\n%s", line, code, want, errOut)
		}
	}
}

func TestHelpGroupsFlags(t *testing.T) {
	t.Setenv("COLUMNS", "100")
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	if code := Run(t.Context(), []string{"why", "--help"}, streams, Build{}); code != 0 {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
	last := 0
	for _, part := range []string{
		"Usage:\n  kubectl dra why", "Examples:\n", "\nExplain whether a claim", "\nFlags:\n", "--filename",
		"\nOutput:\n", "--color", "--output", "\nWhat to read:\n", "--feature-gates", "--snapshot PATH",
		"\nHow to reach the cluster:\n", "--context", "--namespace",
	} {
		at := strings.Index(out.String()[last:], part)
		if at < 0 {
			t.Fatalf("%q is missing or too early in:\n%s", part, out)
		}
		last += at
	}
	for line := range strings.Lines(out.String()) {
		if len(strings.TrimRight(line, "\n")) > 100 {
			t.Errorf("line is too long: %s", line)
		}
	}
}

// TestHelpFitsTerminal wants no line of any help to be wrapped by a terminal of
// the usual width. Those about completion scripts are cobra's.
func TestHelpFitsTerminal(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	visit(NewRoot(streams, Build{}), func(cmd *cobra.Command) {
		name := cmd.CommandPath()
		if strings.HasPrefix(name, "kubectl dra completion ") {
			return
		}
		lines := map[string]int{}
		for _, flag := range []string{"-h", "--help"} {
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			args := append(strings.Fields(strings.TrimPrefix(name, "kubectl dra")), flag)
			if code := Run(t.Context(), args, streams, Build{}); code != 0 {
				t.Errorf("%s: exit code %d", name, code)
			}
			if begin := cmd.Short + ".\n\nUsage:\n  " + name; !strings.HasPrefix(out.String(), begin) {
				t.Errorf("%s %s does not begin with %q:\n%s", name, flag, begin, out)
			}
			if n := strings.Count(out.String(), "\n  # "); flag == "-h" && n > 4 {
				t.Errorf("%s -h has %d examples", name, n)
			}
			for line := range strings.Lines(out.String()) {
				lines[flag]++
				if line = strings.TrimRight(line, "\n"); utf8.RuneCountInString(line) > 80 || strings.TrimRight(line, " ") != line {
					t.Errorf("%s: line is too long, or ends with a blank: %q", name, line)
				}
			}
		}
		if lines["-h"] >= lines["--help"] {
			t.Errorf("%s: -h has %d lines, --help %d", name, lines["-h"], lines["--help"])
		}
	})
}

// TestHelpOfUnknownCommand covers the verb help, which suggests as the command line does.
func TestHelpOfUnknownCommand(t *testing.T) {
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	code := Run(t.Context(), []string{"help", "pols"}, streams, Build{})
	if want := `error: unknown command "pols"; did you mean pools?`; code != 3 || out.Len() > 0 || !strings.HasPrefix(errOut.String(), want) {
		t.Errorf("exit code %d, %s%s", code, out, errOut)
	}
}

// TestHelpOfVerbWithCommands shows both ways to use it.
func TestHelpOfVerbWithCommands(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	Run(t.Context(), []string{"taints", "--help"}, streams, Build{})
	if want := "\nUsage:\n  kubectl dra taints [KEY | RULE ...] [flags]\n  kubectl dra taints COMMAND [flags]\n"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in:\n%s", want, out)
	}
}

func TestVersion(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	if code := Run(t.Context(), []string{"version", "--client"}, streams, Build{Version: "v1.2.3"}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	first, _, _ := strings.Cut(out.String(), "\n")
	if want := []string{"kubectl", "dra", "v1.2.3", "release"}; !slices.Equal(strings.Fields(first), want) {
		t.Errorf("printed %q", out)
	}
}

// TestRunLeavesGarbageToItsProcess runs a command as another program does, which may
// run many at once.
func TestRunLeavesGarbageToItsProcess(t *testing.T) {
	const percent = 130
	before := debug.SetGCPercent(percent)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	if code := Run(t.Context(), []string{"version", "--client"}, genericiooptions.NewTestIOStreamsDiscard(), Build{}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if got := debug.SetGCPercent(percent); got != percent {
		t.Errorf("garbage is collected at %d %%, and the process had set %d", got, percent)
	}
}

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
