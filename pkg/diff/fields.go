// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

const (
	// mostFields limits the fields of an object.
	mostFields = 20
	// longestValue limits the bytes of a value of a field: a longer value is left out.
	longestValue = 60
)

// fieldsOf returns the fields in which two objects differ.
func fieldsOf(was, is *relevant) []api.ChangedField {
	var list []api.ChangedField
	walk("", whatif.PlainJSON(was), whatif.PlainJSON(is), func(f api.ChangedField) { list = append(list, f) })
	return list
}

// walk calls add for each field below a path that differs.
func walk(path string, was, is any, add func(api.ChangedField)) {
	if reflect.DeepEqual(was, is) {
		return
	}
	one, isMap := was.(map[string]any)
	other, both := is.(map[string]any)
	if isMap && both {
		walkItems(path, ".", one, other, add)
		return
	}
	one, isMap = named(was)
	other, both = named(is)
	if isMap && both {
		walkItems(path, "", one, other, add)
		return
	}
	add(api.ChangedField{Path: path, From: short(was), To: short(is)})
}

func walkItems(path, dot string, was, is map[string]any, add func(api.ChangedField)) {
	if path == "" {
		dot = ""
	}
	keys := maps.Clone(was)
	maps.Copy(keys, is)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		walk(path+dot+key, was[key], is[key], add)
	}
}

// named returns the items of a list by their names, types or keys or, where they have none, by their
// indices.
func named(value any) (map[string]any, bool) {
	list, ok := value.([]any)
	if !ok {
		return nil, false
	}
	items := map[string]any{}
	for i, item := range list {
		key := fmt.Sprintf("[%d]", i)
		if fields, ok := item.(map[string]any); ok {
			for _, name := range []string{"name", "type", "key"} {
				if text, ok := fields[name].(string); ok {
					key = "[" + text + "]"
					break
				}
			}
		}
		if _, twice := items[key]; twice {
			return nil, false
		}
		items[key] = item
	}
	return items, true
}

// short returns a value as JSON, or what kind of value it is if that is long.
func short(value any) string {
	if value == nil {
		return ""
	}
	text, err := json.Marshal(value)
	switch {
	case err != nil:
		return "?"
	case len(text) <= longestValue:
		return string(text)
	}
	switch v := value.(type) {
	case []any:
		return fmt.Sprintf("[%d items]", len(v))
	case map[string]any:
		return fmt.Sprintf("{%d fields}", len(v))
	default:
		return fmt.Sprintf("(%d bytes)", len(text))
	}
}
