// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"go.yaml.in/yaml/v3"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// fileTexts are the files, as they are on disk.
type fileTexts struct {
	paths []string
	texts map[string][]byte
	// namespace is the namespace of objects without one.
	namespace string
}

// maxManifest bounds the files that are edited, in bytes.
const maxManifest = 4 << 20

// readTexts reads the plain text files; standard input and archives have no place where a
// change could be made. Errors in the files have been found before.
func readTexts(paths []string, namespace string) *fileTexts {
	t := &fileTexts{texts: map[string][]byte{}, namespace: namespace}
	add := func(path string) {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxManifest || t.texts[path] != nil {
			return
		}
		text, err := os.ReadFile(path)
		if err != nil || bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
			return
		}
		t.paths = append(t.paths, path)
		t.texts[path] = text
	}
	for _, path := range paths {
		if info, err := os.Stat(path); path == "-" || err != nil || !info.IsDir() {
			add(path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			continue
		}
		for _, entry := range entries {
			if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
				add(filepath.Join(path, entry.Name()))
			}
		}
	}
	return t
}

// diff writes edits as a unified diff of the files; empty if one of them
// cannot be made in place.
func (t *fileTexts) diff(edits []api.Edit) string {
	changed := map[string][]byte{}
	for _, edit := range edits {
		done := false
		for _, path := range t.paths {
			text := t.texts[path]
			if changed[path] != nil {
				text = changed[path]
			}
			after, err := t.edit(text, edit)
			if errors.Is(err, errNotThere) {
				continue
			}
			if err != nil {
				return ""
			}
			changed[path], done = after, true
			break
		}
		if !done {
			return ""
		}
	}
	return diffOf(t.paths, t.texts, changed)
}

// diffOf returns the unified diff of the files that changed.
func diffOf(paths []string, before, after map[string][]byte) string {
	var out strings.Builder
	for _, path := range paths {
		if after[path] == nil {
			continue
		}
		name := nameInDiff(path)
		text := diff.Diff(name, before[path], name, after[path])
		// The first line names the files once more.
		if _, rest, ok := bytes.Cut(text, []byte("\n")); ok {
			out.Write(rest)
		}
	}
	return out.String()
}

// nameInDiff writes the path of a file as git does, so that patch and git apply
// take it for the one file that it is.
func nameInDiff(path string) string {
	if !strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '"' || r == '\\' }) {
		return path
	}
	var b strings.Builder
	for _, c := range []byte(path) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return `"` + b.String() + `"`
}

// errNotThere is a file that does not have the object.
var errNotThere = errors.New("no such object")

// edit makes one edit in the text of a file and makes sure that it does just
// that.
func (t *fileTexts) edit(text []byte, edit api.Edit) ([]byte, error) {
	documents, err := decodeNodes(text)
	if err != nil {
		return nil, err
	}
	at, prefix, version := t.find(documents, edit.Object)
	if at < 0 {
		return nil, errNotThere
	}
	path := edit.Path
	if version == "resource.k8s.io/v1beta1" {
		// What is below exactly in newer versions belongs directly to the request.
		path = strings.Replace(path, "/exactly", "", 1)
	}
	return editDocument(text, documents, at, edit.Op, prefix+path, edit.Value)
}

// editDocument makes one operation of a JSON patch on one of the documents of a text
// and makes sure that it does just that.
func editDocument(text []byte, documents []*yaml.Node, at int, op, path string, value json.RawMessage) ([]byte, error) {
	words := pointerWords(path)
	t := newYAMLText(text)
	s, err := t.edit(documents[at], op, words, value)
	if err != nil {
		return nil, err
	}
	after := t.spliced([]splice{s})
	return after, sameEdit(documents, after, at, op, path, value)
}

// pointerWords returns the words of a JSON pointer.
func pointerWords(path string) []string {
	words := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, word := range words {
		words[i] = strings.ReplaceAll(strings.ReplaceAll(word, "~1", "/"), "~0", "~")
	}
	return words
}

// find looks up the document of an object, and the path to it if it is an item
// of a List there.
func (t *fileTexts) find(documents []*yaml.Node, object api.ObjectRef) (at int, prefix, version string) {
	type item struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Metadata   struct {
			Name         string `yaml:"name"`
			GenerateName string `yaml:"generateName"`
			Namespace    string `yaml:"namespace"`
		} `yaml:"metadata"`
	}
	named := func(i item) bool {
		name := i.Metadata.Name
		if name == "" {
			// As [files.Manifests] names it.
			name = i.Metadata.GenerateName + "xxxxx"
		}
		inNamespace := object.Namespace == "" || object.Namespace == cmp.Or(i.Metadata.Namespace, t.namespace)
		return inNamespace && object.Name == name && object.Kind == i.Kind && object.APIGroup == schema.FromAPIVersionAndKind(i.APIVersion, i.Kind).Group
	}
	for n, document := range documents {
		var found struct {
			item  `yaml:",inline"`
			Items []item `yaml:"items"`
		}
		if document.Decode(&found) != nil {
			continue
		}
		if named(found.item) {
			return n, "", found.APIVersion
		}
		for i, each := range found.Items {
			if named(each) {
				return n, fmt.Sprintf("/items/%d", i), each.APIVersion
			}
		}
	}
	return -1, "", ""
}

func decodeNodes(text []byte) (documents []*yaml.Node, err error) {
	// What the parser does not know must not end the program.
	defer func() {
		if recover() != nil {
			documents, err = nil, errNotEditable
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		documents = append(documents, &node)
	}
}

// sameEdit fails unless an edited text has the same documents as before but for
// one, which is as a JSON patch makes it.
func sameEdit(before []*yaml.Node, text []byte, at int, op, path string, value json.RawMessage) error {
	after, err := decodeNodes(text)
	if err != nil || len(after) != len(before) {
		return errNotEditable
	}
	for i := range before {
		want, err := documentJSON(before[i])
		if err != nil {
			return err
		}
		if i == at {
			operation := map[string]any{"op": op, "path": path}
			if value != nil {
				operation["value"] = value
			}
			encoded, err := json.Marshal([]any{operation})
			if err != nil {
				return err
			}
			patch, err := jsonpatch.DecodePatch(encoded)
			if err != nil {
				return err
			}
			if want, err = patch.Apply(want); err != nil {
				return err
			}
		}
		found, err := documentJSON(after[i])
		if err != nil {
			return err
		}
		var a, b any
		if json.Unmarshal(want, &a) != nil || json.Unmarshal(found, &b) != nil || !reflect.DeepEqual(a, b) {
			return errNotEditable
		}
	}
	return nil
}

func documentJSON(document *yaml.Node) ([]byte, error) {
	var value any
	if err := document.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}
