// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// Settings are how a user wants the dashboard. The zero value is the dashboard as it comes.
type Settings struct {
	// View is the one to begin with, Theme the set of colors; empty for the usual ones.
	View, Theme string
	// Mouse and Bell are nil where the file says nothing.
	Mouse, Bell *bool
	// Columns are the titles of the columns of a view, in their order.
	Columns map[string][]string
	// Keys are the keys of an action.
	Keys map[string][]string
}

// settingNames are the names that a file of settings may use.
type settingNames struct {
	Views, Themes, Actions []string
	// Columns are the columns of each view that has any.
	Columns map[string][]string
}

// maxSettings is more than any file of settings has.
const maxSettings = 1 << 20

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
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return Settings{}, nil
	}
	if err != nil {
		return Settings{}, fmt.Errorf("read the settings of the dashboard: %w", err)
	}
	// It was only read.
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxSettings+1))
	if err != nil {
		return Settings{}, fmt.Errorf("read the settings of the dashboard: %w", err)
	}
	if len(text) > maxSettings {
		return Settings{}, fmt.Errorf("read %s: it is larger than %d MiB", path, maxSettings>>20)
	}
	names, err := known()
	if err != nil {
		return Settings{}, fmt.Errorf("read the settings of the dashboard: %w", err)
	}
	settings, err := parseSettings(text, names)
	if err != nil {
		return Settings{}, fmt.Errorf("read %s: %w", path, err)
	}
	return settings, nil
}

// knownSettings returns the names that a file of settings can use.
func knownSettings() (settingNames, error) {
	known := settingNames{Views: views.Names(), Themes: widget.Themes(), Columns: map[string][]string{}}
	keys := newKeyMap()
	for _, named := range keys.named() {
		known.Actions = append(known.Actions, named.name)
	}
	// The columns are the same whatever there is.
	l := widget.NewLook(func(string) string { return "" })
	empty, _, err := live.Take(context.Background(), live.NewFixed(&snapshot.Snapshot{}), nil)
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
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return Settings{}, nil
	case err != nil:
		return Settings{}, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return Settings{}, errors.New("expected one document")
	}
	c := Settings{}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return c, nil
	}
	return c, readFields(root, "", map[string]func(*yaml.Node, string) error{
		"view":    func(n *yaml.Node, at string) (err error) { c.View, err = readWord(n, at, known.Views); return err },
		"theme":   func(n *yaml.Node, at string) (err error) { c.Theme, err = readWord(n, at, known.Themes); return err },
		"mouse":   func(n *yaml.Node, at string) (err error) { c.Mouse, err = readBool(n, at); return err },
		"bell":    func(n *yaml.Node, at string) (err error) { c.Bell, err = readBool(n, at); return err },
		"columns": func(n *yaml.Node, at string) (err error) { c.Columns, err = readColumns(n, at, known); return err },
		"keys":    func(n *yaml.Node, at string) (err error) { c.Keys, err = readKeys(n, at, known); return err },
	})
}

// readColumns reads the titles of columns by view.
func readColumns(n *yaml.Node, at string, known settingNames) (map[string][]string, error) {
	chosen := map[string][]string{}
	of := map[string]func(*yaml.Node, string) error{}
	for view, titles := range known.Columns {
		of[view] = func(n *yaml.Node, at string) (err error) {
			chosen[view], err = readWords(n, at, func(n *yaml.Node, at string) (string, error) { return readWord(n, at, titles) })
			return err
		}
	}
	return chosen, readFields(n, at, of)
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
