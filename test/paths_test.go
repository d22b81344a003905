// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
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

// TestHouse compares the floors in docs/architecture.md with the packages below pkg: each package has
// a floor, and imports only packages on its floor or below.
func TestHouse(t *testing.T) {
	text, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, drawing, _ := strings.Cut(string(text), "```mermaid\n")
	drawing, _, _ = strings.Cut(drawing, "```\n")
	var floors []string
	floorOf := map[string]int{}
	for _, box := range regexp.MustCompile(`(?m)^ *(\w+)\["(.*)"\]$`).FindAllStringSubmatch(drawing, -1) {
		for _, name := range regexp.MustCompile(`pkg/[a-z0-9/]+`).FindAllString(box[2], -1) {
			if _, ok := floorOf[name]; ok {
				t.Errorf("%s is drawn twice", name)
			}
			floorOf[name] = len(floors)
		}
		floors = append(floors, box[1])
	}
	if want := strings.Join(floors, " --> "); len(floors) == 0 || !strings.Contains(drawing, " "+want+"\n") {
		t.Errorf("the drawing lacks the line %s", want)
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "../pkg/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	// at returns the floor of a package, and the drawn package that it is in.
	at := func(name string) (int, string) {
		for ; strings.HasPrefix(name, "pkg/"); name = path.Dir(name) {
			if floor, ok := floorOf[name]; ok {
				return floor, name
			}
		}
		return -1, ""
	}
	seen := map[string]bool{}
	for line := range strings.Lines(strings.ReplaceAll(string(out), "github.com/kubectl-dra/kubectl-dra/", "")) {
		words := strings.Fields(line)
		floor, drawn := at(words[0])
		if floor < 0 {
			t.Errorf("%s has no floor", words[0])
		}
		seen[drawn] = true
		for _, imported := range words[1:] {
			if !strings.HasPrefix(imported, "pkg/") {
				continue
			}
			if below, _ := at(imported); below >= 0 && below < floor {
				t.Errorf("%s on floor %s imports %s on floor %s", words[0], floors[floor], imported, floors[below])
			}
		}
	}
	for name := range floorOf {
		if !seen[name] {
			t.Errorf("there is no package %s", name)
		}
	}
}
