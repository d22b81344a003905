// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"strings"
	"testing"
	"unicode"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/nvidia"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// TestNothingHostileInComparisons compares a preview with what a driver published that
// wants to look like something else: each line that begins like one of a diff is one.
func TestNothingHostileInComparisons(t *testing.T) {
	for _, text := range []string{
		"a\n--- a/x\n+++ b/x\n@@ -1 +1 @@", "--- a/x", "+++ preview", "@@ -1 +1 @@", "a --- published by x", strings.Repeat("long ", 30) + "--- a/x +++ b/x @@ -1 +1 @@",
		"\x1b[2J", "\u009b31m", "\u202e", "a\rb", "a\u2028+device b", "\ufffe", "<script>", "`a`",
	} {
		c := &nvidia.Comparison{Driver: "gpu.nvidia.com", Pool: "node-1", Published: 3, Previewed: 2, Differences: []nvidia.Difference{
			{Change: nvidia.OnlyPublished, Device: "gpu-0"},
			{Change: nvidia.OnlyPreviewed, CounterSet: "set"},
			{Change: nvidia.Changed, Device: "gpu-1", Fields: []nvidia.FieldDifference{{Path: "attributes." + text, Published: text, Previewed: "b"}, {Path: "b", Published: "a", Previewed: text}}},
		}}
		for _, width := range []int{0, 40, 80} {
			var out strings.Builder
			if err := writeComparison(&out, c, render.Options{Width: width}); err != nil {
				t.Fatal(err)
			}
			if i := strings.IndexFunc(out.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("%q is printed as %q", text, out.String())
			}
			var marked []string
			for line := range strings.Lines(out.String()) {
				if strings.IndexByte("-+@", line[0]) >= 0 {
					marked = append(marked, line[:2])
				}
			}
			if got := strings.Join(marked, "|"); got != "--|++|-d|+c|- |+ |- |+ " {
				t.Errorf("%q, width %d: lines begin with %s:\n%s", text, width, got, out.String())
			}
		}
	}
}
