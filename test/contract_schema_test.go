// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/checkpoint"
)

// jsonSchema is a JSON Schema, as far as the types need it.
type jsonSchema struct {
	Schema      string                 `json:"$schema,omitempty"`
	Title       string                 `json:"title,omitempty"`
	Description string                 `json:"description,omitempty"`
	Ref         string                 `json:"$ref,omitempty"`
	Type        string                 `json:"type,omitempty"`
	Format      string                 `json:"format,omitempty"`
	Const       string                 `json:"const,omitempty"`
	Enum        []string               `json:"enum,omitempty"`
	Minimum     *int                   `json:"minimum,omitempty"`
	Items       *jsonSchema            `json:"items,omitempty"`
	Properties  map[string]*jsonSchema `json:"properties,omitempty"`
	Required    []string               `json:"required,omitempty"`
	// Additional is the schema of fields that are not among Properties: the values of a
	// map, or none.
	Additional *jsonSchema            `json:"additionalProperties,omitempty"`
	Not        *jsonSchema            `json:"not,omitempty"`
	Defs       map[string]*jsonSchema `json:"$defs,omitempty"`
}

// nothing returns the schema that nothing matches.
func nothing() *jsonSchema { return &jsonSchema{Not: &jsonSchema{}} }

// reflector makes schemas of types.
type reflector struct {
	t       *testing.T
	sources map[string]*source
	// open allows fields that the types do not have.
	open bool
	defs map[string]*jsonSchema
}

func newReflector(t *testing.T, open bool) *reflector {
	return &reflector{t: t, sources: map[string]*source{}, open: open, defs: map[string]*jsonSchema{}}
}

// schemaOf returns the schema of a kind. The published ones are open: fields are added
// without a new version. The tests do without, so that they notice a field that the types
// do not have.
func schemaOf(t *testing.T, name string, open bool) *jsonSchema {
	t.Helper()
	r := newReflector(t, open)
	of := printed()[name]
	root := typed(name)
	if item, isList := strings.CutSuffix(name, "List"); isList {
		items, _ := of.FieldByName("Items")
		element := typed(item)
		element.Ref = r.schema(items.Type.Elem()).Ref
		root.Type, root.Description = "object", "What is printed for several of kind "+item+"."
		root.Properties["items"] = &jsonSchema{Type: "array", Items: element}
		root.Required = append(root.Required, "items")
		if !open {
			root.Additional = nothing()
		}
	} else {
		root.Ref = r.schema(of).Ref
	}
	root.Schema, root.Title, root.Defs = "https://json-schema.org/draft/2020-12/schema", name, r.defs
	return root
}

// typed returns what tells the kind of an object.
func typed(name string) *jsonSchema {
	return &jsonSchema{
		Properties: map[string]*jsonSchema{"apiVersion": {Const: apiVersion}, "kind": {Const: name}},
		Required:   []string{"apiVersion", "kind"},
	}
}

// source returns the source of a type, nil for a type of another module.
func (r *reflector) source(of reflect.Type) *source {
	dir, ours := strings.CutPrefix(of.PkgPath(), modulePath+"/")
	if !ours {
		return nil
	}
	if r.sources[dir] == nil {
		r.sources[dir] = parseGo(r.t, filepath.Join("..", filepath.FromSlash(dir)))
	}
	return r.sources[dir]
}

// isOpen reports whether a string type has other values than its constants.
func isOpen(of reflect.Type) bool { return of == reflect.TypeFor[checkpoint.ClaimState]() }

// values returns the values that a string can have, none if it can have any.
func (r *reflector) values(of reflect.Type) []enumValue {
	if s := r.source(of); s != nil && of.Kind() == reflect.String {
		return s.enums[of.Name()]
	}
	return nil
}

func (r *reflector) schema(of reflect.Type) *jsonSchema {
	if len(r.values(of)) > 0 {
		return r.define(of, r.enum)
	}
	switch of {
	case reflect.TypeFor[metav1.Time]():
		return &jsonSchema{Type: "string", Format: "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return &jsonSchema{}
	}
	switch of.Kind() {
	case reflect.Pointer:
		return r.schema(of.Elem())
	case reflect.Slice:
		return &jsonSchema{Type: "array", Items: r.schema(of.Elem())}
	case reflect.Map:
		return &jsonSchema{Type: "object", Additional: r.schema(of.Elem())}
	case reflect.Struct:
		return r.define(of, r.object)
	case reflect.String:
		return &jsonSchema{Type: "string"}
	case reflect.Bool:
		return &jsonSchema{Type: "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return &jsonSchema{Type: "integer"}
	case reflect.Uint32, reflect.Uint64:
		return &jsonSchema{Type: "integer", Minimum: new(int)}
	case reflect.Float64:
		return &jsonSchema{Type: "number"}
	default:
		r.t.Fatalf("nobody has thought of how %s looks in JSON", of)
		return nil
	}
}

// define adds a type to the definitions, once, and refers to it.
func (r *reflector) define(of reflect.Type, fill func(reflect.Type, *jsonSchema)) *jsonSchema {
	name := path.Base(of.PkgPath()) + "." + of.Name()
	if r.defs[name] == nil {
		// It is there before it is filled: a type can have itself in it.
		r.defs[name] = &jsonSchema{}
		fill(of, r.defs[name])
	}
	return &jsonSchema{Ref: "#/$defs/" + name}
}

func (r *reflector) enum(of reflect.Type, s *jsonSchema) {
	s.Type, s.Description = "string", sentence(r.source(of).strings[of.Name()], nil)
	if isOpen(of) {
		return
	}
	for _, value := range r.values(of) {
		s.Enum = append(s.Enum, value.value)
	}
}

func (r *reflector) object(of reflect.Type, s *jsonSchema) {
	fields := jsonFields(of)
	docs := r.docs(of)
	s.Type, s.Description, s.Properties = "object", docs[""], map[string]*jsonSchema{}
	if !r.open {
		s.Additional = nothing()
	}
	for _, field := range fields {
		property := r.schema(field.Type)
		property.Description = docs[field.Name]
		s.Properties[field.name] = property
		if !field.optional {
			s.Required = append(s.Required, field.name)
		}
	}
}

// common says what fields mean that need no comment, wherever they are.
func common(name string) string {
	return map[string]string{
		"adminAccess": "True if it is for administration: it can be allocated although another claim has the device.",
		"apiVersion":  "`" + apiVersion + "`",
		"claim":       "The ResourceClaim.",
		"container":   "The container.",
		"device":      "The name of the device in its pool.",
		"driver":      "The name of the DRA driver.",
		"effect":      "The effect of the taint: NoSchedule, NoExecute or None.",
		"error":       "What went wrong.",
		"key":         "The key of the taint.",
		"kind":        "What the object is.",
		"labels":      "The labels of the object, or of the one that it comes from.",
		"message":     "What there is to say, in a sentence.",
		"name":        "The name.",
		"namespace":   "The namespace.",
		"node":        "The name of the node.",
		"pod":         "The pod.",
		"pool":        "The name of the resource pool.",
		"request":     "The name of the request in the claim.",
		"shareID":     "Which share it is, of a device that several claims can use.",
		"uid":         "The UID that the cluster gave it.",
		"value":       "The value.",
	}[name]
}

// docs returns the comments of the fields of a struct, and its own under no name. For a
// field without one, that of its type counts.
func (r *reflector) docs(of reflect.Type) map[string]string {
	s := r.source(of)
	if s == nil {
		return map[string]string{}
	}
	names := map[string]string{}
	for _, field := range jsonFields(of) {
		names[field.Name] = field.name
	}
	docs := s.fieldDocs(of.Name(), names)
	for i := range of.NumField() {
		if field := of.Field(i); field.Anonymous {
			for name, doc := range r.docs(field.Type) {
				docs[name] = cmp.Or(docs[name], doc)
			}
		}
	}
	docs[""] = sentence(s.structs[of.Name()].doc, names)
	for _, field := range jsonFields(of) {
		if docs[field.Name] == "" {
			docs[field.Name] = r.introduction(field)
		}
		if docs[field.Name] == "" {
			docs[field.Name] = common(field.name)
		}
		if docs[field.Name] == "" {
			r.t.Errorf("%s.%s has no comment that says what it means", of, field.Name)
		}
	}
	return docs
}

// introduction returns the first sentence about the type of a field, if that has a comment,
// with the field in its place.
func (r *reflector) introduction(field jsonField) string {
	of := field.Type
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	s := r.source(of)
	if s == nil {
		return ""
	}
	doc := s.strings[of.Name()] + s.structs[of.Name()].doc
	doc, _, _ = strings.Cut(sentence(doc, map[string]string{of.Name(): field.name}), ". ")
	if doc == "" {
		return ""
	}
	return strings.TrimSuffix(doc, ".") + "."
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}
