// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"
)

// fieldError tells which field of an object has a value of the wrong type.
type fieldError struct {
	field string
	err   error
}

func (e *fieldError) Error() string {
	if e.field == "" {
		return e.err.Error()
	}
	return e.field + ": " + e.err.Error()
}

func (e *fieldError) Unwrap() error { return e.err }

// decodeAs decodes a JSON object with the rules of the API server: names are
// case-sensitive and unknown ones are ignored. Errors are a [*fieldError] or a
// syntax error.
func decodeAs[T any](data []byte) (*T, error) {
	if err := checkQuantities(data, reflect.TypeFor[T]()); err != nil {
		return nil, err
	}
	object := new(T)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, object); err != nil {
		return nil, explainDecoding(data, reflect.TypeFor[T](), err)
	}
	return object, nil
}

// explainDecoding finds the field that the decoder failed at. It decodes the
// object piece by piece, which is slow, but only done once.
func explainDecoding(data []byte, kind reflect.Type, err error) error {
	if isSyntax, offset := kjson.SyntaxErrorOffset(err); isSyntax {
		return &syntaxError{offset: offset, err: err}
	}
	field, cause := locate(data, kind, "")
	if cause == nil {
		cause = err
	}
	return &fieldError{field: strings.TrimPrefix(field, "."), err: cause}
}

// syntaxError is text that is not JSON.
type syntaxError struct {
	offset int64
	err    error
}

func (e *syntaxError) Error() string { return "not JSON: " + e.err.Error() }
func (e *syntaxError) Unwrap() error { return e.err }

// locate returns the path of the first field, in alphabetical order, that
// cannot be decoded, and what is wrong with it. The error is nil if there is
// none.
func locate(data []byte, kind reflect.Type, path string) (string, error) {
	target := reflect.New(kind)
	err := kjson.UnmarshalCaseSensitivePreserveInts(data, target.Interface())
	if err == nil {
		return path, nil
	}
	if _, custom := target.Interface().(json.Unmarshaler); custom {
		return path, describeCustom(data, kind, err)
	}
	switch kind.Kind() { //nolint:exhaustive // the others have no parts
	case reflect.Pointer:
		return locate(data, kind.Elem(), path)
	case reflect.Struct:
		return locateInStruct(data, kind, path)
	case reflect.Slice, reflect.Array:
		var elements []json.RawMessage
		if kind.Elem().Kind() == reflect.Uint8 || json.Unmarshal(data, &elements) != nil {
			return path, wrongType(data, kind)
		}
		for i, element := range elements {
			if at, err := locate(element, kind.Elem(), path+"["+strconv.Itoa(i)+"]"); err != nil {
				return at, err
			}
		}
	case reflect.Map:
		var entries map[string]json.RawMessage
		if json.Unmarshal(data, &entries) != nil {
			return path, wrongType(data, kind)
		}
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			if at, err := locate(entries[key], kind.Elem(), path+"["+strconv.Quote(key)+"]"); err != nil {
				return at, err
			}
		}
	}
	return path, wrongType(data, kind)
}

func locateInStruct(data []byte, kind reflect.Type, path string) (string, error) {
	var values map[string]json.RawMessage
	if json.Unmarshal(data, &values) != nil {
		return path, wrongType(data, kind)
	}
	types := map[string]reflect.Type{}
	fieldTypes(kind, types)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fieldType, known := types[name]
		if !known {
			continue
		}
		if at, err := locate(values[name], fieldType, path+"."+name); err != nil {
			return at, err
		}
	}
	return path, errors.New("cannot be decoded")
}

// fieldTypes collects the types of a struct's fields by their JSON names.
func fieldTypes(kind reflect.Type, types map[string]reflect.Type) {
	for i := range kind.NumField() {
		field := kind.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous && field.Type.Kind() == reflect.Struct {
			fieldTypes(field.Type, types)
			continue
		}
		if name == "" {
			name = field.Name
		}
		types[name] = field.Type
	}
}

func wrongType(data []byte, kind reflect.Type) error {
	return fmt.Errorf("expected %s, found %s", typeInWords(kind), valueInWords(data))
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
	return fmt.Errorf("expected %s, found %s", wanted, valueInWords(data))
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

func valueInWords(data []byte) string {
	const longest = 40
	switch data = data[skipSpace(data, 0):]; {
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
