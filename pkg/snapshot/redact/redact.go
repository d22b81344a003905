// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// Snapshot returns a snapshot that answers every question like s does, but does
// not tell whose cluster it is. s is not changed.
//
// Pseudonyms replace the names of namespaces, nodes, pools and all objects but
// device classes, of containers, volumes and a pod's claims, UIDs, images,
// addresses, values of labels and of taints of nodes, opaque parameters and
// device status data. Equal values get equal pseudonyms wherever they are, also
// in messages and CEL expressions. Names of one kind are numbered in their
// order, since the allocator takes pools, slices and nodes in that order.
// Annotations are removed.
//
// What drivers and requests are written with stays: driver, class, request,
// attribute, capacity and counter names, CEL expressions, keys of labels and
// taints, taints of devices, values of well-known labels such as the
// architecture. Values of attributes stay too, unless they hold a name or look
// like an address, a UUID or a serial number that no expression looks at.
// Names of devices stay unless one of them has another name in it.
//
// The same snapshot always gives the same result.
func Snapshot(s *snapshot.Snapshot) *snapshot.Snapshot {
	alone := func(yield func(*snapshot.Snapshot, error) bool) { yield(s, nil) }
	next, stop := iter.Pull2(Each(alone))
	defer stop()
	redacted, _, _ := next()
	return redacted
}

// Each is like [Snapshot], for the states of one cluster: what has a name in one of them has the
// same pseudonym in all, and states share what they shared. They are read three times. An error is
// the last that is yielded.
func Each(states iter.Seq2[*snapshot.Snapshot, error]) iter.Seq2[*snapshot.Snapshot, error] {
	return func(yield func(*snapshot.Snapshot, error) bool) {
		w := newWalker()
		for _, stage := range []stage{collectNames, collectTexts, rewrite} {
			w.stage = stage
			clear(w.expressions)
			var known copies
			for s, err := range states {
				if err != nil {
					yield(nil, err)
					return
				}
				redacted, fresh := known.clone(s)
				w.walk(reflect.ValueOf(fresh))
				if stage != rewrite {
					continue
				}
				redacted.Source = "redacted snapshot"
				redacted.Sort()
				if !yield(redacted, nil) {
					return
				}
			}
			w.number(stage)
		}
	}
}

// copies has the copies of the objects of a state.
type copies struct {
	last, next map[metav1.Object]metav1.Object
}

// clone copies a snapshot with everything that redaction changes, but for the objects that were
// copied for the state before. fresh has all copies that are new.
func (k *copies) clone(s *snapshot.Snapshot) (whole, fresh *snapshot.Snapshot) {
	k.last, k.next = k.next, map[metav1.Object]metav1.Object{}
	c, f := *s, &snapshot.Snapshot{}
	c.Gates = maps.Clone(s.Gates)
	c.Skipped = nil
	c.Gaps = slices.Clone(s.Gaps)
	f.Gaps = c.Gaps
	c.Nodes = cloneAll(k, s.Nodes, &f.Nodes)
	c.Namespaces = cloneAll(k, s.Namespaces, &f.Namespaces)
	c.Pods = cloneAll(k, s.Pods, &f.Pods)
	c.Events = cloneAll(k, s.Events, &f.Events)
	c.Slices = cloneAll(k, s.Slices, &f.Slices)
	c.Classes = cloneAll(k, s.Classes, &f.Classes)
	c.Claims = cloneAll(k, s.Claims, &f.Claims)
	c.Templates = cloneAll(k, s.Templates, &f.Templates)
	c.TaintRules = cloneAll(k, s.TaintRules, &f.TaintRules)
	c.PoolStatuses = cloneAll(k, s.PoolStatuses, &f.PoolStatuses)
	c.PodGroups = cloneAll(k, s.PodGroups, &f.PodGroups)
	c.CompositePodGroups = cloneAll(k, s.CompositePodGroups, &f.CompositePodGroups)
	c.Workloads = cloneAll(k, s.Workloads, &f.Workloads)
	c.ComputeDomains = cloneAll(k, s.ComputeDomains, &f.ComputeDomains)
	c.Cliques = cloneAll(k, s.Cliques, &f.Cliques)
	c.ClusterPolicies = cloneAll(k, s.ClusterPolicies, &f.ClusterPolicies)
	c.PluginConfigs = cloneAll(k, s.PluginConfigs, &f.PluginConfigs)
	c.Queued = cloneAll(k, s.Queued, &f.Queued)
	c.Outlines = cloneAll(k, s.Outlines, &f.Outlines)
	c.Quotas = cloneAll(k, s.Quotas, &f.Quotas)
	c.LimitRanges = cloneAll(k, s.LimitRanges, &f.LimitRanges)
	c.VolumeClaims = cloneAll(k, s.VolumeClaims, &f.VolumeClaims)
	c.Volumes = cloneAll(k, s.Volumes, &f.Volumes)
	c.StorageClasses = cloneAll(k, s.StorageClasses, &f.StorageClasses)
	c.Budgets = cloneAll(k, s.Budgets, &f.Budgets)
	return &c, f
}

func cloneAll[T interface {
	metav1.Object
	DeepCopy() T
}](k *copies, list []T, fresh *[]T) []T {
	var all []T
	for _, object := range list {
		c, known := k.last[object].(T)
		if !known {
			c = object.DeepCopy()
			kinds.Strip(c)
			*fresh = append(*fresh, c)
		}
		k.next[object] = c
		all = append(all, c)
	}
	return all
}

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
