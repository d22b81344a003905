// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// walker redacts the fields of values as [kinds.Redactions] and wholeTypes say.
type walker struct {
	*redactor
	rules map[reflect.Type]map[string]string
	whole map[reflect.Type]func(*redactor, any)
	known map[reflect.Type][]step
}

// step redacts a field of a type.
type step struct {
	field int
	do    func(reflect.Value)
}

func newWalker() *walker {
	w := &walker{newRedactor(), map[reflect.Type]map[string]string{}, wholeTypes(), map[reflect.Type][]step{}}
	for _, rule := range kinds.Redactions() {
		w.rules[rule.Of] = map[string]string{}
		for line := range strings.Lines(rule.Fields) {
			name, verb, _ := strings.Cut(strings.TrimSpace(line), " ")
			if name != "" {
				w.rules[rule.Of][name] = strings.TrimSpace(verb)
			}
		}
	}
	return w
}

// walk redacts a value and the values in it, in place.
func (w *walker) walk(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // the others have no fields
	case reflect.Pointer:
		if !v.IsNil() {
			w.walk(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			w.walk(v.Index(i))
		}
	case reflect.Struct:
		if whole := w.whole[v.Type()]; whole != nil {
			whole(w.redactor, v.Addr().Interface())
		}
		for _, s := range w.steps(v.Type()) {
			s.do(v.Field(s.field))
		}
	}
}

// steps lists the fields of a struct that have a rule, or in which there are such fields.
func (w *walker) steps(of reflect.Type) []step {
	steps, known := w.known[of]
	if known {
		return steps
	}
	// A type in itself has nothing that is not found by then.
	w.known[of] = nil
	rules := maps.Clone(w.rules[of])
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			name = field.Name
		}
		switch verb, ruled := rules[name]; {
		case ruled:
			delete(rules, name)
			steps = append(steps, step{i, w.verb(verb)})
		case field.IsExported() && w.concerns(field.Type):
			steps = append(steps, step{i, w.walk})
		}
	}
	if len(rules) > 0 {
		panic("there are no fields of " + of.String() + " for " + strings.Join(slices.Sorted(maps.Keys(rules)), ", "))
	}
	w.known[of] = steps
	return steps
}

// concerns reports whether values of a type have such fields.
func (w *walker) concerns(of reflect.Type) bool {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	return of.Kind() == reflect.Struct && (w.whole[of] != nil || len(w.steps(of)) > 0)
}

// verb returns the function for the verb of a rule.
func (w *walker) verb(rule string) func(reflect.Value) {
	verb, table, _ := strings.Cut(rule, " ")
	r := w.redactor
	switch verb {
	case "drop":
		return reflect.Value.SetZero
	case "empty":
		return func(v reflect.Value) {
			if !v.IsNil() {
				v.Elem().SetZero()
			}
		}
	case "meta":
		meta := typed(func(m *metav1.ObjectMeta) { r.meta(m, table) })
		return func(v reflect.Value) { meta(v.Addr()) }
	case "labels":
		return typed(r.labels)
	case "pluginConfigs":
		return typed(r.pluginConfigs)
	case "quantities":
		return typed(r.quantities)
	case "raw":
		return typed(r.raw)
	case "name":
		return eachText(func(s string) string { return r.swap(table, s) })
	case "label":
		return eachText(func(s string) string { return r.labelValue(table, s) })
	}
	return eachText(map[string]func(string) string{
		"keep":          func(s string) string { r.keep(s); return s },
		"text":          r.text,
		"reason":        r.reason,
		"value":         r.value,
		"nodeTaint":     r.taintValue,
		"qualified":     r.qualified,
		"expression":    r.expression,
		"device":        r.device,
		"component":     r.componentName,
		"scheduler":     r.scheduler,
		"priorityClass": r.priorityClass,
		"claimOfPod":    r.claimOfPod,
		"deviceInPool":  r.deviceInPool,
		"eventMessage":  r.eventMessage,
	}[verb])
}

// typed returns a function that redacts values of one type.
func typed[T any](redact func(T)) func(reflect.Value) {
	return func(v reflect.Value) {
		if value, ok := v.Interface().(T); ok {
			redact(value)
		}
	}
}

// eachText returns a function that redacts a text, a list of texts or a pointer to one.
func eachText(redact func(string) string) func(reflect.Value) {
	var all func(v reflect.Value)
	all = func(v reflect.Value) {
		switch v.Kind() { //nolint:exhaustive // the others have no texts
		case reflect.Pointer:
			if !v.IsNil() {
				all(v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				all(v.Index(i))
			}
		case reflect.String:
			v.SetString(redact(v.String()))
		}
	}
	return all
}
