// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// remedyEdits draws the fields that a remedy changes, one a line. What a
// controller makes from them is left out, unless that is all that is known, and so
// is what the sentence above says: that an object is deleted, or a claim released.
// The diff of files says it all.
func (p *Page) remedyEdits(indent int, r *api.Remedy) {
	if r.Diff != "" {
		p.verbatim(indent, r.Diff)
		return
	}
	for i := range r.Edits {
		if e := &r.Edits[i]; !e.Generated && e.Path != "" && !strings.HasPrefix(e.Path, "/status") {
			p.Text(indent, Plain, editLine(e))
		}
	}
	if r.Owner == nil {
		return
	}
	p.Text(indent, Plain, fmt.Sprintf("Change the pod template of %s %s (%s), which creates the pod:", r.Owner.Kind, r.Owner.Name, r.Owner.APIVersion))
	for i := range r.Edits {
		if e := &r.Edits[i]; e.Generated {
			p.Text(indent, Plain, editLine(e))
		}
	}
}

// editLine says what an edit does: "ResourceClaim gpus: …count: 8 -> 4".
func editLine(e *api.Edit) string {
	kind, name, _ := strings.Cut(e.Object, "/")
	if _, after, namespaced := strings.Cut(name, "/"); namespaced {
		name = after
	}
	line := fmt.Sprintf("%s %s: %s: ", kind, name, fieldOf(e.Path))
	value, from := plainValue(e.Value), plainValue(e.From)
	switch {
	case e.Op == "remove" && whatif.KindOf(e) == whatif.EditNodeTaint:
		return line + "removed: " + from
	case e.Op == "remove":
		return line + "removed"
	case from == "":
		return line + "added: " + value
	default:
		return line + from + " -> " + value
	}
}

// fieldOf is the path of a field as in JSONPath, from where it tells claims and
// pods apart: "…requests[0].exactly.count".
func fieldOf(pointer string) string {
	words := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	start := 0
	for _, above := range []string{"devices", "template"} {
		if i := slices.Index(words, above); i >= 0 {
			start = i + 1
			break
		}
	}
	if start > 0 && start < len(words)-1 && words[start] == "spec" {
		start++
	}
	var b strings.Builder
	if start > 0 {
		b.WriteString("…")
	}
	for i, word := range words[start:] {
		word = strings.NewReplacer("~1", "/", "~0", "~").Replace(word)
		switch {
		case word == "-":
		case word != "" && strings.Trim(word, "0123456789") == "":
			fmt.Fprintf(&b, "[%s]", word)
		case strings.ContainsAny(word, "./"):
			fmt.Fprintf(&b, "['%s']", word)
		default:
			if i > 0 {
				b.WriteString(".")
			}
			b.WriteString(word)
		}
	}
	return b.String()
}

// plainValue writes a value of JSON: a text without quotes.
func plainValue(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// remedyPods says who else uses what the remedies change, and what becomes of
// them, each sentence once.
func remedyPods(e *api.Explanation) []string {
	var notes []string
	for i := range e.Remedies {
		for _, note := range podNotes(e.Target, &e.Remedies[i]) {
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	return notes
}

func podNotes(target api.Target, r *api.Remedy) []string {
	var running, waiting, replaced, repaired []string
	for i := range r.UsedBy {
		pod := &r.UsedBy[i]
		switch {
		case target.Kind == api.KindPod && target.Name == pod.Name && target.Namespace == pod.Namespace:
		case pod.Changed && pod.Node != "":
			replaced = append(replaced, pod.Name)
		case pod.Changed:
			repaired = append(repaired, pod.Name)
		case pod.Node != "":
			running = append(running, pod.Name)
		default:
			waiting = append(waiting, pod.Name)
		}
	}
	used := "pod template"
	if slices.ContainsFunc(r.Edits, func(e api.Edit) bool { return strings.HasPrefix(e.Object, api.KindTemplate+"/") }) {
		used = "template"
	}
	var notes []string
	for _, group := range []struct {
		names []string
		state string
	}{{running, "running"}, {waiting, "waiting"}} {
		if len(group.names) > 0 {
			it := "it is"
			if len(group.names) > 1 {
				it = "they are"
			}
			notes = append(notes, fmt.Sprintf("The %s is also used by %s (%s; not affected until %s recreated).", used, podNames(group.names), group.state, it))
		}
	}
	if len(repaired) > 0 {
		notes = append(notes, fmt.Sprintf("The commands bring the change to %s as well.", podNames(repaired)))
	}
	if len(replaced) > 0 {
		notes = append(notes, fmt.Sprintf("The change also replaces %s (running).", podNames(replaced)))
	}
	return notes
}

// podNames names the first of some pods, and counts the others.
func podNames(names []string) string {
	const most = 4
	if len(names) == 1 {
		return "pod " + names[0]
	}
	if len(names) <= most {
		return "pods " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("pods %s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
