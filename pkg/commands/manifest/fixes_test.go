// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// fixesOf returns the fixes for the named documents.
func fixesOf(t testing.TB, named ...string) *Fixes {
	t.Helper()
	texts, err := files.Texts(t.Context(), named, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return NewFixes(texts, named)
}

// writeFile writes a file of a directory, and returns its path.
func writeFile(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func findingAt(path string, line int, edits ...api.Edit) api.Finding {
	return api.Finding{File: path, Line: line, Fix: edits}
}

// TestReshape moves fields one level deeper or higher without touching anything else.
func TestReshape(t *testing.T) {
	deeper := map[string]any{"name": "r", "exactly": map[string]any{"deviceClassName": "g", "count": 2}}
	flat := map[string]any{"name": "r", "deviceClassName": "g", "count": 2}
	tests := map[string]struct {
		text  string
		value any
		want  string
	}{
		"deeper": {
			"a:\n- name: r # one\n  # the class\n  deviceClassName: g\n  count: 2 # two\nb: 1\n", deeper,
			"a:\n- name: r # one\n  exactly:\n    # the class\n    deviceClassName: g\n    count: 2 # two\nb: 1\n",
		},
		"deeper, with the name in between": {
			"a:\n  - deviceClassName: g\n    name: r\n    count: 2\n", deeper,
			"a:\n  - name: r\n    exactly:\n      deviceClassName: g\n      count: 2\n",
		},
		"deeper, in braces": {
			"a: [{name: r, deviceClassName: g, count: 2}] # all\n", deeper,
			"a: [{name: r, exactly: {deviceClassName: g, count: 2}}] # all\n",
		},
		"deeper, in JSON": {
			`{"a": [{"name": "r", "deviceClassName": "g", "count": 2}]}`, deeper,
			`{"a": [{"name": "r", "exactly": {"deviceClassName": "g", "count": 2}}]}`,
		},
		"higher": {
			"a:\n- name: r # one\n  exactly:\n    deviceClassName: g # class\n    # two\n    count: 2\nb: 1\n", flat,
			"a:\n- name: r # one\n  deviceClassName: g # class\n  # two\n  count: 2\nb: 1\n",
		},
		"higher, in front": {
			"a:\n- exactly:\n    deviceClassName: g\n    count: 2\n  name: r\n", flat,
			"a:\n- deviceClassName: g\n  count: 2\n  name: r\n",
		},
		"higher, out of braces": {
			"a:\n- name: r\n  exactly: {deviceClassName: g, count: 2}\n", flat,
			"a:\n- name: r\n  deviceClassName: g\n  count: 2\n",
		},
	}
	for name, test := range tests {
		for _, lineEnd := range []string{"\n", "\r\n"} {
			t.Run(fmt.Sprintf("%s %q", name, lineEnd), func(t *testing.T) {
				text, want := strings.ReplaceAll(test.text, "\n", lineEnd), strings.ReplaceAll(test.want, "\n", lineEnd)
				path := writeFile(t, t.TempDir(), "m.yaml", text)
				fixes := fixesOf(t, path)
				if made := fixes.Make([]api.Finding{findingAt(path, 1, anEdit(t, api.Ref("X", "", "x"), "replace", "/a/0", test.value))}); len(made) != 1 {
					t.Fatal("not made")
				}
				if got := readText(t, path); got != text {
					t.Errorf("written too early: %s", got)
				}
				if n, err := fixes.Write(); err != nil || n != 1 {
					t.Fatal(n, err)
				}
				if diff := cmp.Diff(want, readText(t, path)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		}
	}
}

// TestFixesOfManyDocuments makes all changes of a file at once, each in its document, and
// none that cannot be made for certain.
func TestFixesOfManyDocuments(t *testing.T) {
	text := "# first\nkind: List\nitems:\n- metadata: {name: a}\n  v: 1\n- metadata: {name: a}\n  v: 1\n  m: {x: 1}\n---\n# last\nmetadata: {name: b}\nv: 1\n---\n" +
		"{\"metadata\": {\"name\": \"c\"},\n\t\"v\": \"1\"}\n{\"metadata\": {\"name\": \"d\"}, \"v\": 1} {\"v\": 1}\n---\na: &a {v: 1}\nb: *a\n---\na: 1\nb: 1\n"
	path := writeFile(t, t.TempDir(), "m.yaml", text)
	var findings []api.Finding
	for _, f := range []struct {
		line                int
		object, path, value string
	}{
		{5, "a", "/v", "2"},
		{7, "a", "/v", "3"},
		{8, "a", "/m/x", "on"},
		{12, "b", "/v", "4"},
		{15, "c", "/v", "5"},
		{12, "b", "/v", "7"}, // after the other one
		{4, "other", "/v", "6"},
		{12, "b", "/metadata", "8"},
		{16, "d", "/v", "9"},
		{18, "x", "/a/v", "9"},
		{18, "x", "/b/v", "9"},
		{30, "x", "/c", "9"},
	} {
		findings = append(findings, findingAt(path, f.line, anEdit(t, api.Ref("X", "", f.object), "replace", f.path, f.value)))
	}
	fixes := fixesOf(t, path)
	fixes.Check(findings)
	for i := range findings {
		if got, want := len(findings[i].Fix) > 0, i < 6; got != want {
			t.Errorf("change %d can be made: %v", i, got)
		}
	}
	if made := fixes.Make(findings); len(made) != 5 {
		t.Errorf("%d changes were made", len(made))
	}
	want := text
	for _, change := range [][2]string{{"a}\n  v: 1\n- ", "a}\n  v: '2'\n- "}, {"  v: 1\n  m: {x: 1}", "  v: '3'\n  m: {x: 'on'}"}, {"{name: b}\nv: 1", "{name: b}\nv: '4'"}, {"\t\"v\": \"1\"", "\t\"v\": \"5\""}} {
		want = strings.Replace(want, change[0], change[1], 1)
	}
	_, after := fixes.changed()
	if diff := cmp.Diff(want, string(after[path])); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRewrite keeps what belongs to a file besides its text.
func TestRewrite(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	target := writeFile(t, elsewhere, "target.yaml", "v: 1\n")
	path := writeFile(t, dir, "m.yaml", "v: 1\n")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(path, 0o640))
	must(os.Link(path, filepath.Join(elsewhere, "same.yaml")))
	must(os.Symlink(target, filepath.Join(dir, "out.yaml")))
	must(os.Symlink(path, filepath.Join(dir, "in.yaml")))
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, err := zip.Write([]byte("v: 1\n"))
	must(err)
	must(zip.Close())
	writeFile(t, dir, "m.yaml.gz", packed.String())
	before, err := os.Stat(path)
	must(err)

	change := func(named ...string) []api.Finding {
		t.Helper()
		fixes := fixesOf(t, named...)
		var findings []api.Finding
		for _, text := range fixes.Texts() {
			findings = append(findings, findingAt(text.File, 1, anEdit(t, api.Ref("X", "", "x"), "replace", "/v", 2)))
		}
		made := fixes.Make(findings)
		if _, err := fixes.Write(); err != nil {
			t.Fatal(err)
		}
		return made
	}
	if made := change(dir); len(made) != 1 || made[0].File != path {
		t.Errorf("changed: %v", made)
	}
	if got := readText(t, filepath.Join(elsewhere, "same.yaml")); got != "v: 2\n" {
		t.Errorf("the other name of the file has %q", got)
	}
	if after, err := os.Stat(path); err != nil || after.Mode() != before.Mode() || !os.SameFile(before, after) {
		t.Errorf("it is another file: %v %v", after, err)
	}
	if got := readText(t, target); got != "v: 1\n" {
		t.Errorf("written through a link: %q", got)
	}
	// A link that is named is meant.
	if made := change(filepath.Join(dir, "out.yaml")); len(made) != 1 || readText(t, target) != "v: 2\n" {
		t.Errorf("the link that was named: %v %q", made, readText(t, target))
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 4 {
		t.Errorf("left behind: %v %v", entries, err)
	}

	fixes := fixesOf(t, path)
	fixes.Make([]api.Finding{findingAt(path, 1, anEdit(t, api.Ref("X", "", "x"), "replace", "/v", 3))})
	writeFile(t, dir, "m.yaml", "v: 5\n")
	if _, err := fixes.Write(); err == nil || readText(t, path) != "v: 5\n" {
		t.Errorf("a change of somebody else is lost: %v", err)
	}
}

// TestFixesOfRandomTexts makes many changes at once. What is not named stays as it is, byte
// for byte, and a second time nothing changes.
func TestFixesOfRandomTexts(t *testing.T) {
	layouts := []string{
		"metadata: {name: %s} # é\nv: %s # c\nlist:\n- r:\n    v: %s\n- r: {v: %s}\n",
		"{\"metadata\": {\"name\": \"%s\"}, \"v\": %s, \"list\": [{\"r\": {\"v\": %s}}, {\"r\": {\"v\": %s}}]}\n",
		"metadata:\r\n  name: %s\r\nv: %s\r\nlist:\r\n  - r: {v: %s}\r\n  -\r\n    r:\r\n      v: %s\r\n",
	}
	paths := []string{"/v", "/list/0/r/v", "/list/1/r/v"}
	random := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	path := filepath.Join(dir, "m.yaml")
	for n := range 300 {
		var text, want strings.Builder
		var findings []api.Finding
		line := 2
		for d := range 1 + random.IntN(6) {
			layout := layouts[random.IntN(len(layouts))]
			name := fmt.Sprintf("d%d", d)
			before, after := []any{name}, []any{name}
			for _, p := range paths {
				value := "1"
				if random.IntN(2) == 0 {
					value = fmt.Sprint(random.IntN(100))
					findings = append(findings, findingAt(path, line, api.Edit{Object: api.Ref("X", "", name), Op: "replace", Path: p, Value: []byte(value)}))
				}
				before, after = append(before, "1"), append(after, value)
			}
			fmt.Fprintf(&text, "---\n"+layout, before...)
			fmt.Fprintf(&want, "---\n"+layout, after...)
			line += 1 + strings.Count(layout, "\n")
		}
		writeFile(t, dir, "m.yaml", text.String())
		fixes := fixesOf(t, path)
		if made := fixes.Make(findings); len(made) != len(findings) {
			t.Fatalf("%d: %d of %d changes made in\n%s", n, len(made), len(findings), text.String())
		}
		if _, err := fixes.Write(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), readText(t, path)); diff != "" {
			t.Fatalf("%d: -want +got:\n%s", n, diff)
		}
		fixes = fixesOf(t, path)
		fixes.Make(findings)
		if paths, _ := fixes.changed(); len(paths) > 0 {
			t.Fatalf("%d: changed again", n)
		}
	}
}
