// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"testing"
	"time"
)

func TestUseColor(t *testing.T) {
	tests := map[string]struct {
		choice, noColor string
		want            bool
	}{
		"auto, no terminal":     {choice: "auto"},
		"always":                {choice: "always", want: true},
		"always beats NO_COLOR": {choice: "always", noColor: "1", want: true},
		"never":                 {choice: "never"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NO_COLOR", test.noColor)
			got, err := UseColor(test.choice, &bytes.Buffer{})
			if err != nil || got != test.want {
				t.Errorf("got %v, %v; want %v", got, err, test.want)
			}
		})
	}
	if _, err := UseColor("sometimes", &bytes.Buffer{}); ExitCode(err) != ExitUsage {
		t.Errorf("got %v, want a usage error", err)
	}
}

func TestOutputWidth(t *testing.T) {
	for columns, want := range map[string]int{"132": 132, "": 0, "zero": 0, "-5": 0} {
		t.Setenv("COLUMNS", columns)
		if got := OutputWidth(&bytes.Buffer{}); got != want {
			t.Errorf("COLUMNS=%q: width %d, want %d", columns, got, want)
		}
	}
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := &Progress{w: &out, since: time.Now()}
	p.Report(1, 10, "pods")
	if out.Len() > 0 {
		t.Errorf("too soon: %q", out.String())
	}
	p.since = p.since.Add(-2 * silentFor)
	p.Report(500, 0, "pods")
	p.Report(1000, 5000, "evil\x1b[2J")
	p.Done()
	p.Report(5000, 5000, "pods")
	want := clearLine + "Read 500 objects (pods)" + clearLine + `Read 1000 of 5000 objects (evil\x1b[2J)` + clearLine
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}

	silent := NewProgress(&out, "Asking API server https://10.0.0.1")
	silent.since = silent.since.Add(-2 * silentFor)
	out.Reset()
	silent.Report(1, 1, "pods")
	silent.Done()
	if out.Len() > 0 {
		t.Errorf("no terminal, but printed %q", out.String())
	}
}
