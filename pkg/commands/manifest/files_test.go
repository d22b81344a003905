// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

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
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.yaml")
			if err := os.WriteFile(path, []byte(test.text), 0o640); err != nil {
				t.Fatal(err)
			}
			files := NewFiles()
			if err := files.Fix(path, 1, []api.Edit{anEdit(t, "X/x", "replace", "/a/0", test.value)}); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != test.text {
				t.Errorf("written too early: %s %v", got, err)
			}
			if err := files.Write(); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("permissions %v %v", info.Mode(), err)
			}
		})
	}
}

// TestFixFindsTheItem edits one of several objects of a name in a List.
func TestFixFindsTheItem(t *testing.T) {
	text := "kind: List\nitems:\n- metadata: {name: a}\n  n: 1\n- metadata: {name: a}\n  n: 1\n---\nmetadata: {name: b}\nn: 1\n"
	path := filepath.Join(t.TempDir(), "m.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	files := NewFiles()
	for _, at := range []struct {
		line   int
		object string
	}{{8, "X/b"}, {5, "X/a"}} {
		if err := files.Fix(path, at.line, []api.Edit{anEdit(t, at.object, "replace", "/n", 2)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Fix(path, 3, []api.Edit{anEdit(t, "X/other", "replace", "/n", 2)}); err == nil {
		t.Error("an object of another name was changed")
	}
	want := "kind: List\nitems:\n- metadata: {name: a}\n  n: 1\n- metadata: {name: a}\n  n: 2\n---\nmetadata: {name: b}\nn: 2\n"
	if got := string(files.Changed()[path]); got != want {
		t.Errorf("got\n%s", got)
	}
	if !files.Touched(path, 1) || files.Touched(path, 0) {
		t.Error("which documents were touched is wrong")
	}
}
