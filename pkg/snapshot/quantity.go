// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxExponent is the largest exponent of a quantity, in digits, that is read.
// No real quantity has a larger one: resource.Quantity rounds up to 1e-9, has
// suffixes up to 1e18, and keeps what does not fit into 64 bits only to compare
// it; two digits leave room for numbers with many zeros. The time for each
// computation grows with the exponent, and so does what it takes to decode a
// negative one. Package selector has the same bound.
const maxExponent = 99

// longExponent is an exponent beyond that.
var longExponent = regexp.MustCompile(`[eE][+-]?0*[1-9][0-9]{2,}`)

// checkQuantities fails for the text of an object of a type with a quantity that
// takes forever to decode, or to work with after that.
func checkQuantities(data []byte, kind reflect.Type) error {
	if !mayHaveLongExponent(data) {
		return nil
	}
	path, err := locateLongExponent(data, kind, "")
	if err == nil {
		return nil
	}
	return &fieldError{strings.TrimPrefix(path, "."), err}
}

// mayHaveLongExponent looks for a number with a long exponent anywhere in a JSON
// text, also where it is no quantity. An escape, which the text of a quantity
// does not need, may stand for a part of one.
func mayHaveLongExponent(data []byte) bool {
	return anyAt(data, "e", isLongNumber) || anyAt(data, "E", isLongNumber) || anyAt(data, `\u`, isEscapedNumber)
}

// anyAt reports whether what is asked is true of any place of a text.
func anyAt(data []byte, text string, is func(data []byte, i int) bool) bool {
	for i := 0; ; i++ {
		next := bytes.Index(data[i:], []byte(text))
		if next < 0 {
			return false
		}
		if i += next; is(data, i) {
			return true
		}
	}
}

// isEscapedNumber reports whether the escape at i stands for a letter, a digit or
// a sign of a number.
func isEscapedNumber(data []byte, i int) bool {
	return i+5 < len(data) && data[i+2] == '0' && data[i+3] == '0' && strings.IndexByte("2346", data[i+4]) >= 0 && !isMarkup(data[i+4:i+6])
}

// isLongNumber reports whether the letter at i is that of a long exponent, with
// nothing else around it than a number: hashes have such letters, too.
func isLongNumber(data []byte, i int) bool {
	if i == 0 || (data[i-1] < '0' || data[i-1] > '9') && data[i-1] != '.' {
		return false
	}
	end := i + 1
	if end < len(data) && (data[end] == '+' || data[end] == '-') {
		end++
	}
	for end < len(data) && data[end] == '0' {
		end++
	}
	first := end
	for end < len(data) && data[end] >= '0' && data[end] <= '9' {
		end++
	}
	if end-first < 3 || end < len(data) && !isDelimiter(data[end]) {
		return false
	}
	start := i
	for start > 0 && (data[start-1] >= '0' && data[start-1] <= '9' || data[start-1] == '.' || data[start-1] == '-' || data[start-1] == '+') {
		start--
	}
	return start == 0 || isDelimiter(data[start-1])
}

// isMarkup recognizes the escapes of the encoder of Go, which writes <, > and &
// that way.
func isMarkup(digits []byte) bool {
	switch strings.ToLower(string(digits)) {
	case "3c", "3e", "26":
		return true
	default:
		return false
	}
}

// locateLongExponent returns the path of the first field, in alphabetical order,
// that has a quantity with a long exponent. What cannot be decoded is left to the
// decoder.
func locateLongExponent(data []byte, kind reflect.Type, path string) (string, error) {
	if kind == reflect.TypeFor[resource.Quantity]() {
		return path, checkQuantity(data)
	}
	if _, custom := reflect.New(kind).Interface().(json.Unmarshaler); custom {
		return path, nil
	}
	switch kind.Kind() { //nolint:exhaustive // the others have no parts
	case reflect.Pointer:
		return locateLongExponent(data, kind.Elem(), path)
	case reflect.Struct:
		var values map[string]json.RawMessage
		if json.Unmarshal(data, &values) != nil {
			return path, nil
		}
		types := map[string]reflect.Type{}
		fieldTypes(kind, types)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if fieldType, known := types[name]; known {
				if at, err := locateLongExponent(values[name], fieldType, path+"."+name); err != nil {
					return at, err
				}
			}
		}
	case reflect.Slice, reflect.Array:
		var elements []json.RawMessage
		if kind.Elem().Kind() == reflect.Uint8 || json.Unmarshal(data, &elements) != nil {
			return path, nil
		}
		for i, element := range elements {
			if at, err := locateLongExponent(element, kind.Elem(), path+"["+strconv.Itoa(i)+"]"); err != nil {
				return at, err
			}
		}
	case reflect.Map:
		var entries map[string]json.RawMessage
		if json.Unmarshal(data, &entries) != nil {
			return path, nil
		}
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			if at, err := locateLongExponent(entries[key], kind.Elem(), path+"["+strconv.Quote(key)+"]"); err != nil {
				return at, err
			}
		}
	}
	return path, nil
}

// checkQuantity fails for the JSON text of a quantity, a string or a number, with
// a long exponent.
func checkQuantity(data []byte) error {
	text := string(data)
	if strings.HasPrefix(text, `"`) && json.Unmarshal(data, &text) != nil {
		return nil
	}
	return checkExponent(text)
}

func checkExponent(text string) error {
	if !strings.ContainsAny(text, "eE") || !longExponent.MatchString(text) {
		return nil
	}
	return fmt.Errorf("expected a quantity with an exponent between -%d and %d, found %s", maxExponent, maxExponent, shortened(text))
}

// leftOutError is an object that the API server has and that a snapshot cannot
// have. The others of its list are read all the same.
type leftOutError struct {
	kind string
	name objectName
	err  error
}

func (e *leftOutError) Error() string {
	return fmt.Sprintf("left out %s %s: %v", e.kind, e.name, e.err)
}
func (e *leftOutError) Unwrap() error { return e.err }

// bounded leaves out the objects of a server that have a quantity with a long
// exponent: large ones can be decoded, but not computed with. Where the API server
// computes with them itself, it stores those of some millions, and others wherever it
// does not. It cannot decode small ones, and rounds them.
func bounded[P metav1.Object](convert func(object any) (P, error)) func(object any) (P, error) {
	kind, types := reflect.TypeFor[P]().Elem(), quantityTypes{}
	if !types.holds(kind) {
		return convert
	}
	return func(object any) (P, error) {
		converted, err := convert(object)
		if err != nil {
			return converted, err
		}
		if path, err := types.locate(reflect.ValueOf(converted).Elem()); err != nil {
			left := &leftOutError{kind: kind.Name(), name: nameOf(converted)}
			if workload, ok := any(converted).(*Workload); ok {
				left.kind, path = workload.Kind, ".spec.template"+path
			}
			left.err = &fieldError{strings.TrimPrefix(path, "."), err}
			return converted, left
		}
		return converted, nil
	}
}

// quantityTypes has for types whether there may be a quantity in one.
type quantityTypes map[reflect.Type]bool

// holds reports whether there may be a quantity in a value of a type.
func (t quantityTypes) holds(kind reflect.Type) bool {
	if found, known := t[kind]; known {
		return found
	}
	// A type that has itself in it has no quantity for that.
	t[kind] = false
	switch kind.Kind() { //nolint:exhaustive // the others have no parts
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		t[kind] = t.holds(kind.Elem())
	case reflect.Struct:
		t[kind] = kind == reflect.TypeFor[resource.Quantity]()
		for i := range kind.NumField() {
			if kind.Field(i).IsExported() && t.holds(kind.Field(i).Type) {
				t[kind] = true
			}
		}
	}
	return t[kind]
}

// locate returns the path of a field that has a quantity with a long exponent: of
// the first one, with the keys of maps in alphabetical order.
func (t quantityTypes) locate(value reflect.Value) (path string, err error) {
	if !t[value.Type()] {
		return "", nil
	}
	switch value.Kind() { //nolint:exhaustive // the others have no parts
	case reflect.Pointer:
		if !value.IsNil() {
			return t.locate(value.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range value.Len() {
			if path, err := t.locate(value.Index(i)); err != nil {
				return fmt.Sprintf("[%d]%s", i, path), err
			}
		}
	case reflect.Map:
		for entries := value.MapRange(); entries.Next(); {
			if below, found := t.locate(entries.Value()); found != nil {
				if below = fmt.Sprintf("[%q]%s", entries.Key(), below); err == nil || below < path {
					path, err = below, found
				}
			}
		}
	case reflect.Struct:
		if value.Type() == reflect.TypeFor[resource.Quantity]() {
			// A copy, since the text would stay in it.
			quantity, _ := value.Interface().(resource.Quantity)
			if _, small := quantity.AsInt64(); small {
				return "", nil
			}
			return "", checkExponent(quantity.String())
		}
		for i := range value.NumField() {
			if path, err := t.locate(value.Field(i)); err != nil {
				field := value.Type().Field(i)
				if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
					path = "." + name + path
				}
				return path, err
			}
		}
	}
	return path, err
}

// leftOut is the gap that objects of a resource leave which a snapshot cannot have;
// unread has the reason by what they are called.
func leftOut(resource string, unread map[string]error) Gap {
	names := slices.Sorted(maps.Keys(unread))
	err := unread[names[0]]
	if errors.Is(err, errDroppedSelector) {
		return unreadRules(names)
	}
	gap := Gap{Resource: resource, LeftOut: true, Reason: err.Error()}
	if object := (*leftOutError)(nil); errors.As(err, &object) && len(names) > 1 {
		gap.Reason = fmt.Sprintf("left out %s %s and %d more: %v", object.kind, object.name, len(names)-1, object.err)
	}
	return gap
}
