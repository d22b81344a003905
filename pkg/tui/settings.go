// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

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
