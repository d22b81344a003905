// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// The functions in this file find where JSON values begin and end without
// decoding them, so that a large List can be cut into items that several
// goroutines then decode. They check no more of the syntax than that takes:
// the decoder does the rest.

// errCutOff is the end of the text in the middle of a value.
var errCutOff = errors.New("the text ends in the middle of a JSON value: it seems to be cut off")

// span is a part of a text, from the first byte to the one after the last.
type span struct{ from, to int }

// outline is the top level of a JSON object.
type outline struct {
	apiVersion, kind string
	// items has the elements of the field "items", if it is an array.
	items []span
	// isList is true if the object is a List: its kind says so and it has items.
	isList bool
	// end is the index after the closing brace.
	end int
}

// outlineObject finds the outline of the JSON object that begins at from.
func outlineObject(data []byte, from int) (outline, error) {
	var o outline
	hasItems := false
	var seen [][]byte
	end, err := eachField(data, from, func(key []byte, at int) (int, bool, error) {
		if len(seen) < maxOutlined && containsKey(seen, key) {
			return at, false, &fieldError{string(key), errDuplicateKey}
		}
		seen = append(seen, key)
		if string(key) == "items" && at < len(data) && data[at] == '[' {
			items, end, err := arrayItems(data, at)
			o.items, hasItems = items, true
			return end, true, err
		}
		end, err := skipValue(data, at)
		if err == nil {
			o.note(key, data[at:end])
		}
		return end, true, err
	})
	o.end = end
	o.isList = hasItems && (strings.HasSuffix(o.kind, "List") || o.kind == KindSnapshot)
	return o, err
}

// maxOutlined is how many fields of an object are compared when it is outlined:
// more than a List has. Other objects are checked by [duplicateKey].
const maxOutlined = 16

func containsKey(keys [][]byte, key []byte) bool {
	for _, other := range keys {
		if bytes.Equal(other, key) {
			return true
		}
	}
	return false
}

// peekKind finds the apiVersion and kind of the JSON object in data and looks
// no further than that takes.
func peekKind(data []byte) (apiVersion, kind string, err error) {
	var o outline
	_, err = eachField(data, 0, func(key []byte, at int) (int, bool, error) {
		end, err := skipValue(data, at)
		if err == nil {
			o.note(key, data[at:end])
		}
		return end, o.apiVersion == "" || o.kind == "", err
	})
	return o.apiVersion, o.kind, err
}

func (o *outline) note(key, value []byte) {
	if len(value) < 2 || value[0] != '"' {
		return
	}
	switch string(key) {
	case "apiVersion":
		o.apiVersion = string(value[1 : len(value)-1])
	case "kind":
		o.kind = string(value[1 : len(value)-1])
	}
}

// eachField calls visit with the key and the start of the value of each field
// of the object at from. visit returns the end of the value and whether to go
// on. eachField returns the index after the object, or after the last value
// visited.
func eachField(data []byte, from int, visit func(key []byte, at int) (end int, more bool, err error)) (int, error) {
	i := skipSpace(data, from)
	if i >= len(data) {
		return i, errCutOff
	}
	if data[i] != '{' {
		return i, unexpected(data, i, "an object")
	}
	i = skipSpace(data, i+1)
	if i < len(data) && data[i] == '}' {
		return i + 1, nil
	}
	for {
		if i >= len(data) {
			return i, errCutOff
		}
		if data[i] != '"' {
			return i, unexpected(data, i, "a field name in double quotes")
		}
		end, err := skipString(data, i)
		if err != nil {
			return end, err
		}
		key := data[i+1 : end-1]
		i = skipSpace(data, end)
		if i >= len(data) {
			return i, errCutOff
		}
		if data[i] != ':' {
			return i, unexpected(data, i, `":"`)
		}
		next, more, err := visit(key, skipSpace(data, i+1))
		if err != nil || !more {
			return next, err
		}
		i = skipSpace(data, next)
		if i >= len(data) {
			return i, errCutOff
		}
		switch data[i] {
		case '}':
			return i + 1, nil
		case ',':
			i = skipSpace(data, i+1)
		default:
			return i, unexpected(data, i, `"," or "}"`)
		}
	}
}

// maxItems is how many items a List may have: more objects than any cluster.
const maxItems = 2_000_000

// arrayItems finds the elements of the array that begins at from, and the
// index after it.
func arrayItems(data []byte, from int) (items []span, end int, err error) {
	i := skipSpace(data, from+1)
	if i < len(data) && data[i] == ']' {
		return nil, i + 1, nil
	}
	for {
		end, err := skipValue(data, i)
		if err != nil {
			return nil, end, err
		}
		if len(items) == maxItems {
			return nil, i, errTooManyItems()
		}
		items = append(items, span{i, end})
		i = skipSpace(data, end)
		if i >= len(data) {
			return nil, i, errCutOff
		}
		switch data[i] {
		case ']':
			return items, i + 1, nil
		case ',':
			i = skipSpace(data, i+1)
		default:
			return nil, i, unexpected(data, i, `"," or "]"`)
		}
	}
}

// skipValue returns the index after the JSON value at from.
func skipValue(data []byte, from int) (int, error) {
	if from >= len(data) {
		return from, errCutOff
	}
	switch data[from] {
	case '"':
		return skipString(data, from)
	case '{', '[':
	case '}', ']', ',', ':':
		return from, unexpected(data, from, "a value")
	default:
		i := from
		for i < len(data) && !isDelimiter(data[i]) {
			i++
		}
		return i, nil
	}
	depth := 0
	for i := from; i < len(data); i++ {
		switch data[i] {
		case '"':
			end, err := skipString(data, i)
			if err != nil {
				return end, err
			}
			i = end - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1, nil
			}
		}
	}
	return len(data), errCutOff
}

// skipString returns the index after the JSON string at from.
func skipString(data []byte, from int) (int, error) {
	i := from + 1
	for {
		quote := bytes.IndexByte(data[i:], '"')
		if quote < 0 {
			return len(data), errCutOff
		}
		quote += i
		backslashes := 0
		for quote-backslashes > i && data[quote-backslashes-1] == '\\' {
			backslashes++
		}
		i = quote + 1
		if backslashes%2 == 0 {
			return i, nil
		}
	}
}

func errTooManyItems() error { return fmt.Errorf("the List has more than %d items", maxItems) }

func skipSpace(data []byte, i int) int {
	for i < len(data) && isSpace(data[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func isDelimiter(c byte) bool {
	return isSpace(c) || c == ',' || c == ':' || c == ']' || c == '}' || c == '[' || c == '{' || c == '"'
}

// lineError is a character that does not belong where it is.
type lineError struct {
	line   int
	found  byte
	wanted string
}

func (e *lineError) Error() string {
	return fmt.Sprintf("line %d: expected %s, found %q", e.line, e.wanted, e.found)
}

func unexpected(data []byte, i int, wanted string) error {
	return &lineError{line: lineAt(data, i), found: data[i], wanted: wanted}
}

// lineAt returns the number of the line, from 1, that has the byte at i.
func lineAt(data []byte, i int) int {
	return 1 + bytes.Count(data[:min(max(i, 0), len(data))], []byte{'\n'})
}
