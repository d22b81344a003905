// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/kubectl-dra/kubectl-dra"

// source has the parts of a package that reflection does not show: comments and constants.
type source struct {
	files   *token.FileSet
	structs map[string]declaration
	// strings are the comments of the other types, enums the constants of a type.
	strings map[string]string
	enums   map[string][]enumValue
}

type declaration struct {
	doc    string
	fields *ast.FieldList
}

// enumValue is one of the values that a string can have.
type enumValue struct{ value, doc string }

// goPackages returns the directories with Go files in and below one.
func goPackages(t *testing.T, root string) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if files, _ := filepath.Glob(filepath.Join(path, "*.go")); len(files) > 0 {
			dirs = append(dirs, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// parseGo reads the package in a directory.
func parseGo(t *testing.T, dir string) *source {
	t.Helper()
	s := &source{files: token.NewFileSet(), structs: map[string]declaration{}, strings: map[string]string{}, enums: map[string][]enumValue{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "zz_generated") {
			continue
		}
		file, err := parser.ParseFile(s.files, filepath.Join(dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if group, ok := decl.(*ast.GenDecl); ok {
				s.read(t, group)
			}
		}
	}
	return s
}

func (s *source) read(t *testing.T, group *ast.GenDecl) {
	t.Helper()
	for _, spec := range group.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			doc := spec.Doc
			if doc == nil {
				doc = group.Doc
			}
			if fields, ok := spec.Type.(*ast.StructType); ok {
				s.structs[spec.Name.Name] = declaration{doc: doc.Text(), fields: fields.Fields}
			} else {
				s.strings[spec.Name.Name] = doc.Text()
			}
		case *ast.ValueSpec:
			of, ok := spec.Type.(*ast.Ident)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for i, value := range spec.Values {
				literal, ok := value.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					continue
				}
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				s.enums[of.Name] = append(s.enums[of.Name], enumValue{text, sentence(spec.Doc.Text(), map[string]string{spec.Names[i].Name: text})})
			}
		}
	}
}

// fieldDocs returns the comments of the fields of a struct, by the field's name. A comment
// also counts for the fields right below it that it mentions.
func (s *source) fieldDocs(name string, jsonNames map[string]string) map[string]string {
	docs := map[string]string{}
	above, line := "", 0
	for _, field := range s.structs[name].fields.List {
		text := field.Doc.Text()
		begin, end := s.files.Position(field.Pos()).Line, s.files.Position(field.End()).Line
		for _, ident := range field.Names {
			switch {
			case text != "":
				above = text
			case begin != line+1 || !mentions(above, ident.Name):
				above = ""
			}
			docs[ident.Name] = sentence(above, jsonNames)
		}
		line = end
	}
	return docs
}

func mentions(text, word string) bool {
	return regexp.MustCompile(`\b` + word + `\b`).MatchString(text)
}

var (
	marker  = regexp.MustCompile(`(?m)^\+k8s:.*$`)
	docLink = regexp.MustCompile(`\[([A-Z]\w*(?:\.[A-Z]\w*)?)\]`)
	spaces  = regexp.MustCompile(`\s+`)
	// A word after "state" is a value.
	goWord   = regexp.MustCompile(`(?:state )?\b[A-Z]\w*\b`)
	nilValue = regexp.MustCompile(`\bnil\b`)
)

// sentence returns a comment in the words of JSON: the names of fields as they are there,
// nothing for nil, and no links to what only the source has.
func sentence(doc string, jsonNames map[string]string) string {
	doc = spaces.ReplaceAllString(marker.ReplaceAllString(doc, ""), " ")
	doc = docLink.ReplaceAllString(strings.TrimSpace(doc), "$1")
	doc = nilValue.ReplaceAllString(doc, "absent")
	return goWord.ReplaceAllStringFunc(doc, func(word string) string {
		if name := jsonNames[word]; name != "" {
			return "`" + name + "`"
		}
		return word
	})
}

// jsonField is how a field of a struct is printed.
type jsonField struct {
	reflect.StructField

	name     string
	optional bool
}

// jsonFields returns the fields of a struct as encoding/json has them.
func jsonFields(of reflect.Type) []jsonField {
	var fields []jsonField
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			fields = append(fields, jsonFields(field.Type)...)
		case name != "-" && field.IsExported():
			fields = append(fields, jsonField{field, name, strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")})
		}
	}
	return fields
}
