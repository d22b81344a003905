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
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
)

// TestSettings begins with the view, and has the columns, keys and colors of the user.
func TestSettings(t *testing.T) {
	s := newSession(t, Options{Source: live.NewFixed(example(t)), Fixed: true, Settings: Settings{
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
	s := newSession(t, Options{Source: live.NewFixed(example(t)), Fixed: true, Settings: Settings{Keys: map[string][]string{"why": {"E"}, "up": {"u"}}}}, 120, 30)
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
		k := newKeyMap()
		err := k.choose(keys)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: %v, want %q", keys, err, want)
		}
	}
	k := newKeyMap()
	if err := k.choose(nil); err != nil {
		t.Errorf("the keys as they come collide: %v", err)
	}
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
	known, err := knownSettings()
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
	known, err := knownSettings()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(known.Views, known.Themes, known.Actions, []string{"view", "theme", "mouse", "bell", "columns.VIEW", "keys.ACTION"}) {
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("docs/top.md does not tell of %s", name)
		}
	}
}

// fewNames returns a few names that settings can use.
func fewNames() (settingNames, error) {
	return settingNames{
		Views: []string{"overview", "nodes"}, Themes: []string{"default", "color-blind"}, Actions: []string{"why", "find"},
		Columns: map[string][]string{"nodes": {"Node", "State", "Devices"}},
	}, nil
}

// settingsFile writes a file of settings, and returns its path.
func settingsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReadSettings reads all fields; missing ones keep their defaults.
func TestReadSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want Settings
	}{
		"everything": {
			"view: Nodes # the case does not matter\ntheme: color-blind\nmouse: true\nbell: false\ncolumns:\n  nodes: [devices, Node]\nkeys:\n  why: x\n  find: [f, ctrl+P, F2, alt+n]\n",
			Settings{View: "nodes", Theme: "color-blind", Mouse: ptr.To(true), Bell: ptr.To(false), Columns: map[string][]string{"nodes": {"Devices", "Node"}}, Keys: map[string][]string{"why": {"x"}, "find": {"f", "ctrl+P", "f2", "alt+n"}}},
		},
		"keys that YAML takes for true and false": {"keys: {why: y, find: n}", Settings{Keys: map[string][]string{"why": {"y"}, "find": {"n"}}}},
		"nothing":        {"", Settings{}},
		"only a comment": {"# view: nodes\n", Settings{}},
		"null":           {"~", Settings{}},
	} {
		got, err := readSettings(settingsFile(t, tt.text), fewNames)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	got, err := readSettings(filepath.Join(t.TempDir(), "none"), func() (settingNames, error) {
		t.Error("it asks what is known although there is no file")
		return fewNames()
	})
	if err != nil || cmp.Diff(Settings{}, got) != "" {
		t.Errorf("without a file: %+v, %v", got, err)
	}
}

// TestSettingsMistakes expects errors with the file, the line, the field and the expected value.
func TestSettingsMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"theme: dark":                         `line 1, field theme: expected default or color-blind, found "dark"`,
		"view: nodes\nveiw: nodes":            "line 2, field veiw: unknown field; expected bell, columns, keys, mouse, theme or view",
		"view: pods":                          `line 1, field view: expected overview or nodes, found "pods"`,
		"view: [nodes]":                       "line 1, field view: expected overview or nodes, found a list",
		"view:":                               "line 1, field view: expected overview or nodes, found nothing",
		"bell: yes please":                    `line 1, field bell: expected true or false, found "yes please"`,
		"mouse: \"true\"":                     `line 1, field mouse: expected true or false, found "true"`,
		"columns:\n  nodes: [Node, Nodes]":    `line 2, field columns.nodes[1]: expected Node, State or Devices, found "Nodes"`,
		"columns:\n  nodes: [Node, node]":     "line 2, field columns.nodes[1]: Node is there twice",
		"columns:\n  nodes: []":               "line 2, field columns.nodes: expected one at least, found none",
		"columns:\n  overview: [Node]":        "line 2, field columns.overview: unknown field; expected nodes",
		"columns: [Node]":                     "line 1, field columns: expected fields such as nodes: …, found a list",
		"keys:\n  wy: w":                      "line 2, field keys.wy: unknown field; expected find or why",
		"keys:\n  why: ctrl+":                 `line 2, field keys.why: expected a key such as w, F2 or ctrl+p`,
		"keys:\n  why: 5":                     "no digit: these are for views",
		"keys:\n  why: esc":                   `found "esc"`,
		"keys:\n  why: {a: b}":                "line 2, field keys.why: expected a key such as w, F2 or ctrl+p, found fields",
		"view: nodes\nview: nodes":            "line 2, field view: it is there twice",
		"- view":                              "line 1: expected fields such as bell: …, found a list",
		"view: nodes\n---\nview: overview":    "expected one document",
		"view: \"nodes":                       "found unexpected end of stream",
		"a: &a nodes\nview: *a":               "line 1, field a: unknown field",
		"view: " + strings.Repeat("x", 2<<20): "larger than 1 MiB",
	} {
		path := settingsFile(t, text)
		_, err := readSettings(path, fewNames)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "read "+path+": ") {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	if _, err := readSettings(t.TempDir(), fewNames); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
}

func FuzzSettings(f *testing.F) {
	f.Add([]byte("view: nodes\nkeys: {why: x}"))
	f.Add([]byte("&a [*a]"))
	names, _ := fewNames()
	f.Fuzz(func(_ *testing.T, text []byte) {
		_, _ = parseSettings(text, names)
	})
}
