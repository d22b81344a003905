// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"
)

func TestBound(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"short":           {"short", "short"},
		"a little longer": {strings.Repeat("x", longest+200), strings.Repeat("x", longest+200)},
		"absurd":          {strings.Repeat("x", longest+4000), strings.Repeat("x", longest) + " … and 4,000 more characters"},
		"whole words":     {strings.Repeat("x", longest-10) + " " + strings.Repeat("y", 4010), strings.Repeat("x", longest-10) + " … and 4,011 more characters"},
		"characters":      {strings.Repeat("ü", longest+200), strings.Repeat("ü", longest+200)},
		"a million":       {strings.Repeat("x", longest+1_000_000), strings.Repeat("x", longest) + " … and 1,000,000 more characters"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := bound(test.in); got != test.want {
				t.Errorf("got %d characters: %q", len(got), got)
			}
		})
	}
}

func TestSomeNames(t *testing.T) {
	names := []string{"node-1", "node-2", "node-3", "node-4"}
	tests := map[string]struct {
		total, room int
		wide        bool
		want        string
	}{
		"all fit":            {4, 30, false, "node-1, node-2, node-3, node-4"},
		"as many as fit":     {4, 28, false, "node-1, node-2 and 2 more"},
		"at least one":       {4, 3, false, "node-1 and 3 more"},
		"more than given":    {9, 60, false, "node-1, node-2, node-3, node-4 and 5 more"},
		"wide":               {4, 3, true, "node-1, node-2, node-3, node-4"},
		"total is too low":   {0, 30, false, "node-1, node-2, node-3, node-4"},
		"wide, more missing": {9, 3, true, "node-1, node-2, node-3, node-4 and 5 more"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := NewPage(Options{Width: 80, Wide: test.wide})
			if got := p.Some(names, test.total, test.room); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
