// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentsNameFiles fails for a document that names a file or a folder of the
// source that is not there. A file can be named without its folder.
func TestDocumentsNameFiles(t *testing.T) {
	there := map[string]bool{}
	if err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "dist"):
			return filepath.SkipDir
		}
		there[filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))] = true
		there[entry.Name()] = true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:pkg|cmd|internal|test|tools|examples|docs)/[A-Za-z0-9_/.-]+|[A-Za-z0-9_/.-]+\\.go)`")
	count := 0
	for _, pattern := range []string{"../*.md", "../docs/*.md"} {
		documents, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range documents {
			if filepath.Base(document) == "CHANGELOG.md" {
				continue // of releases as they were
			}
			text, err := os.ReadFile(document)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range named.FindAllStringSubmatch(string(text), -1) {
				count++
				if path := strings.TrimSuffix(match[1], "/"); !there[path] {
					t.Errorf("%s names %s, which is not there", document, path)
				}
			}
		}
	}
	if count == 0 {
		t.Error("no document names a file")
	}
}
