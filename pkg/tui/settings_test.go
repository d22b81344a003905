// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"bytes"
	"image/color"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"charm.land/bubbles/v2/key"
	"charm.land/lipgloss/v2"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// TestSettings begins with the view, and has the columns, keys and colors of the user.
func TestSettings(t *testing.T) {
	s := newSession(t, Options{Source: live.NewFixed(example(t)), Fixed: true, fewColors: true, Settings: Settings{
		View: "devices", Theme: widget.NewTheme(widget.ThemeColorBlind), Columns: map[string][]string{"devices": {"Claim", "Device"}},
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
	for _, page := range [][]string{{"1"}, {"2"}, {"2", "v"}, {"5"}, {"6"}, {"6", "e"}, {"9"}, {"9", "enter"}} {
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
	for _, name := range slices.Concat(known.Views, widget.Themes(), widget.StyleNames(), known.Actions, []string{"base", "levels", "view", "theme", "mouse", "bell", "columns.VIEW", "sort.VIEW", "keys.ACTION"}) {
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("docs/top.md does not tell of %s", name)
		}
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(blocks) != 2 {
		t.Fatalf("docs/top.md has %d examples", len(blocks))
	}
	if _, err := parseSettings([]byte(blocks[0][1]), known); err != nil {
		t.Error(err)
	}
	if _, err := parseTheme([]byte(blocks[1][1])); err != nil {
		t.Error(err)
	}
}

// fewNames returns a few names that settings can use.
func fewNames() (settingNames, error) {
	return settingNames{
		Views: []string{"overview", "nodes"}, Actions: []string{"why", "find"},
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
			Settings{View: "nodes", Theme: widget.NewTheme(widget.ThemeColorBlind), Mouse: ptr.To(true), Bell: ptr.To(false), Columns: map[string][]string{"nodes": {"Devices", "Node"}}, Keys: map[string][]string{"why": {"x"}, "find": {"f", "ctrl+P", "f2", "alt+n"}}},
		},
		"keys that YAML takes for true and false": {"keys: {why: y, find: n}", Settings{Keys: map[string][]string{"why": {"y"}, "find": {"n"}}}},
		"the other columns":                       {"columns:\n  nodes: [state, '*']", Settings{Columns: map[string][]string{"nodes": {"State", "Node", "Devices"}}}},
		"an order":                                {"sort: {nodes: devices desc}", Settings{Sort: map[string]Sort{"nodes": {Column: 2, Descending: true}}}},
		"an order by a chosen column":             {"sort: {nodes: Devices}\ncolumns: {nodes: [Devices, Node]}", Settings{Sort: map[string]Sort{"nodes": {}}, Columns: map[string][]string{"nodes": {"Devices", "Node"}}}},
		"nothing":                                 {"", Settings{}},
		"only a comment":                          {"# view: nodes\n", Settings{}},
		"null":                                    {"~", Settings{}},
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
		"theme: dark":                      `line 1, field theme: expected default, color-blind or light, found "dark" (further themes are files NAME.yaml in `,
		"theme: lihgt":                     `found "lihgt"; did you mean light?`,
		"theme: ../config":                 `line 1, field theme: expected default, color-blind or light, found "../config"`,
		"view: nodes\nveiw: nodes":         "line 2, field veiw: unknown field; expected bell, columns, keys, mouse, sort, theme or view; did you mean view?",
		"view: pods":                       `line 1, field view: expected overview or nodes, found "pods"`,
		"view: [nodes]":                    "line 1, field view: expected overview or nodes, found a list",
		"view:":                            "line 1, field view: expected overview or nodes, found nothing",
		"bell: yes please":                 `line 1, field bell: expected true or false, found "yes please"`,
		"mouse: \"true\"":                  `line 1, field mouse: expected true or false, found "true"`,
		"columns:\n  nodes: [Node, Nodes]": `line 2, field columns.nodes[1]: expected Node, State, Devices or *, found "Nodes"`,
		"columns:\n  nodes: [Node, node]":  "line 2, field columns.nodes[1]: Node is there twice",
		"columns:\n  nodes: []":            "line 2, field columns.nodes: expected one at least, found none",
		"columns:\n  overview: [Node]":     "line 2, field columns.overview: unknown field; expected nodes",
		"sort:\n  nodes: Age":              `line 2, field sort.nodes: expected Node, State or Devices, with desc behind it for the reverse, found "Age"`,
		"sort: {nodes: Node}\ncolumns: {nodes: [State]}": `line 1, field sort.nodes: expected State, with desc behind it for the reverse, found "Node"`,
		"sort:\n  nodes: [Node]":                         "found a list",
		"sort:\n  node: Node":                            "line 2, field sort.node: unknown field; expected nodes; did you mean nodes?",
		"columns: [Node]":                                "line 1, field columns: expected fields such as nodes: …, found a list",
		"keys:\n  wy: w":                                 "line 2, field keys.wy: unknown field; expected find or why",
		"keys:\n  why: ctrl+":                            `line 2, field keys.why: expected a key such as w, F2 or ctrl+p`,
		"keys:\n  why: 5":                                "no digit: these are for views",
		"keys:\n  why: esc":                              `found "esc"`,
		"keys:\n  why: {a: b}":                           "line 2, field keys.why: expected a key such as w, F2 or ctrl+p, found fields",
		"view: nodes\nview: nodes":                       "line 2, field view: it is there twice",
		"- view":                                         "line 1: expected fields such as bell: …, found a list",
		"view: nodes\n---\nview: overview":               "expected one document",
		"view: \"nodes":                                  "found unexpected end of stream",
		"a: &a nodes\nview: *a":                          "line 1, field a: unknown field",
		"view: " + strings.Repeat("x", 2<<20):            "larger than 1 MiB",
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

// themeFile writes a theme called night, and settings that use it. It returns the paths of both.
func themeFile(t *testing.T, text string) (settings, theme string) {
	t.Helper()
	settings = settingsFile(t, "theme: Night")
	theme = filepath.Join(filepath.Dir(settings), "themes", "night.yaml")
	if err := os.Mkdir(filepath.Dir(theme), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(theme, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return settings, theme
}

// TestThemeFile changes the escape codes of what a file names, in texts that pkg/render draws, too,
// and nothing else.
func TestThemeFile(t *testing.T) {
	for text, changes := range map[string][]string{
		"bad: 201\nstrong: {color: \"#010203\", background: bright-red, style: [bold, reverse]}\ntitles: {color: \"#010203\", background: bright-red, style: [bold, reverse]}": {
			"\x1b[91m", "\x1b[38;5;201m", "\x1b[1;91m", "\x1b[1;38;5;201m", "\x1b[1m", "\x1b[1;7;38;2;1;2;3;101m",
		},
		"good: 202\nwarning: 203\nbusy: {style: faint}\nfaint: blue\ntab: 204\nlevels: [1, 205, 206, 4, 5, 6, 8, 207]": {
			"\x1b[32m", "\x1b[38;5;202m", "\x1b[1;32m", "\x1b[1;38;5;202m", "\x1b[33m", "\x1b[38;5;203m", "\x1b[1;33m", "\x1b[1;38;5;203m",
			"\x1b[36m", "\x1b[2m", "\x1b[2m", "\x1b[34m", "\x1b[1;7m", "\x1b[38;5;204m",
			"[38;5;102m", "[31m", "[38;5;66m", "[38;5;205m", "[38;5;30m", "[38;5;206m", "[38;5;67m", "[34m",
			"[38;5;31m", "[35m", "[38;5;68m", "[36m", "[38;5;32m", "[90m", "[38;5;33m", "[38;5;207m",
		},
	} {
		path, _ := themeFile(t, text)
		settings, err := ReadSettings(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"overview", "map", "why", "cause"} {
			colored := func(c Settings) string {
				s := newSession(t, Options{Source: live.NewFixed(example(t)), Fixed: true, Settings: c}, 200, 60)
				s.keys(pages()[name]...)
				return s.model.View().Content
			}
			before := colored(Settings{})
			if got, want := colored(settings), strings.NewReplacer(changes...).Replace(before); got != want || got == before {
				t.Errorf("%s: the theme changes something else, or nothing:\n%s", name, cmp.Diff(want, got))
			}
		}
	}
}

// TestReadTheme takes over what a file does not set from the theme that it is based on.
func TestReadTheme(t *testing.T) {
	named := [widget.Levels]color.Color{lipgloss.White, lipgloss.Cyan, lipgloss.Blue, lipgloss.Magenta, lipgloss.BrightBlack, lipgloss.BrightCyan, lipgloss.BrightBlue, lipgloss.BrightMagenta}
	for text, change := range map[string]func(*widget.Theme){
		"": func(*widget.Theme) {},
		"busy: Bright-Blue\ntab: {style: reverse}": func(x *widget.Theme) {
			x.Styles["busy"], x.Styles["tab"] = widget.Style{Color: lipgloss.BrightBlue}, widget.Style{Reverse: true}
		},
		"levels: [7, 6, 4, 5, 8, 14, 12, 13]": func(x *widget.Theme) { x.Scale, x.Scale16 = named, named },
		"levels: [7, 6, 4, 5, 8, 14, 12, 99]": func(x *widget.Theme) { x.Scale = named; x.Scale[7] = lipgloss.ANSIColor(99) },
	} {
		for _, base := range []string{"default", "light"} {
			want := widget.NewTheme(base)
			change(want)
			path, _ := themeFile(t, text+"\nbase: "+base)
			got, err := readSettings(path, fewNames)
			if diff := cmp.Diff(Settings{Theme: want}, got); err != nil || diff != "" {
				t.Errorf("%q on %s: %v, -want +got\n%s", text, base, err, diff)
			}
		}
	}
}

// TestThemeMistakes expects errors with both files, the line, the field and the expected value.
func TestThemeMistakes(t *testing.T) {
	const expected = `expected a color such as red, bright-blue, 0 to 255 or "#5fafff" (in quotes), found `
	for text, want := range map[string]string{
		"base: light\ngood: grean":    "line 2, field good: " + expected + `"grean"`,
		"good: 256":                   "line 1, field good: " + expected + `"256"`,
		"good: \"#12345\"":            "line 1, field good: " + expected + `"#12345"`,
		"good: #5fafff":               "line 1, field good: " + expected + "nothing",
		"good: [red]":                 "line 1, field good: " + expected + "a list",
		"bad: {background: x}":        "line 1, field bad.background: " + expected + `"x"`,
		"bad: {color: red, blink: 1}": "line 1, field bad.blink: unknown field; expected background, color or style",
		"tab:\n  style: [bold, big]":  `line 2, field tab.style[1]: expected bold, faint or reverse, found "big"`,
		"levels: [1, 2]":              "line 1, field levels: expected a list of 8 colors, from nothing to full, found 2",
		"levels: red":                 `line 1, field levels: expected a list of 8 colors, from nothing to full, found "red"`,
		"levels: [1,2,3,4,5,6,7,x]":   "line 1, field levels[7]: " + expected + `"x"`,
		"base: night":                 `line 1, field base: expected default, color-blind or light, found "night"`,
		"warnning: red":               "line 1, field warnning: unknown field; expected bad, base, busy, faint, good, levels, strong, tab, titles or warning; did you mean warning?",
		"red":                         "line 1: expected fields such as bad: …",
	} {
		path, theme := themeFile(t, text)
		_, err := readSettings(path, fewNames)
		if err == nil || !strings.Contains(err.Error(), "read "+path+": line 1, field theme: read "+theme+": "+want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestFirstOrder sorts the lists of a view at first as the user wants it, wherever they are opened.
func TestFirstOrder(t *testing.T) {
	s := newSession(t, Options{Source: live.NewFixed(example(t)), Fixed: true, Settings: Settings{
		View: "claims", Sort: map[string]Sort{"claims": {Column: 1, Descending: true}, "pools": {Column: 3}},
	}}, 120, 30)
	s.shows("NAME ▼", ", by Name")
	names := func() (list []string) {
		for _, line := range s.lines()[3:20] {
			list = append(list, strings.Fields(strings.TrimPrefix(line, "›"))[1])
		}
		return list
	}
	if list := names(); !slices.IsSortedFunc(list, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("the claims are %q", list)
	}
	s.keys("r")
	s.shows("NAME ▲")
	s.keys("7", "down", "down", "enter")
	s.shows("pools of class", "TOTAL ▲")
}

func FuzzSettings(f *testing.F) {
	f.Add([]byte("view: nodes\nkeys: {why: x}"))
	f.Add([]byte("&a [*a]"))
	names, _ := fewNames()
	f.Fuzz(func(_ *testing.T, text []byte) {
		_, _ = parseSettings(text, names)
	})
}

// TestThemeOfText prints the overview with the colors of the settings, too.
func TestThemeOfText(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	for name, want := range map[string]string{widget.ThemeDefault: "\x1b[36m█", widget.ThemeLight: "\x1b[38;5;25m█"} {
		var text bytes.Buffer
		if err := once(t, Options{Color: true, Settings: Settings{Theme: widget.NewTheme(name)}}, example(t), 100, &text); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s: no %q in\n%q", name, want, text.String())
		}
	}
}
