// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

func TestAbsurdlyLongMessages(t *testing.T) {
	absurd := strings.Repeat("why ", 10000)
	e := mixed()
	e.Summary, e.Nodes[1].Message, e.Claims[0].Requests[0].Rejected[1].Message = absurd, absurd, absurd
	e.SchedulerMessage = &api.SchedulerMessage{Source: "event", Text: "x " + absurd}
	for _, width := range []int{0, 40, 80} {
		out := draw(t, e, render.Options{Width: width})
		if n := len(out); n > 250_000 {
			t.Errorf("width %d: %d bytes of output", width, n)
		}
		wantNot(t, out, strings.Repeat("why ", 9000))
		if n := strings.Count(strings.Join(strings.Fields(out), " "), "more characters"); n != 4 {
			t.Errorf("width %d: %d notes about what was left out, want 4:\n%s", width, n, out)
		}
	}
}

func TestNoWidthIsOneFactPerLine(t *testing.T) {
	e := tooMany()
	e.Claims[0].Requests[0].Rejected[1].Message = "to claims " + strings.Repeat("serving/llm ", 30)
	out := draw(t, e, render.Options{})
	for _, want := range []string{
		e.SchedulerMessage.Text,
		strings.TrimSpace(e.Claims[0].Requests[0].Rejected[1].Message) + "  17 nodes",
		e.Nodes[0].Message + "  node-23, node-24, node-25, node-26, node-27, node-28, node-29, node-30, node-31, node-32, node-33, node-34\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no unbroken %q in:\n%s", want, out)
		}
	}
	want := draw(t, e, render.Options{Width: 80})
	if got, want := strings.Join(strings.Fields(out), ""), strings.Join(strings.Fields(want), ""); len(got) < len(want) {
		t.Errorf("there is less to read than on a terminal:\n%s", out)
	}
}

func TestWideTerminalsKeepColumnsTogether(t *testing.T) {
	for name, e := range map[string]*api.Explanation{"too-many": tooMany(), "mixed": mixed(), "fits": fits()} {
		if draw(t, e, render.Options{Width: widest}) != draw(t, e, render.Options{Width: 400}) {
			t.Errorf("%s looks different on a terminal of 400 columns", name)
		}
	}
}

func TestNarrowTerminals(t *testing.T) {
	for name, e := range map[string]*api.Explanation{"too-many": tooMany(), "mixed": mixed(), "fits": fits(), "allocated": allocated()} {
		for _, width := range []int{1, 20, 40, 59} {
			out := draw(t, e, render.Options{Width: width})
			for _, word := range longWords(e) {
				if !strings.Contains(out, word) {
					t.Errorf("%s at width %d: %q is missing or cut:\n%s", name, width, word, out)
				}
			}
			for line := range strings.Lines(out) {
				line = strings.TrimSuffix(line, "\n")
				if width >= 40 && ansi.StringWidth(line) > width && strings.Count(strings.TrimLeft(line, " "), " ") > 4 {
					t.Errorf("%s at width %d: a line is too long although it could be broken: %q", name, width, line)
				}
			}
		}
	}
}

// longWords returns words that have to stay readable.
func longWords(e *api.Explanation) []string {
	words := strings.Fields(e.Summary)
	for _, claim := range e.Claims {
		for i := range claim.Requests {
			words = append(words, claim.Requests[i].DeviceClass)
			for _, rejection := range claim.Requests[i].Rejected {
				if rejection.Code != api.ClassSelectorFalse {
					words = append(words, strings.Fields(rejection.Message)...)
				}
			}
		}
	}
	return words
}
