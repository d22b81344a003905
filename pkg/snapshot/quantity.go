// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case 'e', 'E':
			if c := data[i-1]; (c >= '0' && c <= '9' || c == '.') && isLongNumber(data, i) {
				return true
			}
		case 'u':
			// Letters, digits and signs of numbers.
			if data[i-1] == '\\' && i+4 < len(data) && data[i+1] == '0' && data[i+2] == '0' && strings.IndexByte("2346", data[i+3]) >= 0 && !isMarkup(data[i+3:i+5]) {
				return true
			}
		}
	}
	return false
}

// isLongNumber reports whether the letter at i is that of a long exponent, with
// nothing else around it than a number: hashes have such letters, too.
func isLongNumber(data []byte, i int) bool {
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

// bounded refuses slices of a cluster that have a quantity with a long exponent:
// large ones can be decoded, but not worked with. The API server itself cannot
// decode small ones.
func bounded(convert func(object any) (*resourceapi.ResourceSlice, error)) func(object any) (*resourceapi.ResourceSlice, error) {
	return func(object any) (*resourceapi.ResourceSlice, error) {
		slice, err := convert(object)
		if err != nil {
			return nil, err
		}
		if err := checkPublished(&slice.Spec); err != nil {
			return nil, fmt.Errorf("read ResourceSlice %s: %w", slice.Name, err)
		}
		return slice, nil
	}
}

// checkPublished fails for a slice with such a capacity or counter.
func checkPublished(spec *resourceapi.ResourceSliceSpec) error {
	for i := range spec.Devices {
		device := &spec.Devices[i]
		for name, capacity := range device.Capacity {
			if err := checkDecoded(&capacity.Value); err != nil {
				return &fieldError{fmt.Sprintf("spec.devices[%d].capacity[%q].value", i, name), err}
			}
		}
		for k := range device.ConsumesCounters {
			if err := checkCounters(device.ConsumesCounters[k].Counters, "spec.devices[%d].consumesCounters[%d].counters", i, k); err != nil {
				return err
			}
		}
	}
	for i := range spec.SharedCounters {
		if err := checkCounters(spec.SharedCounters[i].Counters, "spec.sharedCounters[%d].counters", i); err != nil {
			return err
		}
	}
	return nil
}

func checkCounters(counters map[string]resourceapi.Counter, path string, indexes ...any) error {
	for name, counter := range counters {
		if err := checkDecoded(&counter.Value); err != nil {
			return &fieldError{fmt.Sprintf(path, indexes...) + fmt.Sprintf("[%q].value", name), err}
		}
	}
	return nil
}

// checkDecoded fails for a quantity that was decoded and has a long exponent.
func checkDecoded(quantity *resource.Quantity) error { return checkExponent(quantity.String()) }
