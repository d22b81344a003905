// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v2"
)

// MarshalYAML writes an object as YAML, whatever its strings have. It exists
// beside sigs.k8s.io/yaml since that one reads the JSON of an object as YAML,
// which fails for characters and for long field names that JSON and the API
// server allow. What a terminal would obey or not show, such as a right-to-left
// override, is written as an escape: who reads it gets the same value.
func MarshalYAML(object any) ([]byte, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode as JSON: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	if value, err = withNumbers(value); err != nil {
		return nil, err
	}
	// JSON has the two separators of lines and paragraphs as escapes.
	if !bytes.ContainsFunc(text, isHidden) && !bytes.Contains(text, []byte(`\u202`)) {
		return yaml.Marshal(value)
	}
	return marshalHidden(value, text)
}

// isHidden reports whether YAML counts an invisible character as printable: the others are
// escaped by the encoder.
func isHidden(r rune) bool { return r >= 0xa0 && r <= 0xffff && !unicode.IsPrint(r) }

// marshalHidden puts a mark in place of each hidden character, with a control character,
// for which the encoder quotes the string, and a word that occurs nowhere in the text.
// The escape then takes the place of the mark.
func marshalHidden(value any, text []byte) ([]byte, error) {
	word := "hidden:"
	for bytes.Contains(text, []byte(word)) {
		word = "x" + word
	}
	written, err := yaml.Marshal(withMarks(value, "\x01"+word))
	if err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(written, []byte(`\x01`+word), []byte(`\u`)), nil
}

// withMarks returns a value with marks in its strings and in its keys.
func withMarks(value any, mark string) any {
	switch value := value.(type) {
	case string:
		return marked(value, mark)
	case []any:
		for i := range value {
			value[i] = withMarks(value[i], mark)
		}
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, of := range value {
			object[marked(key, mark)] = withMarks(of, mark)
		}
		return object
	}
	return value
}

// marked returns a text with a mark and four digits for each hidden character.
func marked(text, mark string) string {
	var b strings.Builder
	for _, r := range text {
		if isHidden(r) {
			fmt.Fprintf(&b, "%s%04X", mark, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// withNumbers replaces, in place, numbers as JSON has them by those that Go
// has: integers as long as they fit.
func withNumbers(value any) (_ any, err error) {
	switch value := value.(type) {
	case json.Number:
		return toNumber(value)
	case []any:
		for i := range value {
			if value[i], err = withNumbers(value[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key := range value {
			if value[key], err = withNumbers(value[key]); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

func toNumber(number json.Number) (any, error) {
	if integer, err := number.Int64(); err == nil {
		return integer, nil
	}
	float, err := number.Float64()
	if err != nil {
		return nil, fmt.Errorf("the number %s is too large", number)
	}
	return float, nil
}
