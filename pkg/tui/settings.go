// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"charm.land/bubbles/v2/key"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"go.yaml.in/yaml/v3"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// Settings are how a user wants the dashboard. The zero value is the dashboard as it comes.
type Settings struct {
	// View is the view to begin with, empty for the overview, Theme the colors, nil for the usual
	// ones.
	View  string
	Theme *widget.Theme
	// Mouse and Bell are nil where the file says nothing.
	Mouse, Bell *bool
	// Columns are the titles of the columns of a view, in their order.
	Columns map[string][]string
	// Sort are the columns by which views are sorted at first.
	Sort map[string]Sort
	// Keys are the keys of an action.
	Keys map[string][]string
}

// Sort is an order of a list.
type Sort struct {
	// Column is the place of the column among the shown ones.
	Column     int
	Descending bool
}

// settingNames are the names that a file of settings may use.
type settingNames struct {
	Views, Actions []string
	// Columns are the columns of each view that has any.
	Columns map[string][]string
	// Themes is the directory of further themes.
	Themes string
}

// SettingsPath returns the file of this user; empty where the system does not say where it would
// be.
func SettingsPath() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "kubectl-dra", "config.yaml")
}

// ReadSettings reads a file of settings. A file that does not exist sets nothing, and neither
// does a file below something that is not a directory.
func ReadSettings(path string) (Settings, error) {
	settings, err := readSettings(path, knownSettings)
	if err != nil {
		return Settings{}, err
	}
	keys := newKeyMap()
	if err := keys.choose(settings.Keys); err != nil {
		return Settings{}, fmt.Errorf("read %s: %w", path, err)
	}
	return settings, nil
}

// readSettings reads a file. It calls known only if there is one.
func readSettings(path string, known func() (settingNames, error)) (Settings, error) {
	text, err := readText(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return Settings{}, nil
	}
	if err != nil {
		return Settings{}, err
	}
	names, err := known()
	if err != nil {
		return Settings{}, fmt.Errorf("read the settings of the dashboard: %w", err)
	}
	names.Themes = filepath.Join(filepath.Dir(path), "themes")
	settings, err := parseSettings(text, names)
	if err != nil {
		return Settings{}, fmt.Errorf("read %s: %w", path, err)
	}
	return settings, nil
}

// knownSettings returns the names that a file of settings can use.
func knownSettings() (settingNames, error) {
	known := settingNames{Views: views.Names(), Columns: map[string][]string{}}
	keys := newKeyMap()
	for _, named := range keys.named() {
		known.Actions = append(known.Actions, named.name)
	}
	// The columns are the same whatever there is.
	l := widget.NewLook(func(string) string { return "" })
	empty, err := live.Take(context.Background(), live.NewFixed(&snapshot.Snapshot{}))
	if err != nil {
		return settingNames{}, err
	}
	catalog := views.Catalog{Look: &l}
	for id := views.Nodes; id <= views.Findings; id++ {
		content, err := catalog.Of(context.Background(), empty, nil, id)
		if err != nil {
			return settingNames{}, err
		}
		known.Columns[id.String()] = content.Columns()
	}
	return known, nil
}

func parseSettings(text []byte, known settingNames) (Settings, error) {
	c := Settings{}
	root, err := parseDocument(text)
	if root == nil || err != nil {
		return c, err
	}
	readSorts := func() error { return nil }
	err = readFields(root, "", map[string]func(*yaml.Node, string) error{
		"view":    func(n *yaml.Node, at string) (err error) { c.View, err = readWord(n, at, known.Views); return err },
		"theme":   func(n *yaml.Node, at string) (err error) { c.Theme, err = readTheme(n, at, known.Themes); return err },
		"mouse":   func(n *yaml.Node, at string) (err error) { c.Mouse, err = readBool(n, at); return err },
		"bell":    func(n *yaml.Node, at string) (err error) { c.Bell, err = readBool(n, at); return err },
		"columns": func(n *yaml.Node, at string) (err error) { c.Columns, err = readColumns(n, at, known); return err },
		"sort": func(n *yaml.Node, at string) error {
			// The columns may be chosen further down.
			readSorts = func() (err error) { c.Sort, err = readSort(n, at, known, c.Columns); return err }
			return nil
		},
		"keys": func(n *yaml.Node, at string) (err error) { c.Keys, err = readKeys(n, at, known); return err },
	})
	if err != nil {
		return c, err
	}
	return c, readSorts()
}

// others stands for the columns that are not named.
const others = "*"

// readColumns reads the titles of columns by view.
func readColumns(n *yaml.Node, at string, known settingNames) (map[string][]string, error) {
	chosen := map[string][]string{}
	of := map[string]func(*yaml.Node, string) error{}
	for view, titles := range known.Columns {
		names := append(slices.Clone(titles), others)
		of[view] = func(n *yaml.Node, at string) error {
			words, err := readWords(n, at, func(n *yaml.Node, at string) (string, error) { return readWord(n, at, names) })
			if rest := slices.Index(words, others); rest >= 0 {
				unnamed := slices.DeleteFunc(slices.Clone(titles), func(title string) bool { return slices.Contains(words, title) })
				words = slices.Replace(words, rest, rest+1, unnamed...)
			}
			chosen[view] = words
			return err
		}
	}
	return chosen, readFields(n, at, of)
}

// readSort reads the column to sort by, and whether the last comes first, by view. The columns of
// some views were chosen.
func readSort(n *yaml.Node, at string, known settingNames, chosen map[string][]string) (map[string]Sort, error) {
	sorts := map[string]Sort{}
	of := map[string]func(*yaml.Node, string) error{}
	for view, titles := range known.Columns {
		if len(chosen[view]) > 0 {
			titles = chosen[view]
		}
		names := slices.Clone(titles)
		for _, title := range titles {
			names = append(names, title+" desc")
		}
		of[view] = func(n *yaml.Node, at string) error {
			word, err := readWord(n, at, names)
			if err != nil {
				return wrongValue(n, at, oneOf(titles)+", with desc behind it for the reverse")
			}
			place := slices.Index(names, word)
			sorts[view] = Sort{Column: place % len(titles), Descending: place >= len(titles)}
			return nil
		}
	}
	return sorts, readFields(n, at, of)
}

// readKeys reads the keys of actions.
func readKeys(n *yaml.Node, at string, known settingNames) (map[string][]string, error) {
	chosen := map[string][]string{}
	of := map[string]func(*yaml.Node, string) error{}
	for _, action := range known.Actions {
		of[action] = func(n *yaml.Node, at string) (err error) {
			chosen[action], err = readWords(n, at, readKeyName)
			return err
		}
	}
	return chosen, readFields(n, at, of)
}

// namedKey is a key with the name that settings have for it. What is told together with
// the one before it in the help follows it.
type namedKey struct {
	name    string
	binding *key.Binding
	follows bool
}

// named returns all keys that can be chosen. Those of views, and the answers to a question,
// cannot.
func (k *keyMap) named() []namedKey {
	return []namedKey{
		{"down", &k.down, false},
		{"up", &k.up, true},
		{"page-down", &k.pageDown, false},
		{"page-up", &k.pageUp, true},
		{"first", &k.top, false},
		{"last", &k.end, true},
		{"left", &k.left, false},
		{"right", &k.right, true},
		{"open", &k.enter, false},
		{"back", &k.back, false},
		{"next-view", &k.next, false},
		{"previous-view", &k.prev, false},
		{"go-to", &k.goTo, false},
		{"find", &k.find, false},
		{"filter", &k.filter, false},
		{"namespace", &k.namespace, false},
		{"all-namespaces", &k.everywhere, false},
		{"sort", &k.sort, false},
		{"sort-next", &k.sortNext, false},
		{"sort-previous", &k.sortPrev, true},
		{"reverse", &k.reverse, false},
		{"look-again", &k.again, false},
		{"map-used", &k.used, false},
		{"map-fragmented", &k.fragmented, false},
		{"map-free", &k.whole, false},
		{"map-trouble", &k.trouble, false},
		{"why", &k.why, false},
		{"yaml", &k.yaml, false},
		{"tree", &k.tree, false},
		{"copy", &k.copy, false},
		{"map", &k.heat, false},
		{"group", &k.group, false},
		{"pane", &k.pane, false},
		{"pane-wider", &k.wider, false},
		{"pane-narrower", &k.narrower, true},
		{"change", &k.change, false},
		{"later", &k.later, false},
		{"earlier", &k.earlier, true},
		{"later-cause", &k.laterCause, false},
		{"earlier-cause", &k.earlierCause, true},
		{"freeze", &k.freeze, false},
		{"not-read", &k.gaps, false},
		{"mouse", &k.mouse, false},
		{"help", &k.help, false},
		{"suspend", &k.suspend, false},
		{"quit", &k.quit, false},
	}
}

// reserved returns keys that stay what they are for, so that there is a way out whatever a
// file says.
func reserved() map[string][]string {
	return map[string][]string{"quit": {quitAlways}, "back": {"esc"}}
}

// choose takes keys for actions by name. It fails if a key would be for two of them.
func (k *keyMap) choose(chosen map[string][]string) error {
	named := k.named()
	shared := map[string]bool{}
	for i, a := range named {
		for _, b := range named[:i] {
			shared[a.name+" "+b.name] = overlap(a.binding, b.binding) != ""
		}
	}
	for i, n := range named {
		keys := chosen[n.name]
		if len(keys) == 0 {
			continue
		}
		first := keys[0]
		for _, more := range reserved()[n.name] {
			if !slices.Contains(keys, more) {
				keys = append(slices.Clone(keys), more)
			}
		}
		n.binding.SetKeys(keys...)
		switch {
		case n.follows:
			with := named[i-1].binding
			with.SetHelp(with.Keys()[0]+"/"+first, with.Help().Desc)
		case i+1 < len(named) && named[i+1].follows:
			n.binding.SetHelp(first+"/"+named[i+1].binding.Keys()[0], n.binding.Help().Desc)
		case n.binding.Help().Key != "":
			n.binding.SetHelp(first, n.binding.Help().Desc)
		}
	}
	for i, a := range named {
		for _, b := range named[:i] {
			if both := overlap(a.binding, b.binding); both != "" && !shared[a.name+" "+b.name] {
				return fmt.Errorf("field keys: %s is for %s and for %s", both, b.name, a.name)
			}
		}
	}
	return nil
}

// overlap returns a key of both bindings; empty if there is none.
func overlap(a, b *key.Binding) string {
	for _, name := range a.Keys() {
		if slices.Contains(b.Keys(), name) {
			return name
		}
	}
	return ""
}

// readTheme reads the name of a theme and, unless the theme needs none, its file in a directory.
func readTheme(n *yaml.Node, at, dir string) (*widget.Theme, error) {
	names := widget.Themes()
	// A directory that cannot be read has no themes.
	files, _ := os.ReadDir(dir)
	for _, file := range files {
		if name, ok := strings.CutSuffix(file.Name(), ".yaml"); ok {
			names = append(names, name)
		}
	}
	name, err := readWord(n, at, names)
	if err != nil {
		return nil, fmt.Errorf("%w (further themes are files NAME.yaml in %s)", err, dir)
	}
	if slices.Contains(widget.Themes(), name) {
		return widget.NewTheme(name), nil
	}
	path := filepath.Join(dir, name+".yaml")
	text, err := readText(path)
	if err != nil {
		return nil, fmt.Errorf("line %d, field %s: %w", n.Line, at, err)
	}
	theme, err := parseTheme(text)
	if err != nil {
		return nil, fmt.Errorf("line %d, field %s: read %s: %w", n.Line, at, path, err)
	}
	return theme, nil
}

// parseTheme reads what a theme has other than the theme that it is based on.
func parseTheme(text []byte) (*widget.Theme, error) {
	base, styles := widget.ThemeDefault, map[string]widget.Style{}
	var scale *[widget.Levels]color.Color
	readers := map[string]func(*yaml.Node, string) error{
		"base":   func(n *yaml.Node, at string) (err error) { base, err = readWord(n, at, widget.Themes()); return err },
		"levels": func(n *yaml.Node, at string) (err error) { scale, err = readScale(n, at); return err },
	}
	for _, name := range widget.StyleNames() {
		readers[name] = func(n *yaml.Node, at string) (err error) { styles[name], err = readStyle(n, at); return err }
	}
	root, err := parseDocument(text)
	if err != nil {
		return nil, err
	}
	if root != nil {
		if err := readFields(root, "", readers); err != nil {
			return nil, err
		}
	}
	theme := widget.NewTheme(base)
	maps.Copy(theme.Styles, styles)
	if scale != nil {
		theme.SetLevels(*scale)
	}
	return theme, nil
}

// readStyle reads a color, or fields with more.
func readStyle(n *yaml.Node, at string) (s widget.Style, err error) {
	if n.Kind != yaml.MappingNode {
		s.Color, err = readColor(n, at)
		return s, err
	}
	return s, readFields(n, at, map[string]func(*yaml.Node, string) error{
		"color":      func(n *yaml.Node, at string) (err error) { s.Color, err = readColor(n, at); return err },
		"background": func(n *yaml.Node, at string) (err error) { s.Background, err = readColor(n, at); return err },
		"style": func(n *yaml.Node, at string) error {
			words, err := readWords(n, at, func(n *yaml.Node, at string) (string, error) {
				return readWord(n, at, []string{"bold", "faint", "reverse"})
			})
			s.Bold, s.Faint, s.Reverse = slices.Contains(words, "bold"), slices.Contains(words, "faint"), slices.Contains(words, "reverse")
			return err
		},
	})
}

// readScale reads the colors of levels.
func readScale(n *yaml.Node, at string) (*[widget.Levels]color.Color, error) {
	expected := fmt.Sprintf("a list of %d colors, from nothing to full", widget.Levels)
	if n.Kind != yaml.SequenceNode {
		return nil, wrongValue(n, at, expected)
	}
	if len(n.Content) != widget.Levels {
		return nil, fmt.Errorf("line %d, field %s: expected %s, found %d", n.Line, at, expected, len(n.Content))
	}
	var scale [widget.Levels]color.Color
	for i, node := range n.Content {
		var err error
		if scale[i], err = readColor(node, at+"["+strconv.Itoa(i)+"]"); err != nil {
			return nil, err
		}
	}
	return &scale, nil
}

// readColor reads a color by its name, its number or its parts.
func readColor(n *yaml.Node, at string) (color.Color, error) {
	names := []string{"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"}
	for _, name := range names[:8:8] {
		names = append(names, "bright-"+name)
	}
	if name, err := readWord(n, at, names); err == nil {
		return ansi.BasicColor(slices.Index(names, name)), nil //nolint:gosec // There are 16.
	}
	if n.Kind == yaml.ScalarNode && regexp.MustCompile(`^([0-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5]|#[0-9a-fA-F]{6})$`).MatchString(n.Value) {
		return lipgloss.Color(n.Value), nil
	}
	return nil, wrongValue(n, at, `a color such as red, bright-blue, 0 to 255 or "#5fafff" (in quotes)`)
}
