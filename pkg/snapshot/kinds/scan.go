// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"bytes"
	"errors"
	"fmt"
)

// Most functions in this file find where JSON values begin and end without
// decoding them, so that a large List can be cut into items that several
// goroutines then decode. They check no more of the syntax than that takes:
// the decoder does the rest.

// ErrCutOff is the end of the text in the middle of a value.
var ErrCutOff = errors.New("the text ends in the middle of a JSON value: it seems to be cut off")

// Span is a part of a text, from the first byte to the one after the last.
type Span struct{ From, To int }

// EachField calls visit with the key and the start of the value of each field
// of the object at from. visit returns the end of the value and whether to go
// on. eachField returns the index after the object, or after the last value
// visited.
func EachField(data []byte, from int, visit func(key []byte, at int) (end int, more bool, err error)) (int, error) {
	i := SkipSpace(data, from)
	if i >= len(data) {
		return i, ErrCutOff
	}
	if data[i] != '{' {
		return i, unexpected(data, i, "an object")
	}
	i = SkipSpace(data, i+1)
	if i < len(data) && data[i] == '}' {
		return i + 1, nil
	}
	for {
		if i >= len(data) {
			return i, ErrCutOff
		}
		if data[i] != '"' {
			return i, unexpected(data, i, "a field name in double quotes")
		}
		end, err := SkipString(data, i)
		if err != nil {
			return end, err
		}
		key := data[i+1 : end-1]
		i = SkipSpace(data, end)
		if i >= len(data) {
			return i, ErrCutOff
		}
		if data[i] != ':' {
			return i, unexpected(data, i, `":"`)
		}
		next, more, err := visit(key, SkipSpace(data, i+1))
		if err != nil || !more {
			return next, err
		}
		i = SkipSpace(data, next)
		if i >= len(data) {
			return i, ErrCutOff
		}
		switch data[i] {
		case '}':
			return i + 1, nil
		case ',':
			i = SkipSpace(data, i+1)
		default:
			return i, unexpected(data, i, `"," or "}"`)
		}
	}
}

// MaxItems is how many items a List may have: more objects than any cluster.
const MaxItems = 2_000_000

// Items finds the elements of the array that begins at from, and the
// index after it.
func Items(data []byte, from int) (items []Span, end int, err error) {
	i := SkipSpace(data, from+1)
	if i < len(data) && data[i] == ']' {
		return nil, i + 1, nil
	}
	for {
		end, err := SkipValue(data, i)
		if err != nil {
			return nil, end, err
		}
		if len(items) == MaxItems {
			return nil, i, ErrTooManyItems()
		}
		items = append(items, Span{i, end})
		i = SkipSpace(data, end)
		if i >= len(data) {
			return nil, i, ErrCutOff
		}
		switch data[i] {
		case ']':
			return items, i + 1, nil
		case ',':
			i = SkipSpace(data, i+1)
		default:
			return nil, i, unexpected(data, i, `"," or "]"`)
		}
	}
}

// SkipValue returns the index after the JSON value at from.
func SkipValue(data []byte, from int) (int, error) {
	if from >= len(data) {
		return from, ErrCutOff
	}
	switch data[from] {
	case '"':
		return SkipString(data, from)
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
			end, err := SkipString(data, i)
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
	return len(data), ErrCutOff
}

// SkipString returns the index after the JSON string at from.
func SkipString(data []byte, from int) (int, error) {
	i := from + 1
	for {
		quote := bytes.IndexByte(data[i:], '"')
		if quote < 0 {
			return len(data), ErrCutOff
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

// ErrTooManyItems returns the error for a List with more than [MaxItems].
func ErrTooManyItems() error { return fmt.Errorf("the List has more than %d items", MaxItems) }

// SkipSpace returns the index of the next byte that is no white space.
func SkipSpace(data []byte, i int) int {
	for i < len(data) && IsSpace(data[i]) {
		i++
	}
	return i
}

// IsSpace reports whether JSON allows a byte between values.
func IsSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func isDelimiter(c byte) bool {
	return IsSpace(c) || c == ',' || c == ':' || c == ']' || c == '}' || c == '[' || c == '{' || c == '"'
}

// PositionError is a character that does not belong where it is.
type PositionError struct {
	Line   int
	Found  byte
	Wanted string
}

func (e *PositionError) Error() string {
	return fmt.Sprintf("line %d: expected %s, found %q", e.Line, e.Wanted, e.Found)
}

func unexpected(data []byte, i int, wanted string) error {
	return &PositionError{Line: LineAt(data, i), Found: data[i], Wanted: wanted}
}

// LineAt returns the number of the line, from 1, that has the byte at i.
func LineAt(data []byte, i int) int {
	return 1 + bytes.Count(data[:min(max(i, 0), len(data))], []byte{'\n'})
}

// CheckSize fails for the text of an object that would take far more memory
// than an object of that size in a cluster.
func CheckSize(data []byte) error {
	if len(data) > MaxDocument {
		return TooLarge(len(data))
	}
	// Each value needs two characters.
	if len(data) <= 2*maxValues {
		return nil
	}
	if values := countValues(data); values > maxValues {
		return fmt.Errorf("expected at most %d values in an object, found %d", maxValues, values)
	}
	return nil
}

// countValues counts the values in a JSON text, and the empty lists and objects
// twice.
func countValues(data []byte) int {
	count := 1
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			end, err := SkipString(data, i)
			if err != nil {
				return count
			}
			i = end - 1
		case ',', '[', '{':
			count++
		}
	}
	return count
}

// maxValues limits how many values one object may have. That much does not fit into the 1.5
// MiB that etcd stores of an object.
const maxValues = 100_000

// MaxDocument is the size of the largest object, and of the largest YAML
// document that is parsed in one go. The API server stores no object of more
// than 1.5 MiB, in a form that is shorter than text.
const MaxDocument = 8 << 20

// TooLarge returns the error for a document, or an object in a List, of so many bytes.
func TooLarge(size int) error {
	const hint = "an object has at most %d MiB of text, found %.1f MiB; a List in YAML may have more as kubectl get -o yaml writes it, and any List in JSON"
	return fmt.Errorf(hint, MaxDocument>>20, float64(size)/(1<<20))
}
