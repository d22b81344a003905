// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Files are files in which edits are made, in memory until they are written.
type Files struct {
	paths  []string
	before map[string][]byte
	after  map[string][]byte
	// touched has the documents that were changed in this round, as "file 3".
	touched map[string]bool
}

// NewFiles are no files yet.
func NewFiles() *Files {
	return &Files{before: map[string][]byte{}, after: map[string][]byte{}, touched: map[string]bool{}}
}

// NextRound forgets which documents were changed since the last one.
func (f *Files) NextRound() { clear(f.touched) }

// Changed has the texts of the files that were changed.
func (f *Files) Changed() map[string][]byte { return f.after }

// Diff writes the changes as a unified diff.
func (f *Files) Diff() string { return diffOf(f.paths, f.before, f.after) }

// Write replaces the files that were changed. A file is either the old or the new one,
// whatever happens, and keeps its permissions.
func (f *Files) Write() error {
	for _, path := range f.paths {
		if f.after[path] == nil {
			continue
		}
		if err := replaceFile(path, f.after[path]); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return nil
}

func replaceFile(path string, text []byte) error {
	// A link stays one: what it leads to is replaced.
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(target)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(text)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Chmod(file.Name(), info.Mode().Perm())
	}
	if err == nil {
		err = os.Rename(file.Name(), target)
	}
	return err
}

// text is a file as it is now.
func (f *Files) text(path string) ([]byte, error) {
	if f.after[path] != nil {
		return f.after[path], nil
	}
	if f.before[path] != nil {
		return f.before[path], nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxManifest {
		return nil, errNotEditable
	}
	text, err := os.ReadFile(path)
	if err != nil || bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		return nil, errNotEditable
	}
	f.paths = append(f.paths, path)
	f.before[path] = text
	return text, nil
}

// Touched reports whether the document at a line of a file was changed in this round.
func (f *Files) Touched(path string, line int) bool {
	text, err := f.text(path)
	if err != nil {
		return false
	}
	documents, err := decodeNodes(text)
	return err == nil && f.touched[documentKey(path, documentAt(documents, line))]
}

func documentKey(path string, at int) string { return path + " " + strconv.Itoa(at) }

// Fix makes the edits of the object at a line of a file, all or none.
func (f *Files) Fix(path string, line int, edits []api.Edit) error {
	text, err := f.text(path)
	if err != nil {
		return err
	}
	documents, err := decodeNodes(text)
	if err != nil {
		return err
	}
	at := documentAt(documents, line)
	if at < 0 {
		return errNotEditable
	}
	prefix, err := itemAt(documents[at], line, edits[0].Object)
	if err != nil {
		return err
	}
	for _, edit := range edits {
		if text, err = editDocument(text, documents, at, edit.Op, prefix+edit.Path, edit.Value); err != nil {
			return err
		}
		if documents, err = decodeNodes(text); err != nil {
			return err
		}
	}
	f.after[path] = text
	f.touched[documentKey(path, at)] = true
	return nil
}

// documentAt is the document that has a line, -1 if none has.
func documentAt(documents []*yaml.Node, line int) int {
	found := -1
	for i, document := range documents {
		if len(document.Content) == 1 && document.Content[0].Line <= line {
			found = i
		}
	}
	return found
}

// itemAt is the path to the object in a document, of which it may be an item.
func itemAt(document *yaml.Node, line int, object string) (prefix string, err error) {
	for node := document.Content[0]; ; {
		if kind := scalarIn(node, "kind"); !strings.HasSuffix(kind, "List") {
			break
		}
		at, err := childOf(node, "items")
		if err != nil || at < 0 {
			return "", errNotEditable
		}
		items, item := node.Content[at+1], -1
		for i, child := range items.Content {
			if child.Line <= line {
				item = i
			}
		}
		if item < 0 {
			return "", errNotEditable
		}
		node = items.Content[item]
		prefix += "/items/" + strconv.Itoa(item)
		if _, _, name := whatif.ParseObject(object); nameIn(node) != name {
			// Several items may stand in one line.
			return "", errNotEditable
		}
	}
	return prefix, nil
}

func nameIn(node *yaml.Node) string {
	at, err := childOf(node, "metadata")
	if err != nil || at < 0 {
		return ""
	}
	return scalarIn(node.Content[at+1], "name")
}

func scalarIn(node *yaml.Node, key string) string {
	if node.Kind != yaml.MappingNode {
		return ""
	}
	at, err := childOf(node, key)
	if err != nil || at < 0 {
		return ""
	}
	return node.Content[at+1].Value
}
