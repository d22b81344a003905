// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// TestTreesFitHeight draws whole trees, as many as a terminal has room for, and counts the others.
func TestTreesFitHeight(t *testing.T) {
	trees := make([]api.Branch, 20)
	for i := range trees {
		trees[i] = api.Branch{Of: "Pod", Namespace: "ml", Name: fmt.Sprintf("pod-%02d", i), Branches: []api.Branch{
			{Of: "ResourceClaim", Namespace: "ml", Name: strings.Repeat("long", 25), Branches: []api.Branch{{Of: "Request", Name: "gpu"}}},
		}}
	}
	draw := func(total int, opts render.Options) string {
		var out strings.Builder
		if err := render.Trees(&out, trees, total, opts); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, test := range []struct {
		opts  render.Options
		total int
		trees int
		more  string
	}{
		// The line of the claim takes two lines of a terminal.
		{render.Options{Width: 80, Height: 24}, 20, 5, "… 15 more (--limit 0 shows all)\n"},
		{render.Options{Width: 80, Height: 3}, 20, 1, "… 19 more (--limit 0 shows all)\n"},
		{render.Options{Width: 80, Height: 200}, 20, 20, ""},
		{render.Options{}, 20, 20, ""},
		{render.Options{}, 25, 20, "… 5 more (--limit 0 shows all)\n"},
	} {
		out := draw(test.total, test.opts)
		if got := strings.Count(out, "Pod ml/"); got != test.trees || strings.Count(out, "Request gpu") != test.trees || !strings.HasSuffix(out, test.more) || strings.Contains(out, "more (") != (test.more != "") {
			t.Errorf("%+v: %d trees, want %d and %q\n%s", test.opts, got, test.trees, test.more, out)
		}
	}
}
