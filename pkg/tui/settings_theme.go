// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"image/color"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"go.yaml.in/yaml/v3"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

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
