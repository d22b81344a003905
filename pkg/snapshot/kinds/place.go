// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// The functions in this file find the place of a field that stands where its type has
// none: the name is looked up in all of the schema of the kind.

// unknownField is a field that stands in a place where its type has none.
type unknownField struct {
	Schemas
	name  string
	value []byte
	// root is the type of the whole object, parents are the structs from it down to the
	// struct that lacks the field.
	parents []parent
	version string
}

// parent is a struct of an object, and its path; empty for the object itself.
type parent struct {
	path string
	kind reflect.Type
}

// place returns a clause that says where the field belongs, or which similar field exists;
// empty if nothing is similar.
func (u *unknownField) place() string {
	here := u.parents[len(u.parents)-1]
	siblings := u.of(here.kind)
	if found := u.under(here, 1); len(found) > 0 {
		return fmt.Sprintf("; in %s it belongs under %s", u.version, strings.TrimPrefix(strings.TrimPrefix(found[0], here.path), "."))
	}
	if near := nearest(u.name, siblings, 0.75); near != "" {
		return english.Suggestion(near)
	}
	if u.isWrapper(siblings) {
		return fmt.Sprintf("; in %s what is in it belongs directly under %s", u.version, here.path)
	}
	for _, above := range slices.Backward(u.parents[:len(u.parents)-1]) {
		if kind, known := u.of(above.kind)[u.name]; known && u.fits(kind) {
			if above.path == "" {
				return "; it belongs to the object itself"
			}
			return fmt.Sprintf("; in %s it belongs under %s", u.version, above.path)
		}
	}
	for _, from := range slices.Backward(u.parents) {
		if found := u.under(from, maxPlaceDepth); len(found) > 0 {
			return fmt.Sprintf("; in %s it belongs under %s", u.version, strings.Join(found, " or "))
		}
	}
	if near := nearest(u.name, siblings, 0.6); near != "" {
		return english.Suggestion(near)
	}
	if len(u.name) < leastUnlike {
		return ""
	}
	best, similarity := "", 0.65
	u.eachBelow(here, maxPlaceDepth, func(at parent, _ int) bool {
		if near := nearest(u.name, u.of(at.kind), similarity); near != "" {
			best, similarity = strings.TrimPrefix(at.path+"."+near, "."), levenshtein.Similarity(strings.ToLower(u.name), strings.ToLower(near), nil)
		}
		return true
	})
	return english.Suggestion(best)
}

// leastUnlike is how many letters a name needs to be compared with all fields.
const leastUnlike = 10

// maxPlaceDepth bounds how deep a place is looked for.
const maxPlaceDepth = 8

// under lists the nearest structs below a parent that have the field and take its value.
func (u *unknownField) under(from parent, depth int) (paths []string) {
	first := 0
	u.eachBelow(from, depth, func(at parent, depth int) bool {
		if first > 0 && depth > first {
			return false
		}
		if kind, known := u.of(at.kind)[u.name]; known && at.path != "status" && u.fits(kind) {
			first = depth
			paths = append(paths, at.path)
		}
		return true
	})
	return paths
}

// eachBelow visits the structs below a parent, the nearest first; an element of a list is
// one deeper than the list. It ends when visit returns false.
func (s Schemas) eachBelow(from parent, depth int, visit func(at parent, depth int) bool) {
	seen := map[reflect.Type]bool{from.kind: true}
	for level, list := 1, []parent{from}; level <= depth && len(list) > 0; level++ {
		var next []parent
		for _, above := range list {
			fields := s.of(above.kind)
			if above.kind.Kind() == reflect.Slice {
				fields = map[string]reflect.Type{"[*]": above.kind.Elem()}
			}
			for _, name := range slices.Sorted(maps.Keys(fields)) {
				kind := fields[name]
				for kind.Kind() == reflect.Pointer {
					kind = kind.Elem()
				}
				below := parent{strings.TrimPrefix(strings.Replace(above.path+"."+name, ".[*]", "[*]", 1), "."), kind}
				if kind.Kind() != reflect.Slice && (s.of(kind) == nil || seen[kind]) || below.path == "status" {
					continue
				}
				if !visit(below, level) {
					return
				}
				seen[kind] = true
				next = append(next, below)
			}
		}
		list = next
	}
}

// of returns the fields of a struct by name; nil of anything else, and of types that decode
// themselves.
func (s Schemas) of(kind reflect.Type) map[string]reflect.Type {
	if kind.Kind() != reflect.Struct {
		return nil
	}
	if fields, known := s[kind]; known {
		return fields
	}
	s[kind] = nil
	if _, custom := reflect.New(kind).Interface().(json.Unmarshaler); custom {
		return nil
	}
	fields := map[string]reflect.Type{}
	FieldTypes(kind, fields)
	s[kind] = fields
	return fields
}

// fits reports whether the value can be one of a type.
func (u *unknownField) fits(kind reflect.Type) bool {
	decoder := json.NewDecoder(bytes.NewReader(u.value))
	decoder.DisallowUnknownFields()
	return decoder.Decode(reflect.New(kind).Interface()) == nil
}

// isWrapper reports whether all that is in the field belongs to its parent.
func (u *unknownField) isWrapper(siblings map[string]reflect.Type) bool {
	var content map[string]json.RawMessage
	if json.Unmarshal(u.value, &content) != nil || len(content) == 0 {
		return false
	}
	for key := range content {
		if _, ok := siblings[key]; !ok {
			return false
		}
	}
	return true
}

// nearest returns the field whose name is most similar, and more than that; empty if none
// is.
func nearest(name string, fields map[string]reflect.Type, best float64) (near string) {
	for _, candidate := range slices.Sorted(maps.Keys(fields)) {
		if similarity := levenshtein.Similarity(strings.ToLower(name), strings.ToLower(candidate), nil); similarity > best {
			near, best = candidate, similarity
		}
	}
	return near
}

// Schemas are the fields of types, by their names. They are found out once for many objects.
type Schemas map[reflect.Type]map[string]reflect.Type
