// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"
)

// Config is how a user wants the dashboard. The zero value is the dashboard as it comes.
type Config struct {
	// View is the one to begin with, Theme the set of colors; empty for the usual ones.
	View, Theme string
	// Mouse and Bell are nil where the file says nothing.
	Mouse, Bell *bool
	// Columns are the titles of the columns of a view, in their order.
	Columns map[string][]string
	// Keys are the keys of an action.
	Keys map[string][]string
}

// Known are the names that a file may use.
type Known struct {
	Views, Themes, Actions []string
	// Columns are the columns of each view that has any.
	Columns map[string][]string
}

// maxSize is more than any file of settings has.
const maxSize = 1 << 20

// Path returns the file of this user; empty where the system does not say where it would
// be.
func Path() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "kubectl-dra", "config.yaml")
}

// Read reads a file, and calls known only if there is one. A file that does not exist sets
// nothing, and neither does a file below something that is not a directory.
func Read(path string, known func() (Known, error)) (Config, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return Config{}, nil
	}
	if err != nil {
		return Config{}, fmt.Errorf("read the settings of the dashboard: %w", err)
	}
	// It was only read.
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err != nil {
		return Config{}, fmt.Errorf("read the settings of the dashboard: %w", err)
	}
	if len(text) > maxSize {
		return Config{}, fmt.Errorf("read %s: it is larger than %d MiB", path, maxSize>>20)
	}
	names, err := known()
	if err != nil {
		return Config{}, fmt.Errorf("read the settings of the dashboard: %w", err)
	}
	config, err := parse(text, names)
	if err != nil {
		return Config{}, fmt.Errorf("read %s: %w", path, err)
	}
	return config, nil
}

func parse(text []byte, known Known) (Config, error) {
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return Config{}, nil
	case err != nil:
		return Config{}, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return Config{}, errors.New("expected one document")
	}
	c := Config{}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return c, nil
	}
	return c, fields(root, "", map[string]func(*yaml.Node, string) error{
		"view":    func(n *yaml.Node, at string) (err error) { c.View, err = word(n, at, known.Views); return err },
		"theme":   func(n *yaml.Node, at string) (err error) { c.Theme, err = word(n, at, known.Themes); return err },
		"mouse":   func(n *yaml.Node, at string) (err error) { c.Mouse, err = boolean(n, at); return err },
		"bell":    func(n *yaml.Node, at string) (err error) { c.Bell, err = boolean(n, at); return err },
		"columns": func(n *yaml.Node, at string) (err error) { c.Columns, err = columns(n, at, known); return err },
		"keys":    func(n *yaml.Node, at string) (err error) { c.Keys, err = keys(n, at, known); return err },
	})
}

// columns returns the titles of columns by view.
func columns(n *yaml.Node, at string, known Known) (map[string][]string, error) {
	chosen := map[string][]string{}
	of := map[string]func(*yaml.Node, string) error{}
	for view, titles := range known.Columns {
		of[view] = func(n *yaml.Node, at string) (err error) {
			chosen[view], err = words(n, at, func(n *yaml.Node, at string) (string, error) { return word(n, at, titles) })
			return err
		}
	}
	return chosen, fields(n, at, of)
}

// keys returns the keys of actions.
func keys(n *yaml.Node, at string, known Known) (map[string][]string, error) {
	chosen := map[string][]string{}
	of := map[string]func(*yaml.Node, string) error{}
	for _, action := range known.Actions {
		of[action] = func(n *yaml.Node, at string) (err error) {
			chosen[action], err = words(n, at, keyName)
			return err
		}
	}
	return chosen, fields(n, at, of)
}
