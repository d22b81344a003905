// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// compat has what earlier releases wrote, a directory for each. Nobody ever
// changes a file there; see CONTRIBUTING.md.
const (
	compat      = "testdata/compat/v1alpha1"
	schemasFile = "schemas.json"
)

func releases(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(compat, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) == 0 {
		t.Fatalf("there is nothing in %s", compat)
	}
	return dirs
}

// TestOldSnapshots loads the snapshots of earlier releases, and wants the answers
// that they gave.
func TestOldSnapshots(t *testing.T) {
	for _, dir := range releases(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			snap, err := files.Load(t.Context(), []string{filepath.Join(dir, "cluster.yaml.gz")}, files.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(snap.Skipped) > 0 || len(snap.Gaps) > 0 {
				t.Errorf("skipped %v, gaps %v", snap.Skipped, snap.Gaps)
			}
			want := readJSON[map[string]map[string]string](t, filepath.Join(dir, "verdicts.json"))
			if diff := gocmp.Diff(want, verdicts(t, snap)); diff != "" {
				t.Errorf("the answers about the same cluster are others (-then +now):\n%s", diff)
			}
		})
	}
}

// verdicts returns the answers about the pods of a cluster that use devices.
func verdicts(t *testing.T, snap *snapshot.Snapshot) map[string]map[string]string {
	t.Helper()
	answers := map[string]map[string]string{}
	for _, pod := range snap.Pods {
		e, err := explain.Explain(t.Context(), snap, explain.Options{Object: api.RefTo(api.KindPod, pod)})
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Claims) > 0 {
			answers[pod.Namespace+"/"+pod.Name] = map[string]string{"verdict": string(e.Verdict), "stage": string(e.Stage), "code": explain.Word(e)}
		}
	}
	return answers
}

// TestOldOutputs reads the objects that earlier releases printed into today's
// types, and writes them again. Nothing may get lost, while there can be more.
func TestOldOutputs(t *testing.T) {
	for _, dir := range releases(t) {
		types := printed()
		paths, err := filepath.Glob(filepath.Join(dir, "output", "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, path := range paths {
			name := strings.TrimSuffix(filepath.Base(path), ".json")
			found[name] = true
			t.Run(filepath.Base(dir)+"/"+name, func(t *testing.T) {
				of := types[name]
				if of == nil {
					t.Fatalf("there is no kind %s any more", name)
				}
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				object := reflect.New(of).Interface()
				decoder := json.NewDecoder(bytes.NewReader(text))
				decoder.DisallowUnknownFields()
				if err := decoder.Decode(object); err != nil {
					t.Fatal(err)
				}
				var then, now any
				if err := json.Unmarshal(text, &then); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(encode(t, object), &now); err != nil {
					t.Fatal(err)
				}
				for _, lost := range lostValues(name, then, now) {
					t.Error(lost)
				}
			})
		}
		for name := range readSchemas(t, dir) {
			if !found[name] {
				t.Errorf("%s has the schema of %s, and no output", dir, name)
			}
		}
	}
}

// lostValues returns the values that one JSON value has and another has not.
func lostValues(at string, then, now any) []string {
	switch then := then.(type) {
	case map[string]any:
		fields, _ := now.(map[string]any)
		var lost []string
		for _, name := range slices.Sorted(maps.Keys(then)) {
			if value, ok := fields[name]; ok {
				lost = append(lost, lostValues(at+"."+name, then[name], value)...)
			} else {
				lost = append(lost, at+"."+name+" is gone")
			}
		}
		return lost
	case []any:
		items, _ := now.([]any)
		if len(items) != len(then) {
			return []string{fmt.Sprintf("%s had %d items, and has %d", at, len(then), len(items))}
		}
		var lost []string
		for i := range then {
			lost = append(lost, lostValues(fmt.Sprintf("%s[%d]", at, i), then[i], items[i])...)
		}
		return lost
	default:
		if then != now {
			return []string{fmt.Sprintf("%s was %v, and is %v", at, then, now)}
		}
		return nil
	}
}

// TestOldSchemas compares the schemas of earlier releases with today's: each field still
// exists, with its type, and as certainly; each enum value still exists.
func TestOldSchemas(t *testing.T) {
	for _, dir := range releases(t) {
		for name, old := range readSchemas(t, dir) {
			t.Run(filepath.Base(dir)+"/"+name, func(t *testing.T) {
				if printed()[name] == nil {
					t.Fatalf("there is no kind %s any more", name)
				}
				c := &schemaChanges{then: old, now: schemaOf(t, name, true), seen: map[string]bool{}}
				c.compare(name, c.then, c.now)
				for _, lost := range c.lost {
					t.Error(lost)
				}
			})
		}
	}
}

func readSchemas(t *testing.T, dir string) map[string]*jsonSchema {
	t.Helper()
	return readJSON[map[string]*jsonSchema](t, filepath.Join(dir, schemasFile))
}

func readJSON[T any](t *testing.T, path string) T {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var value T
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return value
}

// schemaChanges finds what an older schema promises and a newer one does not.
type schemaChanges struct {
	then, now *jsonSchema
	// seen are the definitions that were compared: a type can have itself in it.
	seen map[string]bool
	lost []string
}

func (c *schemaChanges) compare(at string, then, now *jsonSchema) {
	if then.Ref != "" {
		if now.Ref == "" {
			c.lose(at, "is no object, or no word of a list, any more")
			return
		}
		if pair := then.Ref + " " + now.Ref; !c.seen[pair] {
			c.seen[pair] = true
			c.compare(at, c.then.definition(then.Ref), c.now.definition(now.Ref))
		}
	}
	if then.Type != now.Type || then.Format != now.Format || then.Const != now.Const {
		c.lose(at, "was %s, is %s", then.what(), now.what())
	}
	for _, value := range then.Enum {
		if len(now.Enum) > 0 && !slices.Contains(now.Enum, value) {
			c.lose(at, "cannot be %s any more", value)
		}
	}
	for _, name := range then.Required {
		if !slices.Contains(now.Required, name) {
			c.lose(at+"."+name, "was always there")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(then.Properties)) {
		if now.Properties[name] == nil {
			c.lose(at+"."+name, "is gone")
			continue
		}
		c.compare(at+"."+name, then.Properties[name], now.Properties[name])
	}
	if then.Items != nil && now.Items != nil {
		c.compare(at+"[]", then.Items, now.Items)
	}
	if then.Additional != nil && now.Additional != nil {
		c.compare(at+".*", then.Additional, now.Additional)
	}
}

func (c *schemaChanges) lose(at, format string, args ...any) {
	c.lost = append(c.lost, at+" "+fmt.Sprintf(format, args...))
}

// definition returns what a reference leads to.
func (s *jsonSchema) definition(ref string) *jsonSchema {
	return s.Defs[strings.TrimPrefix(ref, "#/$defs/")]
}

// what says in a word or two what matches.
func (s *jsonSchema) what() string {
	if s.Const != "" {
		return strconv.Quote(s.Const)
	}
	return strings.TrimSpace(cmp.Or(s.Type, "anything") + " " + s.Format)
}
