// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// TestWrongUsage fails before anything starts, and names the flag.
func TestWrongUsage(t *testing.T) {
	for args, want := range map[string]string{
		"--metrics-bind-address=x":        `read --metrics-bind-address: expected [HOST]:PORT, or 0 for none, found "x"`,
		"--health-probe-bind-address=:-1": `read --health-probe-bind-address: expected [HOST]:PORT`,
		"--metrics-cert-dir=/nope":        "read --metrics-cert-dir: stat /nope/tls.crt: ",
		"--interval=1ms":                  "read --interval: expected a duration from 1s on, found 1ms",
		"--pod-metrics=-1":                "read --pod-metrics: expected a number from 0 on, found -1",
		"--events=maybe":                  `invalid argument "maybe" for "--events" flag`,
		"all":                             `unknown command "all"`,
	} {
		cmd := newCommand(io.Discard)
		cmd.SetArgs([]string{args})
		err := cmd.ExecuteContext(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", args, err, want)
		}
		if failed := (*runError)(nil); errors.As(err, &failed) {
			t.Errorf("%s: it ran", args)
		}
	}
}

// TestHelpWidth checks that the help fits a terminal of 80 columns.
func TestHelpWidth(t *testing.T) {
	var out strings.Builder
	cmd := newCommand(io.Discard)
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--help"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if len(strings.TrimSuffix(line, "\n")) > helpWidth {
			t.Errorf("wider than 80 columns: %s", line)
		}
	}
}
