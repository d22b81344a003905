// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// describer writes the tables of docs/json.md for one kind. Each type is
// described where it occurs first, under its path; at other paths, and in other
// kinds, there is a link to that.
type describer struct {
	*reflector

	kind   string
	text   strings.Builder
	places map[reflect.Type]string
	queue  []reflect.Type
}

// describeKinds writes what each kind has, field by field.
func describeKinds(t *testing.T) string {
	t.Helper()
	r := newReflector(t, true)
	var text strings.Builder
	places := map[reflect.Type]string{}
	for _, k := range kinds() {
		d := &describer{reflector: r, kind: k.name, places: places}
		d.describe(k)
		text.WriteString(d.text.String())
	}
	return text.String()
}

func (d *describer) describe(k kind) {
	fmt.Fprintf(&d.text, "\n## %s\n\nPrinted by `kubectl dra %s -o json`", k.name, k.by)
	if k.list != nil {
		fmt.Fprintf(&d.text, ", several of them as `%sList` with `items`; schemas: [%s](schema/%s.json), [%sList](schema/%sList.json).", k.name, k.name, k.name, k.name, k.name)
	} else {
		fmt.Fprintf(&d.text, "; schema: [%s](schema/%s.json).", k.name, k.name)
	}
	d.text.WriteString("\n")
	d.place(k.of, k.name)
	for len(d.queue) > 0 {
		of := d.queue[0]
		d.queue = d.queue[1:]
		at := d.places[of]
		if at != k.name {
			fmt.Fprintf(&d.text, "\n### %s\n", at)
		}
		if len(d.values(of)) > 0 {
			d.describeValues(of, at)
		} else {
			d.describeFields(of, at)
		}
	}
}

// introduce writes the comment of a type, with the last part of its path for its
// name in the source.
func (d *describer) introduce(doc string, of reflect.Type, at string) {
	if doc == "" {
		return
	}
	name := at[strings.LastIndexByte(at, '.')+1:]
	if rest, ok := strings.CutPrefix(doc, of.Name()+" "); ok {
		doc = "`" + name + "` " + rest
	}
	fmt.Fprintf(&d.text, "\n%s\n", doc)
}

func (d *describer) describeFields(of reflect.Type, at string) {
	docs := d.docs(of)
	d.introduce(docs[""], of, at)
	d.text.WriteString("\n| field | meaning |\n|---|---|\n")
	// Fields with the same comment share a row.
	type row struct{ name, fields, doc string }
	var rows []*row
	for _, field := range jsonFields(of) {
		if of == d.root() && (field.name == "kind" || field.name == "apiVersion") {
			continue
		}
		text := "`" + field.name + "`: " + d.typeOf(field.Type, at+"."+field.name)
		if !field.optional {
			text += ", always"
		}
		doc := docs[field.Name]
		if i := slices.IndexFunc(rows, func(r *row) bool { return r.doc == doc }); i >= 0 {
			rows[i].fields += "<br>" + text
			continue
		}
		rows = append(rows, &row{field.name, text, doc})
	}
	for _, r := range rows {
		fmt.Fprintf(&d.text, "| %s | %s |\n", r.fields, cell(unnamed(r.doc, r.name)))
	}
}

// unnamed returns a comment without the name of the field or value, which the row begins with.
func unnamed(doc, name string) string {
	for _, verb := range []string{"is", "are", "has", "have", "means that"} {
		if rest, ok := strings.CutPrefix(doc, "`"+name+"` "+verb+" "); ok {
			return strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	return doc
}

// root returns the type of the kind.
func (d *describer) root() reflect.Type { return printed()[d.kind] }

func (d *describer) describeValues(of reflect.Type, at string) {
	d.introduce(sentence(d.source(of).strings[of.Name()], nil), of, at)
	d.text.WriteString("\n")
	values := d.values(of)
	explained := 0
	for _, value := range values {
		if value.doc != "" {
			explained++
		}
	}
	if explained*2 < len(values) {
		words := make([]string, 0, len(values))
		for _, value := range values {
			words = append(words, "`"+value.value+"`")
		}
		fmt.Fprintf(&d.text, "%s\n", strings.Join(words, ", "))
		return
	}
	d.text.WriteString("| value | meaning |\n|---|---|\n")
	for _, value := range values {
		fmt.Fprintf(&d.text, "| `%s` | %s |\n", value.value, cell(unnamed(value.doc, value.value)))
	}
}

// typeOf names a type, with a link to its description if it has one.
func (d *describer) typeOf(of reflect.Type, at string) string {
	switch of {
	case reflect.TypeFor[metav1.Time]():
		return "time"
	case reflect.TypeFor[json.RawMessage]():
		return "any"
	case reflect.TypeFor[metav1.Condition]():
		return "condition as in Kubernetes"
	}
	for _, k := range kinds() {
		if k.of == of && of != d.root() {
			return fmt.Sprintf("[%s](#%s)", k.name, anchor(k.name))
		}
	}
	if len(d.values(of)) > 0 {
		return d.link("string", of, at)
	}
	switch of.Kind() {
	case reflect.Pointer:
		return d.typeOf(of.Elem(), at)
	case reflect.Slice:
		return "list of " + d.typeOf(of.Elem(), at+"[]")
	case reflect.Map:
		return "map of " + d.typeOf(of.Elem(), at+".*")
	case reflect.Struct:
		return d.link("object", of, at)
	default:
		return d.schema(of).Type
	}
}

func (d *describer) link(word string, of reflect.Type, at string) string {
	return fmt.Sprintf("[%s](#%s)", word, anchor(d.place(of, at)))
}

// place returns where a type is described.
func (d *describer) place(of reflect.Type, at string) string {
	if d.places[of] == "" {
		d.places[of] = at
		d.queue = append(d.queue, of)
	}
	return d.places[of]
}

var noAnchor = regexp.MustCompile(`[^a-z0-9 _-]`)

// anchor returns what GitHub makes of a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// cell returns text that does not end the cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(text, "|", `\|`)
}
