// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"charm.land/bubbles/v2/key"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/config"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
)

// TestSettings begins with the view, and has the columns, keys and colors of the user.
func TestSettings(t *testing.T) {
	s := newSession(t, Options{Source: live.NewFixed(example(t)), Fixed: true, Config: config.Config{
		View: "devices", Theme: "color-blind", Columns: map[string][]string{"devices": {"Claim", "Device"}},
		Keys: map[string][]string{"why": {"e", "f2"}, "quit": {"Q"}},
	}}, 120, 30)
	s.shows("[4 devices]", "1/104 devices")
	if head := strings.Fields(s.lines()[2]); !slices.Equal(head[:2], []string{"CLAIM", "DEVICE"}) || strings.Contains(s.lines()[2], "STATE") {
		t.Errorf("the columns are %q", s.lines()[2])
	}
	s.keys("q")
	if s.quit {
		t.Error("q still ends it")
	}
	s.shows("q does nothing here")
	s.keys("?")
	s.shows("Q", "quit")
	s.keys("esc", "Q")
	if !s.quit {
		t.Error("Q does not end it")
	}
	for _, page := range [][]string{{"1"}, {"2"}, {"5"}, {"6"}, {"6", "e"}, {"9"}, {"9", "enter"}} {
		s.keys(page...)
		if colored := s.model.View().Content; regexp.MustCompile("\x1b\\[([0-9;]*;)?3[12]m").MatchString(colored) {
			t.Errorf("%q: there is red or green for the color-blind: %q", page, colored)
		}
		s.keys("esc")
	}
}

// TestChosenKeys do what they are chosen for, and what they were for nothing any more.
func TestChosenKeys(t *testing.T) {
	s := newSession(t, Options{Source: live.NewFixed(example(t)), Fixed: true, Config: config.Config{Keys: map[string][]string{"why": {"E"}, "up": {"u"}}}}, 120, 30)
	s.keys("5", "down", "down")
	at := s.selected()
	s.keys("down", "u")
	if got := s.selected(); got != at {
		t.Errorf("%q is selected, want %q", got, at)
	}
	s.keys("w")
	s.shows("w does nothing here", "E why")
	s.keys("E")
	s.shows("why ResourceClaim")
	s.keys("?")
	s.shows("down/u")
}

// TestKeysCollide refuses keys that would be for two actions.
func TestKeysCollide(t *testing.T) {
	for want, keys := range map[string]map[string][]string{
		"y is for why and for yaml": {"why": {"y"}},
		"e is for why and for copy": {"why": {"e"}, "copy": {"e"}},
		"":                          {"why": {"y"}, "yaml": {"w"}},
	} {
		err := CheckKeys(keys)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: %v, want %q", keys, err, want)
		}
	}
	if err := CheckKeys(nil); err != nil {
		t.Errorf("the keys as they come collide: %v", err)
	}
	k := newKeyMap()
	if err := k.choose(map[string][]string{"quit": {"Q"}, "back": {"b"}, "group": {"B"}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(k.quit.Keys(), "ctrl+c") || !slices.Contains(k.back.Keys(), "esc") {
		t.Errorf("there is no way out: %q, %q", k.quit.Keys(), k.back.Keys())
	}
}

// TestAllKeysHaveNames keeps the names complete.
func TestAllKeysHaveNames(t *testing.T) {
	k := newKeyMap()
	named := map[*key.Binding]bool{&k.views: true, &k.yes: true, &k.no: true}
	for _, n := range k.named() {
		named[n.binding] = true
	}
	if want := reflect.TypeOf(k).NumField(); len(named) != want {
		t.Errorf("%d of %d keys have a name", len(named), want)
	}
}

// TestKnown covers the columns of every view with a list.
func TestKnown(t *testing.T) {
	known, err := Known()
	if err != nil {
		t.Fatal(err)
	}
	for _, view := range append(views.Names()[1:], "pods") {
		if len(known.Columns[view]) == 0 {
			t.Errorf("no columns of %s are known", view)
		}
	}
	if !slices.Contains(known.Columns["devices"], "Claim") || !slices.Contains(known.Actions, "why") {
		t.Errorf("known are %+v", known)
	}
}

// TestSettingsAreDocumented finds every field, view and action in the document.
func TestSettingsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "top.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Settings")
	section, _, _ = strings.Cut(section, "\n## ")
	known, err := Known()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(known.Views, known.Themes, known.Actions, []string{"view", "theme", "mouse", "bell", "columns.VIEW", "keys.ACTION"}) {
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("docs/top.md does not tell of %s", name)
		}
	}
}
