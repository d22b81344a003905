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

// TestTreeRuns draws devices that differ in nothing but their names as one branch, and others apart.
func TestTreeRuns(t *testing.T) {
	device := func(name, state, claim string) api.Branch {
		b := api.Branch{Of: api.KindDevice, Name: name, Notes: []string{state}}
		if claim != "" {
			b.Branches = []api.Branch{{Of: "ResourceClaim", Namespace: "ml", Name: claim}}
		}
		return b
	}
	root := api.Branch{Of: "Node", Name: "n", Branches: []api.Branch{
		{Of: "Pool", Name: "a", Branches: []api.Branch{
			device("gpu-0", "Free", ""), device("gpu-1", "Allocated", "x"), device("gpu-2", "Free", ""), device("gpu-3", "Free", ""), device("gpu-4", "Free", ""), device("gpu-5", "Allocated", "y"),
		}},
		device("d/p/gpu-9", "Free", ""), device("d/p/gpu-10", "Free", ""), device("d/p/gpu-11", "Free", ""), device("d/q/gpu-12", "Free", ""),
	}}
	var out strings.Builder
	if err := render.Trees(&out, []api.Branch{root}, 1, render.Options{}); err != nil {
		t.Fatal(err)
	}
	want := `Node n
├── Pool a
│   ├── Device gpu-0, gpu-2 … gpu-4  (Free)
│   ├── Device gpu-1  (Allocated)
│   │   └── ResourceClaim ml/x
│   └── Device gpu-5  (Allocated)
│       └── ResourceClaim ml/y
├── Device d/p/gpu-9 … gpu-11  (Free)
└── Device d/q/gpu-12  (Free)
`
	if got := out.String(); got != want {
		t.Errorf("it is\n%s", got)
	}
	if len(root.Branches[0].Branches) != 6 || root.Branches[1].Name != "d/p/gpu-9" {
		t.Error("drawing changes the tree")
	}
}
