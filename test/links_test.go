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

// TestLinks follows the links in the documents that lead to a file or a heading
// of this repository.
func TestLinks(t *testing.T) {
	root := ".."
	var documents []string
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			documents = append(documents, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	block := regexp.MustCompile("(?ms)^```.*?^```$")
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return block.ReplaceAllString(string(text), "")
	}
	for _, document := range documents {
		for _, found := range link.FindAllStringSubmatch(read(document), -1) {
			target, fragment, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := document
			if target != "" {
				path = filepath.Join(filepath.Dir(document), filepath.FromSlash(target))
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: there is no %s", document, found[1])
				continue
			}
			if fragment == "" {
				continue
			}
			leads := false
			for _, title := range heading.FindAllStringSubmatch(read(path), -1) {
				leads = leads || anchor(title[1]) == fragment
			}
			if !leads {
				t.Errorf("%s: %s leads to no heading", document, found[1])
			}
		}
	}
}
