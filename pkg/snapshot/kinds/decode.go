// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// decoding is how objects are decoded. It remembers which types have quantities.
//
//nolint:gochecknoglobals // it is never changed, like a compiled regular expression
var decoding = json.JoinOptions(json.WithUnmarshalers(json.UnmarshalFromFunc(decodeQuantity)), jsontext.AllowInvalidUTF8(true))

// DecodeAs decodes a JSON object with the rules of the API server: names are
// case-sensitive and unknown ones are ignored. Errors are a [*fieldError] or a
// [*syntaxError].
func DecodeAs[T any](data []byte) (*T, error) {
	return decodeWith[T](data, decoding)
}

func decodeWith[T any](data []byte, options json.Options) (*T, error) {
	object := new(T)
	if err := json.Unmarshal(data, object, options); err != nil {
		return nil, explainDecoding(data, reflect.TypeFor[T](), err)
	}
	return object, nil
}

// CheckText fails for the text of an object that is not decoded, if it is not JSON
// or has a field twice.
func CheckText(data []byte) error {
	var value jsontext.Value
	if err := json.Unmarshal(data, &value, decoding); err != nil {
		return explainDecoding(data, nil, err)
	}
	return nil
}

// explainDecoding words the error of the decoder. There is no type for an object
// of another kind.
func explainDecoding(data []byte, kind reflect.Type, err error) error {
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			path, _, _ := locate(data, kind, syntactic.JSONPointer)
			return &FieldError{path, ErrDuplicateKey}
		}
		return &SyntaxError{Offset: syntactic.ByteOffset, Err: syntactic.Err}
	}
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return err
	}
	path, kind, value := locate(data, kind, semantic.JSONPointer)
	if exponent, ok := errors.AsType[*exponentError](err); ok {
		return &FieldError{path, exponent}
	}
	return &FieldError{path, wrongValue(value, kind, cmp.Or(semantic.Err, err))}
}

// locate follows a pointer into the text of an object of some type. It returns the
// field path, and the type and the text of what is there. Below a type that decodes
// itself there is no type.
func locate(data []byte, kind reflect.Type, pointer jsontext.Pointer) (path string, at reflect.Type, value []byte) {
	for token := range pointer.Tokens() {
		for kind != nil && kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if kind != nil && reflect.PointerTo(kind).Implements(reflect.TypeFor[json.Unmarshaler]()) {
			kind = nil
		}
		data = data[SkipSpace(data, 0):]
		switch {
		case len(data) > 0 && data[0] == '[':
			path += "[" + token + "]"
			kind = elementOf(kind)
		case kind != nil && kind.Kind() == reflect.Map:
			path += "[" + strconv.Quote(token) + "]"
			kind = elementOf(kind)
		default:
			path += "." + token
			if kind != nil && kind.Kind() == reflect.Struct {
				types := map[string]reflect.Type{}
				FieldTypes(kind, types)
				kind = types[token]
			}
		}
		value := childAt(data, token)
		data = data[value.From:value.To]
	}
	return strings.TrimPrefix(path, "."), kind, data
}

func elementOf(kind reflect.Type) reflect.Type {
	if kind == nil || kind.Kind() != reflect.Slice && kind.Kind() != reflect.Map {
		return nil
	}
	return kind.Elem()
}

// ValueAt finds the value to which the words of a JSON pointer lead; it is empty if there is
// none.
func ValueAt(data []byte, words []string) Span {
	at := Span{0, len(data)}
	for _, word := range words {
		child := childAt(data[at.From:at.To], word)
		at = Span{at.From + child.From, at.From + child.To}
	}
	return at
}

// childAt finds a field of an object, or an element of a list; it is empty if there is none.
func childAt(data []byte, name string) (value Span) {
	from := SkipSpace(data, 0)
	if from < len(data) && data[from] == '[' {
		items, _, err := Items(data, from)
		if i, wrong := strconv.Atoi(name); err == nil && wrong == nil && i >= 0 && i < len(items) {
			return items[i]
		}
		return Span{}
	}
	_, _ = EachField(data, from, func(key []byte, at int) (int, bool, error) {
		end, err := SkipValue(data, at)
		found := unescaped(key) == name
		if found {
			value = Span{at, end}
		}
		return end, !found, err
	})
	return value
}

// unescaped returns the name of a field of which this stands between the quotes.
func unescaped(key []byte) string {
	if bytes.IndexByte(key, '\\') < 0 {
		return string(key)
	}
	// What is not JSON is as good as no name.
	name, _ := jsontext.AppendUnquote(nil, slices.Concat([]byte{'"'}, key, []byte{'"'}))
	return string(name)
}

// FieldTypes collects the types of a struct's fields by their JSON names.
func FieldTypes(kind reflect.Type, types map[string]reflect.Type) {
	for i := range kind.NumField() {
		field := kind.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous && field.Type.Kind() == reflect.Struct {
			FieldTypes(field.Type, types)
			continue
		}
		types[cmp.Or(name, field.Name)] = field.Type
	}
}

// wrongValue tells what a value of a type has to be.
func wrongValue(data []byte, kind reflect.Type, err error) error {
	for kind != nil && kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	if kind == nil {
		return err
	}
	if reflect.PointerTo(kind).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return describeCustom(data, kind, err)
	}
	return fmt.Errorf("expected %s, found %s", typeInWords(kind), ValueInWords(data))
}

// describeCustom words the error of a type that decodes itself.
func describeCustom(data []byte, kind reflect.Type, err error) error {
	wanted := ""
	switch kind.Name() {
	case "Quantity":
		wanted = `a quantity such as 1, "500m" or "80Gi"`
	case "Time", "MicroTime":
		wanted = `a time such as "2006-01-02T15:04:05Z"`
	case "IntOrString":
		wanted = "an integer or a string"
	case "Duration":
		wanted = `a duration such as "30s"`
	default:
		return err
	}
	return fmt.Errorf("expected %s, found %s", wanted, ValueInWords(data))
}

func typeInWords(kind reflect.Type) string {
	switch kind.Kind() { //nolint:exhaustive // API types have no others
	case reflect.Pointer:
		return typeInWords(kind.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return "an integer"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	default:
		return "an object"
	}
}

// TypeInWords says what a JSON text has, without a word of it: it may be a secret.
func TypeInWords(data []byte) string {
	switch data = data[SkipSpace(data, 0):]; {
	case len(data) == 0:
		return "nothing"
	case data[0] == '{':
		return "an object"
	case data[0] == '[':
		return "a list"
	case data[0] == '"':
		return "a string"
	case string(data) == "null":
		return "null"
	default:
		return "a number or a boolean"
	}
}

// ValueInWords says what a JSON text has, for errors about a field of an object.
func ValueInWords(data []byte) string {
	const longest = 40
	switch data = data[SkipSpace(data, 0):]; {
	case len(data) == 0:
		return "nothing"
	case data[0] == '{':
		return "an object"
	case data[0] == '[':
		return "a list"
	case data[0] == '"' && len(data) > longest:
		return "the string " + string(data[:longest]) + `…"`
	case data[0] == '"':
		return "the string " + string(data)
	default:
		return string(data[:min(len(data), longest)])
	}
}

// untyped removes apiVersion and kind, as a client does: all objects are of
// the newest version anyway.
func untyped[T any, P interface {
	*T
	metav1.Object
	GetObjectKind() schema.ObjectKind
}](object *T, err error) (metav1.Object, error) {
	if err != nil {
		return nil, err
	}
	P(object).GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return P(object), nil
}

// decodeConverted decodes an object of an older version and converts it.
func decodeConverted[From, To any](data []byte, convert func(*From, *To, conversion.Scope) error) (*To, error) {
	from, err := DecodeAs[From](data)
	if err != nil {
		return nil, err
	}
	to := new(To)
	if err := convert(from, to, nil); err != nil {
		return nil, fmt.Errorf("convert to the newest version: %w", err)
	}
	return to, nil
}

// orNil makes an untyped nil of a typed one.
func orNil(workload *snapshot.Workload, err error) (metav1.Object, error) {
	if err != nil {
		return nil, err
	}
	return workload, nil
}

// maxExponent is the largest exponent of a quantity, in digits, that is read.
// No real quantity has a larger one: resource.Quantity rounds up to 1e-9, has
// suffixes up to 1e18, and keeps what does not fit into 64 bits only to compare
// it; two digits leave room for numbers with many zeros. The time for each
// computation grows with the exponent, and so does what it takes to decode a
// negative one. Package selector has the same bound.
const maxExponent = 99

// longExponent is an exponent beyond that.
var longExponent = regexp.MustCompile(`[eE][+-]?0*[1-9][0-9]{2,}`)

// exponentError is a quantity with an exponent beyond that.
type exponentError struct{ quantity string }

func (e *exponentError) Error() string {
	return fmt.Sprintf("expected a quantity with an exponent between -%d and %d, found %s", maxExponent, maxExponent, Shortened(e.quantity))
}

// decodeQuantity decodes a quantity unless that, or working with it, takes forever.
func decodeQuantity(decoder *jsontext.Decoder, quantity *resource.Quantity) error {
	text, err := decoder.ReadValue()
	if err != nil {
		return err
	}
	if err := CheckExponent(string(text)); err != nil {
		return err
	}
	return quantity.UnmarshalJSON(text)
}

// CheckExponent fails for the text of a quantity with a long exponent.
func CheckExponent(text string) error {
	if !strings.ContainsAny(text, "eE") || !longExponent.MatchString(text) {
		return nil
	}
	return &exponentError{strings.Trim(text, `"`)}
}
