// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// maxSettings is more than any file of settings or colors has.
const maxSettings = 1 << 20

// readText reads a file.
func readText(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the settings of the dashboard: %w", err)
	}
	// It was only read.
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxSettings+1))
	if err != nil {
		return nil, fmt.Errorf("read the settings of the dashboard: %w", err)
	}
	if len(text) > maxSettings {
		return nil, fmt.Errorf("read %s: it is larger than %d MiB", path, maxSettings>>20)
	}
	return text, nil
}

// parseDocument parses the only document of a text; nil if there is nothing in it.
func parseDocument(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("expected one document")
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	return root, nil
}

// readFields reads a mapping: each field has a reader. What has none is an error.
func readFields(n *yaml.Node, at string, readers map[string]func(n *yaml.Node, at string) error) error {
	names := slices.Sorted(maps.Keys(readers))
	if n.Kind != yaml.MappingNode {
		return wrongValue(n, at, "fields such as "+names[0]+": …")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		path := strings.TrimPrefix(at+"."+name.Value, ".")
		read, known := readers[name.Value]
		switch {
		case !known:
			return fmt.Errorf("line %d, field %s: unknown field; expected %s%s", name.Line, path, oneOf(names), english.DidYouMean(name.Value, names))
		case seen[name.Value]:
			return fmt.Errorf("line %d, field %s: it is there twice", name.Line, path)
		}
		seen[name.Value] = true
		if err := read(value, path); err != nil {
			return err
		}
	}
	return nil
}

// readWord reads one of some words, whatever the case of its letters.
func readWord(n *yaml.Node, at string, known []string) (string, error) {
	err := wrongValue(n, at, oneOf(known))
	if n.Kind != yaml.ScalarNode {
		return "", err
	}
	if i := slices.IndexFunc(known, func(name string) bool { return strings.EqualFold(name, n.Value) }); i >= 0 {
		return known[i], nil
	}
	return "", fmt.Errorf("%w%s", err, english.DidYouMean(n.Value, known))
}

// readWords reads a word or a list of them. There has to be one at least, and none twice.
func readWords(n *yaml.Node, at string, read func(n *yaml.Node, at string) (string, error)) ([]string, error) {
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		nodes = n.Content
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("line %d, field %s: expected one at least, found none", n.Line, at)
	}
	var list []string
	for i, node := range nodes {
		path := at
		if n.Kind == yaml.SequenceNode {
			path = at + "[" + strconv.Itoa(i) + "]"
		}
		text, err := read(node, path)
		if err != nil {
			return nil, err
		}
		if slices.Contains(list, text) {
			return nil, fmt.Errorf("line %d, field %s: %s is there twice", node.Line, path, text)
		}
		list = append(list, text)
	}
	return list, nil
}

func readBool(n *yaml.Node, at string) (*bool, error) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!bool" {
		value := strings.EqualFold(n.Value, "true")
		return &value, nil
	}
	return nil, wrongValue(n, at, "true or false")
}

// readKeyName reads a key as the dashboard names it: a letter or a sign, or the name of a key,
// with ctrl+, alt+ and shift+ before it.
func readKeyName(n *yaml.Node, at string) (string, error) {
	const expected = "a key such as w, F2 or ctrl+p"
	if n.Kind != yaml.ScalarNode {
		return "", wrongValue(n, at, expected)
	}
	name := regexp.MustCompile(`^(ctrl\+)?(alt\+)?(shift\+)?`).ReplaceAllString(n.Value, "")
	letters := []rune(name)
	switch {
	case len(letters) == 1 && letters[0] >= '0' && letters[0] <= '9' && name == n.Value:
		return "", wrongValue(n, at, expected+", but no digit: these are for views")
	case len(letters) == 1 && unicode.IsPrint(letters[0]) && letters[0] != ' ':
		return n.Value, nil
	case slices.Contains(namedKeys(), strings.ToLower(name)):
		return strings.ToLower(n.Value), nil
	default:
		return "", wrongValue(n, at, expected+" ("+strings.Join(namedKeys(), ", ")+")")
	}
}

func namedKeys() []string {
	names := []string{"enter", "space", "tab", "backspace", "delete", "insert", "up", "down", "left", "right", "home", "end", "pgup", "pgdown"}
	for i := 1; i <= 12; i++ {
		names = append(names, "f"+strconv.Itoa(i))
	}
	return names
}

// wrongValue returns an error with the expected value of a node.
func wrongValue(n *yaml.Node, at, expected string) error {
	found := map[yaml.Kind]string{yaml.MappingNode: "fields", yaml.SequenceNode: "a list", yaml.AliasNode: "an alias"}[n.Kind]
	if n.Kind == yaml.ScalarNode {
		if found = strconv.Quote(n.Value); n.Value == "" {
			found = "nothing"
		}
	}
	if at == "" {
		return fmt.Errorf("line %d: expected %s, found %s", n.Line, expected, found)
	}
	return fmt.Errorf("line %d, field %s: expected %s, found %s", n.Line, at, expected, found)
}

func oneOf(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
