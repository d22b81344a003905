// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// object is an object of the API that differs. was or is is nil if it came or went.
type object struct {
	ref     api.ObjectRef
	was, is *relevant
}

func (o *object) op() api.ChangeOp {
	switch {
	case o.was == nil:
		return api.Added
	case o.is == nil:
		return api.Removed
	default:
		return api.Changed
	}
}

// change is the smallest part of a difference that is undone by itself: objects that change
// together, such as the slices of a pool, or a pod and its claims.
type change struct {
	// unit names the changes that are undone together first, such as all pools of a driver that
	// was upgraded; rank orders them, the most likely reason first.
	unit string
	rank int
	// settings is set for the version and the feature gates.
	settings bool
	// objects differ; undo are the objects to restore, which include others: the rest of a pool.
	objects []*object
	undo    []api.ObjectRef
	facts   []fact
}

// fact is a change of an object in words. Facts of several objects with the same text are one line.
type fact struct {
	noun, namespace, name string
	// devices counts the devices that changed, 0 if the fact is not about devices.
	devices int
	// text puts the objects and, where they are counted, the devices into words.
	text func(objects, devices string) string
	// one is the text for a single object, if it says more.
	one string
}

// says returns a text that puts words behind the objects.
func says(words string) func(string, string) string {
	return func(objects, _ string) string { return objects + " " + words }
}

func (f *fact) key() string { return f.noun + "\x00" + f.namespace + "\x00" + f.text("", "") }

// shownNames limits the names in a line, and the lines of changes that are undone together.
const shownNames = 3

// line is facts with the same text.
type line struct {
	facts   []fact
	objects []*object
}

// message says what changed, of how many objects, and names the first.
func (l *line) message() string {
	first, devices := &l.facts[0], 0
	var names []string
	for i := range l.facts {
		devices += l.facts[i].devices
		if !slices.Contains(names, l.facts[i].name) {
			names = append(names, l.facts[i].name)
		}
	}
	objects := first.noun + " " + strings.TrimPrefix(first.namespace+"/"+first.name, "/")
	switch {
	case first.noun == "":
		objects = ""
	case len(names) == 1 && first.one != "":
		return first.one
	case len(names) > 1:
		objects = english.Count(len(names), first.noun)
		if first.namespace != "" {
			objects += " in " + first.namespace
		}
		objects += " (" + english.Sample(names, shownNames) + ")"
	}
	return strings.TrimSpace(first.text(objects, english.Count(devices, "device")))
}

func (l *line) count() int {
	names := map[string]bool{}
	for i := range l.facts {
		names[l.facts[i].name] = true
	}
	return len(names)
}

// linesOf puts the facts of changes with the same text into lines. An object is in the line of its
// first fact.
func linesOf(changes []*change) []*line {
	var lines []*line
	byKey := map[string]*line{}
	for _, c := range changes {
		for i, f := range c.facts {
			l := byKey[f.key()]
			if l == nil {
				l = &line{}
				byKey[f.key()], lines = l, append(lines, l)
			}
			l.facts = append(l.facts, f)
			if i == 0 {
				l.objects = append(l.objects, c.objects...)
			}
		}
	}
	return lines
}

// described returns changes in words. With fields, the objects have the fields that differ.
func described(changes []*change, fields bool) []api.Change {
	lines := linesOf(changes)
	list := make([]api.Change, 0, len(lines))
	for _, l := range lines {
		out := api.Change{Message: l.message(), Count: l.count()}
		for _, o := range l.objects {
			changed := api.ChangedObject{Object: o.ref, Op: o.op()}
			if fields && o.op() == api.Changed {
				all := fieldsOf(o.was, o.is)
				changed.Fields, changed.FieldCount = all[:min(len(all), mostFields)], len(all)
			}
			out.Objects = append(out.Objects, changed)
		}
		list = append(list, out)
	}
	return list
}

// joined describes changes that are undone together as one.
func joined(changes []*change) api.Change {
	var out api.Change
	var messages []string
	for _, l := range linesOf(changes) {
		messages = append(messages, l.message())
		out.Count = max(out.Count, l.count())
		for _, o := range l.objects {
			out.Objects = append(out.Objects, api.ChangedObject{Object: o.ref, Op: o.op()})
		}
	}
	if more := len(messages) - shownNames; more > 1 {
		messages = append(messages[:shownNames], english.Count(more, "more change"))
	}
	out.Message = english.JoinAnd(messages)
	return out
}

// fromTo says how a value changed.
func fromTo(from, to string) string {
	if from == "" {
		from = "none"
	}
	if to == "" {
		to = "none"
	}
	return fmt.Sprintf("%s -> %s", from, to)
}

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
