// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"bytes"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

func drawnBriefly(t *testing.T, e *api.Explanation, opts render.Options) string {
	t.Helper()
	before := e.DeepCopy()
	var out bytes.Buffer
	if err := Brief(&out, e, opts); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, e); diff != "" {
		t.Errorf("the explanation was changed (-before +after):\n%s", diff)
	}
	return out.String()
}

func TestBrief(t *testing.T) {
	for name, e := range map[string]*api.Explanation{
		"no-class": noClass(), "mixed": mixed(), "too-many": tooMany(), "fits": fits(), "allocated": allocated(),
		"many-groups": manyGroups(), "stuck": stuck(), "hostile": hostile(), "other-scheduler": ofOtherScheduler(),
	} {
		t.Run(name, func(t *testing.T) {
			text := drawnBriefly(t, e, render.Options{Width: 80})
			golden.Assert(t, text, name+"-brief.golden")
			if n := strings.Count(text, "\n"); n > briefLines {
				t.Errorf("%d lines", n)
			}
			if clean := render.Escape(strings.ReplaceAll(text, "\n", "")); clean != strings.ReplaceAll(text, "\n", "") {
				t.Errorf("the output has characters that need escaping:\n%q", text)
			}
			colored := drawnBriefly(t, e, render.Options{Width: 80, Color: true})
			if got := ansi.Strip(colored); got != text {
				t.Errorf("colors change the text (-without +with):\n%s", cmp.Diff(text, got))
			}
			if got, want := drawnBriefly(t, e, render.Options{Width: 80, Wide: true}), draw(t, e, render.Options{Width: 80, Wide: true}); got != want {
				t.Errorf("the wide form is another one (-want +got):\n%s", cmp.Diff(want, got))
			}
		})
	}
}

// TestBriefCounts leaves out what there is no room for, and counts it.
func TestBriefCounts(t *testing.T) {
	e := tooMany()
	for range 12 {
		e.Hints = append(e.Hints, api.Hint{Text: strings.Repeat("a hint of many words ", 8)})
		e.Assumptions = append(e.Assumptions, "an assumption")
	}
	text := drawnBriefly(t, e, render.Options{Width: 80})
	if n := strings.Count(text, "\n"); n > briefLines {
		t.Errorf("%d lines:\n%s", n, text)
	}
	for _, want := range []string{"more hints", "12 more assumptions", "\n     336  devices", "available"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

// TestBriefFixes checks that remedies that somebody can make come before waiting, and that
// commands and all remedies are there on request.
func TestBriefFixes(t *testing.T) {
	e := &api.Explanation{Target: api.Ref("Pod", "ml", "train-0"), Verdict: api.DoesNotFit, Summary: "Too few.", NodeCount: 2, MoreRemedies: 2}
	for _, change := range []string{"wait until a ends", "wait until b ends", "wait until c ends"} {
		e.Remedies = append(e.Remedies, api.Remedy{Actor: api.ActorNobody, Change: change, Node: "n1"})
	}
	e.Remedies = append(e.Remedies, api.Remedy{Actor: api.ActorUser, Change: "request less", Node: "n2", Commands: []string{"kubectl one", "kubectl two"}})
	text := drawnBriefly(t, e, render.Options{Width: 80})
	want := `Fix    1         wait until a ends  n1
       2         wait until b ends  n1
       3  you    request less       n2
          --commands prints the commands; 3 more: --all-remedies
`
	if !strings.Contains(text, want) {
		t.Errorf("want:\n%s\ngot:\n%s", want, text)
	}
	text = drawnBriefly(t, e, render.Options{Width: 80, Commands: true, AllRemedies: true})
	want = `       3         wait until c ends  n1
       4  you    request less       n2
                 kubectl one
                 kubectl two
          2 more: --all-remedies
`
	if !strings.Contains(text, want) {
		t.Errorf("want:\n%s\ngot:\n%s", want, text)
	}
}
