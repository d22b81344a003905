// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

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

func TestGroupsAreHiddenOnlyIfThatHelps(t *testing.T) {
	for _, test := range []struct{ groups, hidden int }{{2, 0}, {10, 0}, {11, 0}, {12, 2}, {40, 30}} {
		e := &api.Explanation{Verdict: api.DoesNotFit, NodeCount: test.groups}
		for i := range test.groups {
			e.Nodes = append(e.Nodes, api.NodeGroup{
				Count: 1, Names: []string{fmt.Sprintf("node-%d", i)}, Verdict: api.DoesNotFit, Message: fmt.Sprintf("reason %d", i),
			})
		}
		out := draw(t, e, Options{Width: 80})
		if got := test.groups - strings.Count(out, "reason "); got != test.hidden {
			t.Errorf("of %d groups %d are hidden, want %d", test.groups, got, test.hidden)
		}
		if got := strings.Contains(out, "-o wide lists them"); got != (test.hidden > 0) {
			t.Errorf("%d groups: a line about hidden ones: %v", test.groups, got)
		}
		if out := draw(t, e, Options{Width: 80, Wide: true}); strings.Count(out, "reason ") != test.groups {
			t.Errorf("-o wide does not list all %d groups:\n%s", test.groups, out)
		}
	}
}
