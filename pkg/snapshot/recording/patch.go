// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
)

// A patch is a JSON Merge Patch (RFC 7386). The libraries for it read numbers as floating-point
// numbers, which would change large integers of attributes and of opaque parameters.

// parse decodes a JSON object with its numbers as they are written.
func parse(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("expected one JSON object, found more")
	}
	return object, nil
}

// difference returns the patch that makes an object of another one. It is not ok if no patch does:
// a patch cannot set a field to null.
func difference(was, is map[string]any) (patch map[string]any, ok bool) {
	patch = map[string]any{}
	for key := range was {
		if _, kept := is[key]; !kept {
			patch[key] = nil
		}
	}
	for key, value := range is {
		before, had := was[key]
		if had && reflect.DeepEqual(before, value) {
			continue
		}
		inner, isObject := value.(map[string]any)
		innerBefore, wasObject := before.(map[string]any)
		switch {
		case value == nil, isObject && !wasObject && hasNull(inner):
			return nil, false
		case isObject && wasObject:
			below, ok := difference(innerBefore, inner)
			if !ok {
				return nil, false
			}
			patch[key] = below
		default:
			patch[key] = value
		}
	}
	return patch, true
}

// hasNull reports whether a field of an object is null. Items of lists do not count: lists are
// replaced as they are.
func hasNull(object map[string]any) bool {
	for _, value := range object {
		if inner, ok := value.(map[string]any); value == nil || ok && hasNull(inner) {
			return true
		}
	}
	return false
}

// apply changes an object by a patch. Values of the patch become part of it.
func apply(object, patch map[string]any) {
	for key, value := range patch {
		inner, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(object, key)
		case isObject:
			below, ok := object[key].(map[string]any)
			if !ok {
				below = map[string]any{}
				object[key] = below
			}
			apply(below, inner)
		default:
			object[key] = value
		}
	}
}
