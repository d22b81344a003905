// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

func TestGroupsAreHiddenOnlyIfThatHelps(t *testing.T) {
	for _, test := range []struct{ groups, hidden int }{{2, 0}, {10, 0}, {11, 0}, {12, 2}, {40, 30}} {
		e := &api.Explanation{Verdict: api.DoesNotFit, NodeCount: test.groups}
		for i := range test.groups {
			e.Nodes = append(e.Nodes, api.NodeGroup{
				Count: 1, Names: []string{fmt.Sprintf("node-%d", i)}, Verdict: api.DoesNotFit, Message: fmt.Sprintf("reason %d", i),
			})
		}
		out := draw(t, e, render.Options{Width: 80})
		if got := test.groups - strings.Count(out, "reason "); got != test.hidden {
			t.Errorf("of %d groups %d are hidden, want %d", test.groups, got, test.hidden)
		}
		if got := strings.Contains(out, "-o wide lists them"); got != (test.hidden > 0) {
			t.Errorf("%d groups: a line about hidden ones: %v", test.groups, got)
		}
		if out := draw(t, e, render.Options{Width: 80, Wide: true}); strings.Count(out, "reason ") != test.groups {
			t.Errorf("-o wide does not list all %d groups:\n%s", test.groups, out)
		}
	}
}
