// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// itemKind returns what the items of a typed list are if they do not say.
func itemKind(listVersion, listKind string) (apiVersion, kind string) {
	if listKind == snapshot.KindSnapshot || listKind == "List" {
		return "", ""
	}
	return listVersion, strings.TrimSuffix(listKind, "List")
}

// withoutItems copies a JSON object without its field "items".
func withoutItems(data []byte) []byte {
	out := []byte{'{'}
	_, _ = kinds.EachField(data, 0, func(key []byte, at int) (int, bool, error) {
		end, err := kinds.SkipValue(data, at)
		if err != nil || string(key) == "items" {
			return end, true, err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), key...), `":`...)
		out = append(out, data[at:end]...)
		return end, true, nil
	})
	return append(out, '}')
}

// describeObject names an object that may not be decodable.
func describeObject(data []byte, kind string) string {
	namespace, name := peekName(data)
	switch {
	case name == "":
		return kind
	case namespace == "":
		return kind + "/" + name
	default:
		return kind + "/" + namespace + "/" + name
	}
}

// peekName finds the name of an object that may not be decodable.
func peekName(data []byte) (namespace, name string) {
	_, _ = kinds.EachField(data, 0, func(key []byte, at int) (int, bool, error) {
		end, err := kinds.SkipValue(data, at)
		if err != nil || string(key) != "metadata" {
			return end, true, err
		}
		_, err = kinds.EachField(data[at:end], 0, func(key []byte, from int) (int, bool, error) {
			to, err := kinds.SkipValue(data[at:end], from)
			if value := data[at:end][from:to]; err == nil && len(value) > 1 && value[0] == '"' {
				switch string(key) {
				case "namespace":
					namespace = string(value[1 : len(value)-1])
				case "name":
					name = string(value[1 : len(value)-1])
				}
			}
			return to, true, err
		})
		return end, false, err
	})
	return namespace, name
}

// outline is the top level of a JSON object.
type outline struct {
	apiVersion, kind string
	// items has the elements of the field "items", if it is an array.
	items []kinds.Span
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
	end, err := kinds.EachField(data, from, func(key []byte, at int) (int, bool, error) {
		if len(seen) < maxOutlined && containsKey(seen, key) {
			return at, false, kinds.AtField(string(key), kinds.ErrDuplicateKey)
		}
		seen = append(seen, key)
		if string(key) == "items" && at < len(data) && data[at] == '[' {
			items, end, err := kinds.Items(data, at)
			o.items, hasItems = items, true
			return end, true, err
		}
		end, err := kinds.SkipValue(data, at)
		if err == nil {
			o.note(key, data[at:end])
		}
		return end, true, err
	})
	o.end = end
	o.isList = hasItems && (strings.HasSuffix(o.kind, "List") || o.kind == snapshot.KindSnapshot)
	return o, err
}

// maxOutlined limits how many fields of an object are compared when it is outlined: more
// than a List has. The decoder checks other objects.
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
	_, err = kinds.EachField(data, 0, func(key []byte, at int) (int, bool, error) {
		end, err := kinds.SkipValue(data, at)
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
