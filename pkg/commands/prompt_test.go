// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"gotest.tools/v3/golden"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/explanation"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// promptSession is a prompt that a test types into. Work waits until the test runs it.
type promptSession struct {
	t       *testing.T
	model   *promptModel
	waiting []tea.Cmd
	printed []string
	ended   bool
}

func newPromptSession(t *testing.T, width int) *promptSession {
	t.Helper()
	snap, err := files.Load(t.Context(), []string{filepath.Join("..", "..", "examples", "cluster")}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	facts := cluster.New(snap)
	var list []*cluster.Device
	all := facts.Pools.Devices()
	for i := range all {
		list = append(list, &all[i])
	}
	s := &promptSession{t: t, model: newPrompt(t.Context(), promptOptions{
		Devices: inventory.NewDeviceEvaluator(facts, list, nil), Words: inventory.NewExpressionWords(list), About: "104 devices",
		Report: func(e *api.Evaluation, width int) string {
			var text strings.Builder
			if err := explanation.Evaluation(&text, e, render.Options{Width: width}); err != nil {
				t.Error(err)
			}
			return text.String()
		},
	})}
	s.send(tea.WindowSizeMsg{Width: width, Height: 24})
	return s
}

func (s *promptSession) send(msg tea.Msg) {
	_, cmd := s.model.Update(msg)
	s.take(cmd)
}

// take puts work aside. What is printed is kept.
func (s *promptSession) take(cmd tea.Cmd) {
	if cmd != nil {
		s.waiting = append(s.waiting, cmd)
	}
}

// settle runs all work, and what follows from it.
func (s *promptSession) settle() {
	for len(s.waiting) > 0 {
		cmd := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.result(cmd())
	}
}

func (s *promptSession) result(msg tea.Msg) {
	switch msg := msg.(type) {
	case nil:
		return
	case tea.QuitMsg:
		s.ended = true
		return
	case tea.BatchMsg:
		for _, cmd := range msg {
			s.take(cmd)
		}
		return
	case countedMsg, answeredMsg:
		s.send(msg)
		return
	}
	// A sequence is a list of commands, and what is printed has a text: neither
	// type is exported.
	switch value := reflect.ValueOf(msg); {
	case value.Kind() == reflect.Slice && value.Type().Elem() == reflect.TypeFor[tea.Cmd]():
		for i := range value.Len() {
			if cmd, ok := value.Index(i).Interface().(tea.Cmd); ok {
				s.take(cmd)
			}
		}
	case value.Kind() == reflect.Struct && value.NumField() == 1 && value.Field(0).Kind() == reflect.String:
		s.printed = append(s.printed, value.Field(0).String())
	}
}

// keys presses keys by their names; a text in quotation marks is typed.
func (s *promptSession) keys(keys ...string) {
	special := map[string]tea.KeyPressMsg{
		"tab": {Code: tea.KeyTab}, "shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift}, "enter": {Code: tea.KeyEnter},
		"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+d": {Code: 'd', Mod: tea.ModCtrl},
	}
	for _, k := range keys {
		if press, ok := special[k]; ok {
			s.send(press)
			continue
		}
		for _, r := range strings.TrimPrefix(k, "'") {
			s.send(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

func (s *promptSession) screen() string {
	lines := strings.Split(ansi.Strip(s.model.View().Content), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestPrompt compares the screen after some keys.
func TestPrompt(t *testing.T) {
	typed := `'device.attributes["gpu.example.com"].numa == 0`
	for name, keys := range map[string][]string{
		"empty":      nil,
		"word":       {"'dev"},
		"domains":    {`'device.attributes["`},
		"names":      {`'device.attributes["gpu.example.com"].p`},
		"chosen":     {`'device.attributes["gpu.example.com"].p`, "tab", "tab"},
		"values":     {`'device.attributes["gpu.example.com"].productName == `},
		"quantities": {`'device.capacity["gpu.example.com"].memory.compareTo(quantity("`},
		"drivers":    {`'device.driver == "`},
		"counts":     {typed},
		"problem":    {"'device.drivr == 1"},
		"entered":    {typed, "enter"},
		"history":    {typed, "enter", "'true", "enter", "up", "up"},
		"draft":      {typed, "enter", "'fal", "up", "down"},
	} {
		for _, width := range []int{80, 40} {
			t.Run(name, func(t *testing.T) {
				s := newPromptSession(t, width)
				s.keys(keys...)
				s.settle()
				text := s.screen()
				for _, line := range strings.Split(text, "\n") {
					if ansi.StringWidth(line) > width {
						t.Errorf("a line is wider than %d: %q", width, line)
					}
				}
				if width == 80 {
					golden.Assert(t, strings.Join(append(s.printed, text), "\n"), filepath.Join("prompt", name+".golden"))
				}
			})
		}
	}
}

// TestCompletionWorks types an expression with Tab alone where that is possible.
func TestCompletionWorks(t *testing.T) {
	s := newPromptSession(t, 80)
	s.keys("'dev", "tab", "'at", "tab", "'g", "tab", "'prod", "tab", "' == ", "tab")
	s.settle()
	if got, want := s.model.input.Value(), `device.attributes["gpu.example.com"].productName == "`; got != want {
		t.Fatalf("typed %s, want %s", got, want)
	}
	s.keys("tab")
	s.settle()
	if got, want := s.model.input.Value(), `device.attributes["gpu.example.com"].productName == "Atlas-80"`; got != want {
		t.Fatalf("typed %s, want %s", got, want)
	}
	if !strings.Contains(s.screen(), "true 80   false 8   fails 16   of 104 devices") {
		t.Error(s.screen())
	}
}

// TestPromptLatestWins types while an evaluation is in progress: it is cancelled, and the next
// one evaluates the current text.
func TestPromptLatestWins(t *testing.T) {
	s := newPromptSession(t, 80)
	s.keys("'true")
	var works int
	var slow context.Context
	s.model.opts.Devices = countingDevices{s.model.opts.Devices, func(ctx context.Context) { works++; slow = ctx }}
	s.settle()
	s.keys("' && fals")
	if s.model.running == nil || s.model.running.text != "true &" && s.model.running.text != "true " {
		t.Fatalf("running %+v, want the first text after true", s.model.running)
	}
	s.keys("'e")
	s.settle()
	if works > 3 {
		t.Errorf("%d evaluations, want one for the first text and one for the last", works)
	}
	if s.model.counted.text != "true && false" || s.model.running != nil || slow == nil {
		t.Errorf("counted %q, want the last text", s.model.counted.text)
	}
}

// countingDevices tells of each evaluation.
type countingDevices struct {
	promptDevices
	count func(ctx context.Context)
}

func (c countingDevices) Count(ctx context.Context, expression string) (api.EvaluationOutcomes, *api.ExpressionProblem, error) {
	c.count(ctx)
	return c.promptDevices.Count(ctx, expression)
}

func TestPromptQuit(t *testing.T) {
	for _, keys := range [][]string{{"ctrl+c"}, {"ctrl+d"}, {"'true", "ctrl+c"}} {
		s := newPromptSession(t, 80)
		s.keys(keys...)
		s.settle()
		if !s.ended || s.model.Err() != nil || strings.TrimSpace(s.screen()) != "" {
			t.Errorf("%v: ended is %t, error %v, screen %q", keys, s.ended, s.model.Err(), s.screen())
		}
	}
	s := newPromptSession(t, 80)
	s.keys("'true", "ctrl+d")
	s.settle()
	if s.ended {
		t.Error("ctrl+d ends while there is something typed")
	}
	if !slices.Equal(s.printed, nil) {
		t.Errorf("printed %q", s.printed)
	}
}
