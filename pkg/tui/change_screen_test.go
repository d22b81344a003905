// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"gotest.tools/v3/golden"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// recorder stands for the API server: it notes the requests, and fails on demand.
type recorder struct {
	asked, made []string
	planErr     error
	err         error
	// plan is the plan of every change; nil for a made-up one.
	plan *Plan
}

func (*recorder) CheckTaint(text string) error {
	if !strings.Contains(text, ":") {
		return fmt.Errorf("read taint %q: it has no effect", text)
	}
	return nil
}

func (r *recorder) Plan(_ context.Context, _ *snapshot.Snapshot, change Change) (*Plan, error) {
	r.asked = append(r.asked, change.String())
	if r.planErr != nil {
		return nil, r.planErr
	}
	if r.plan != nil {
		return r.plan, nil
	}
	return &Plan{
		Command: "kubectl do this-to \"" + change.String() + "\" --and-a-long-flag=with-a-value --and-another-long-flag=with-a-value",
		Effects: "2 pods would be evicted\n  serving/llm-0 would be evicted at once\n    bare pod  not created again; one like it fits on gpu-03",
		Warning: "This evicts 2 pods.",
		Do: func(context.Context) (string, error) {
			r.made = append(r.made, change.String())
			return change.String() + ": done", r.err
		},
	}, nil
}

func guarded(t *testing.T) (*session, *recorder) {
	t.Helper()
	r := &recorder{}
	return newSession(t, Options{Source: newMoving(example(t)), Changer: r}, 100, 30), r
}

func (r *recorder) has(t *testing.T, asked, made string) {
	t.Helper()
	if got := strings.Join(r.asked, "; "); got != asked {
		t.Errorf("asked for %q, want %q", got, asked)
	}
	if got := strings.Join(r.made, "; "); got != made {
		t.Errorf("made %q, want %q", got, made)
	}
}

// TestNoChanges says why the key does nothing, and asks nobody.
func TestNoChanges(t *testing.T) {
	s := browse(t, 100, 30)
	s.keys("5", "x")
	s.shows("a file cannot be changed")
	s.lacks("x change")
	s = newSession(t, Options{Source: newMoving(example(t))}, 100, 30)
	s.keys("5", "x")
	s.shows("nothing is changed without --allow-changes")
	s.lacks("x change")
}

// TestConfirmed shows what a change does, makes it once somebody says yes, and never
// otherwise.
func TestConfirmed(t *testing.T) {
	const uncordon = "uncordon node gpu-08"
	s, r := guarded(t)
	s.keys("2", "/", `"gpu-08`, "enter", "x")
	s.shows("The command that does the same", `kubectl do this-to "uncordon node gpu-08" --and-a-long-flag=with-a-value \`, "This evicts 2 pods.", "Uncordon node gpu-08? [y/N]", "y do it")
	for _, no := range []string{"n", "esc", "enter"} {
		r.asked = nil
		s.keys(no)
		s.shows("› gpu-08 ", "Ready, cordoned")
		s.lacks("[y/N]")
		s.keys("x")
		r.has(t, uncordon, "")
	}
	s.keys("y")
	r.has(t, uncordon, uncordon)
	s.shows("uncordon node gpu-08: done", "gpu-08  Ready, cordoned")
	s.lacks("[y/N]")
	s.keys("down")
	s.lacks(": done")
	s.keys("y")
	r.has(t, uncordon, uncordon)
	s.shows("YAML of Node gpu-08")
}

// TestTooSoon makes nothing before it is known what that does, and does not say so any more
// once it is.
func TestTooSoon(t *testing.T) {
	const unknown = "what it does is not known yet"
	s, r := guarded(t)
	s.keys("2", "/", `"gpu-08`, "enter")
	_, plan := s.model.Update(tea.KeyPressMsg{Code: 'x', Text: "x"})
	s.keys("y")
	s.shows(unknown)
	s.run(plan)
	s.shows("Uncordon node gpu-08? [y/N]")
	s.lacks(unknown)
	r.has(t, "uncordon node gpu-08", "")
}

// TestRefused shows the whole error of the server, with the object, and lets somebody try
// again or leave.
func TestRefused(t *testing.T) {
	s, r := guarded(t)
	r.err = errors.New(`delete ResourceClaim media/upscale-0-gpu-fz8x5: resourceclaims.resource.k8s.io "upscale-0-gpu-fz8x5" is forbidden: User "alice" cannot delete resource "resourceclaims" in API group "resource.k8s.io" in the namespace "media"`)
	s.keys("5", "/", `"upscale`, "enter", "x", "y")
	s.shows("delete ResourceClaim media/upscale-0-gpu-fz8x5", `User "alice"`, `the namespace "media"`, "It failed; again? [y/N]")
	r.err = nil
	s.keys("y")
	s.shows("delete claim media/upscale-0-gpu-fz8x5: done")
	if len(r.made) != 2 {
		t.Errorf("made %q", r.made)
	}
	r.planErr = errors.New("delete ResourceClaim media/upscale-0-gpu-fz8x5: it is gone")
	s.keys("x")
	s.shows("it is gone", "nothing was changed; esc goes back")
	s.keys("y")
	s.shows("nothing was changed; esc goes back")
	if len(r.made) != 2 {
		t.Errorf("made %q without a plan", r.made)
	}
	s.keys("esc")
	s.shows("1 of 35 claims")
}

// TestTaintIsAskedFor, can be completed, and corrected where it is none.
func TestTaintIsAskedFor(t *testing.T) {
	s, r := guarded(t)
	s.keys("3", "/", `"gpu-01 gpu.example`, "enter", "x")
	s.shows("taint pool gpu-01 of gpu.example.com with:", "KEY[=VALUE]:EFFECT")
	s.keys(`"example.com/xid`, "enter")
	s.shows("it has no effect", "with: example.com/xid")
	r.has(t, "", "")
	s.keys(`":NoExecute`, "enter")
	s.shows("Taint pool gpu-01 of gpu.example.com with example.com/xid:NoExecute? [y/N]")
	s.keys("y")
	const taint = "taint pool gpu-01 of gpu.example.com with example.com/xid:NoExecute"
	r.has(t, taint, taint)
	s.keys("x", `"gpu.example.com/ecc=unc`, "tab")
	s.shows("with: gpu.example.com/ecc=uncorrectable:NoExecute")
	s.keys("esc")
	s.lacks("[y/N]", "with:")
	s.keys("x", "enter")
	s.lacks("[y/N]", "with:")
	r.has(t, taint, taint)
}

// TestChangesOfARow checks the changes of the selected row.
func TestChangesOfARow(t *testing.T) {
	s, r := guarded(t)
	s.keys("4", "/", `"gpu-02 gpu-3`, "enter", "x")
	s.shows("taint device gpu.example.com/gpu-02/gpu-3", "taint pool gpu-02 of gpu.example.com", "remove taint rule gpu-02-memory-errors")
	s.keys(`"remove`, "enter")
	s.shows("Remove taint rule gpu-02-memory-errors? [y/N]")
	s.keys("n", "/", "backspace", `"4`, "enter", "x")
	s.shows("taint device gpu.example.com/gpu-02/gpu-4", "delete claim research/ablation-0-gpus-9gtjv")
	s.lacks("remove taint rule")
	s.keys("esc", "8", "x")
	s.shows("Remove taint rule decoder-firmware? [y/N]")
	s.keys("esc", "end", "x")
	s.shows("the driver sets this taint")
	s.keys("2", "/", `"gpu-01`, "enter", "x")
	s.shows("node gpu-01 is not cordoned")
	s.keys("6", "x")
	s.shows("Delete claim research/pretrain-0-gpus-2z82j? [y/N]")
	s.keys("esc", "7", "x")
	s.shows("nothing to change in this row")
	s.keys("6", "w", "x")
	s.shows("no row is selected here")
	if len(r.made) > 0 {
		t.Errorf("made %q although nobody said yes", r.made)
	}
}

// TestChangesOnTheFirstPage checks the changes of a row's object.
func TestChangesOnTheFirstPage(t *testing.T) {
	s, r := guarded(t)
	s.send(tea.WindowSizeMsg{Width: 120, Height: 60})
	s.shows("x change")
	choose := func(row string) {
		t.Helper()
		s.keys("home")
		for range 60 {
			// Another box may stand beside it.
			if selected, _, _ := strings.Cut(s.selected(), "│"); strings.Contains(selected, row) {
				return
			}
			s.keys("down")
		}
		t.Fatalf("there is no row %q:\n%s", row, s.screen())
	}
	for row, question := range map[string]string{
		"research/pretrain-0": "Delete claim research/pretrain-0-gpus-2z82j? [y/N]",
		"cordoned: gpu-08":    "Uncordon node gpu-08? [y/N]",
		"memory-errors":       "Remove taint rule gpu-02-memory-errors? [y/N]",
		"gpu-09":              "taint pool gpu-09 of gpu.example.com with:",
		"for 4 devices of":    "Delete claim serving/embed-2-gpus-ngc2l? [y/N]",
	} {
		choose(row)
		s.keys("x")
		s.shows(question)
		s.keys("esc")
		s.lacks(question)
	}
	choose("serving   gpu")
	s.keys("x")
	s.shows("nothing to change in this row")
	if len(r.made) > 0 {
		t.Errorf("made %q although nobody said yes", r.made)
	}
	// What is true of the other keys about an object is true here.
	choose("cordoned: gpu-08")
	s.keys("y")
	s.shows("overview > YAML of Node gpu-08")
	s.keys("esc", "t")
	s.shows("overview > tree of node gpu-08")
}

// asked returns a dashboard that asks whether to make a change of the example cluster. The
// plan is the one that pkg/commands makes, which a test there compares.
func asked(t *testing.T, width, height int) *session {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "plan.json"))
	if err != nil {
		t.Fatal(err)
	}
	var plan Plan
	if err := json.Unmarshal(text, &plan); err != nil {
		t.Fatal(err)
	}
	s := newSession(t, Options{Source: newMoving(example(t)), Changer: &recorder{plan: &plan}, Name: "https://10.0.0.1:6443"}, width, height)
	s.keys("3", "/", `"gpu-01 gpu.example`, "enter", "x", `"example.com/xid=79:NoExecute`, "enter")
	return s
}

// TestChangeScreens compares the question's screen.
func TestChangeScreens(t *testing.T) {
	s := asked(t, 80, 24)
	for _, size := range []tea.WindowSizeMsg{{Width: 80, Height: 24}, {Width: 120, Height: 40}, {Width: 200, Height: 60}, {Width: 60, Height: 20}} {
		s.send(size)
		s.rest()
		// However little room there is, what matters most can be read.
		s.shows("This evicts 2 pods.", "[y/N]")
		golden.Assert(t, trimmed(s.screen()), fmt.Sprintf("views/change-%dx%d.golden", size.Width, size.Height))
		if got := strings.Count(s.screen(), "\n") + 1; got != size.Height {
			t.Errorf("%d lines on a screen of %d", got, size.Height)
		}
	}
}
