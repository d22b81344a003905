// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
)

func known() (Known, error) {
	return Known{
		Views: []string{"overview", "nodes"}, Themes: []string{"default", "color-blind"}, Actions: []string{"why", "find"},
		Columns: map[string][]string{"nodes": {"Node", "State", "Devices"}},
	}, nil
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRead reads all fields; missing ones keep their defaults.
func TestRead(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want Config
	}{
		"everything": {
			"view: Nodes # the case does not matter\ntheme: color-blind\nmouse: true\nbell: false\ncolumns:\n  nodes: [devices, Node]\nkeys:\n  why: x\n  find: [f, ctrl+P, F2, alt+n]\n",
			Config{View: "nodes", Theme: "color-blind", Mouse: ptr.To(true), Bell: ptr.To(false), Columns: map[string][]string{"nodes": {"Devices", "Node"}}, Keys: map[string][]string{"why": {"x"}, "find": {"f", "ctrl+P", "f2", "alt+n"}}},
		},
		"keys that YAML takes for true and false": {"keys: {why: y, find: n}", Config{Keys: map[string][]string{"why": {"y"}, "find": {"n"}}}},
		"nothing":        {"", Config{}},
		"only a comment": {"# view: nodes\n", Config{}},
		"null":           {"~", Config{}},
	} {
		got, err := Read(file(t, tt.text), known)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	got, err := Read(filepath.Join(t.TempDir(), "none"), func() (Known, error) {
		t.Error("it asks what is known although there is no file")
		return known()
	})
	if err != nil || cmp.Diff(Config{}, got) != "" {
		t.Errorf("without a file: %+v, %v", got, err)
	}
}

// TestMistakes expects errors with the file, the line, the field and the expected value.
func TestMistakes(t *testing.T) {
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
		path := file(t, text)
		_, err := Read(path, known)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "read "+path+": ") {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	if _, err := Read(t.TempDir(), known); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("view: nodes\nkeys: {why: x}"))
	f.Add([]byte("&a [*a]"))
	names, _ := known()
	f.Fuzz(func(_ *testing.T, text []byte) {
		_, _ = parse(text, names)
	})
}
