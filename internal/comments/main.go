// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Comments checks the first sentences of the doc comments in Go files: a sentence names its
// subject, repeats the noun instead of pointing at it, and describes a function by its verb.
//
//	go run ./internal/comments $(git ls-files '*.go')
package main

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
)

func main() {
	found := 0
	for _, path := range os.Args[1:] {
		source, err := os.ReadFile(path)
		if err == nil {
			var problems []string
			problems, err = check(path, source)
			for _, problem := range problems {
				fmt.Fprintln(os.Stderr, problem)
			}
			found += len(problems)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			found++
		}
	}
	if found > 0 {
		os.Exit(1)
	}
}

// kind is the kind of a declaration, as far as the rules differ.
type kind int

const (
	other kind = iota
	function
	predicate
)

// check returns the problems of the comments in a Go file, each with its position. It skips
// generated files.
func check(path string, source []byte) ([]string, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return nil, err
	}
	var problems []string
	look := func(of kind, comment *ast.CommentGroup) {
		if advice := advise(of, comment.Text()); advice != "" {
			problems = append(problems, fmt.Sprintf("%s: %s", files.Position(comment.Pos()), advice))
		}
	}
	look(other, file.Doc)
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			look(kindOf(node), node.Doc)
		case *ast.GenDecl:
			look(other, node.Doc)
		case *ast.TypeSpec:
			look(other, node.Doc)
		case *ast.ValueSpec:
			look(other, node.Doc)
			look(other, node.Comment)
		case *ast.Field:
			look(other, node.Doc)
			look(other, node.Comment)
		}
		return true
	})
	return problems, nil
}

// kindOf returns predicate for a function that only returns a bool.
func kindOf(f *ast.FuncDecl) kind {
	if f.Type.Results.NumFields() == 1 {
		if result, ok := f.Type.Results.List[0].Type.(*ast.Ident); ok && result.Name == "bool" {
			return predicate
		}
	}
	return function
}

// Patterns of bad first sentences.
//
//nolint:gochecknoglobals // constants
var (
	pointing        = regexp.MustCompile(`(?i)\b(those|that) (of|for)\b|\bones? (that|of those)\b|\bwhat (is|was)\b|\b(is|are|has|have|returns|lists|counts|names) (those|ones)\b|\bare that\b|\b(is|are) about ([^t]|t[^o]|to\w)`)
	nameless        = regexp.MustCompile(`^(It|Its|They|These|Those|That|What|Whether)\b`)
	stateOfFunction = regexp.MustCompile(`^[\w.]+ (is|are|has|have) ([^l]|l[^i])`)
	vague           = regexp.MustCompile(`^[\w.]+( and [\w.]+)? (is|are) (what|who|whether|that|one of an?)\b`)
)

// advise returns the advice on a comment, empty if its first sentence is good.
func advise(of kind, text string) string {
	// An empty Package is enough: its links matter to other methods only.
	sentence := (&doc.Package{}).Synopsis(text)
	switch {
	case sentence == "":
		return ""
	case pointing.MatchString(sentence):
		return "repeat the noun: " + sentence
	case nameless.MatchString(sentence):
		return "name the subject: " + sentence
	case of == predicate && !strings.Contains(strings.Join(strings.Fields(text), " "), "reports whether"):
		return `say what the function "reports whether": ` + sentence
	case of == function && stateOfFunction.MatchString(sentence):
		return `describe the function by its verb, such as "returns": ` + sentence
	case of == other && vague.MatchString(sentence):
		return `say what it is, such as "the number of": ` + sentence
	}
	return ""
}
