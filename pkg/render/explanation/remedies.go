// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// actorWidth is the most that the column of those who can do something takes.
const actorWidth = 12

// fix is a remedy, or a next step.
type fix struct {
	actor, text string
	// where says where it fits after a remedy.
	where string
	// commands are for the shell; diff is a change of files instead.
	commands []string
	diff     string
	// remedy is nil for a next step.
	remedy *api.Remedy
}

// waits reports whether nobody has to do anything.
func (f fix) waits() bool { return f.remedy != nil && f.remedy.Actor == api.ActorNobody }

// fixesOf returns the remedies, and the next steps, each text once.
func fixesOf(e *api.Explanation) []fix {
	var fixes []fix
	for i := range e.Remedies {
		r := &e.Remedies[i]
		f := fix{actor: render.Actor(r.Actor), text: r.Change, where: r.Node, commands: r.Commands, diff: r.Diff, remedy: r}
		switch {
		case e.NodeCount == 1:
			f.where = ""
		case r.Nodes > 1:
			f.where = english.Count(r.Nodes, "node")
		}
		fixes = append(fixes, f)
	}
	steps := len(fixes)
	for _, step := range e.NextSteps {
		who := render.Actor(step.Actor)
		if i := slices.IndexFunc(fixes[steps:], func(f fix) bool { return f.text == step.Text }); i < 0 {
			fixes = append(fixes, fix{actor: who, text: step.Text, commands: step.Commands})
		} else if f := &fixes[steps+i]; !slices.Contains(strings.Split(f.actor, ", "), who) {
			f.actor += ", " + who
		}
	}
	return fixes
}

// Fix is a remedy, or a next step: who can take it, what to do, where it then fits, and the commands
// or the change of files.
type Fix struct {
	Who, Text, Where string
	Commands         []string
	Diff             string
}

// FixesOf returns the remedies of an answer, and its next steps, each text once.
func FixesOf(e *api.Explanation) []Fix {
	fixes := fixesOf(e)
	list := make([]Fix, 0, len(fixes))
	for i := range fixes {
		f := &fixes[i]
		list = append(list, Fix{Who: f.actor, Text: f.text, Where: f.where, Commands: f.commands, Diff: f.diff})
	}
	return list
}

// fixTable has the widths of the columns of fixes: who can act, what to do and, if there is
// room for it beside, where it then fits. margin is where the second begins.
type fixTable struct {
	who, margin, width int
	beside             bool
}

// newFixTable returns the columns of fixes; the first column begins at an indent.
func newFixTable(p *page, indent int, fixes []fix) fixTable {
	t := fixTable{who: max(len("admin"), render.Widest(actorWidth, english.Texts(fixes, func(f fix) string { return f.actor })...))}
	t.margin = indent + t.who + render.ColumnGap
	t.width, t.beside = p.MessageColumn(t.margin, english.Texts(fixes, func(f fix) string { return f.text }), english.Texts(fixes, func(f fix) string { return f.where }))
	return t
}

// row returns the cells of a fix behind other ones, the text in at most so many lines.
func (t *fixTable) row(f *fix, lines int, before ...render.Cell) []render.Cell {
	text := render.Cell{Text: f.text, Lines: lines}
	if t.beside {
		text.Width = t.width
		return append(before, render.Cell{Text: f.actor, Width: t.who, Mark: render.Strong}, text, render.Cell{Text: f.where, Mark: render.Faint})
	}
	if f.where != "" {
		text.Text += " (" + f.where + ")"
	}
	return append(before, render.Cell{Text: f.actor, Width: t.who, Mark: render.Strong}, text)
}

// writeRemedies draws what would make it fit: a sentence for each, at its right where
// it then fits, and below what changes.
func writeRemedies(p *page, e *api.Explanation) {
	fixes := fixesOf(e)[:len(e.Remedies)]
	if len(fixes) == 0 {
		return
	}
	commands := p.Opts.Wide || p.Opts.Commands
	title := "Remedies (each verified with the scheduler's allocator)"
	if !commands && !p.Opts.Screen && slices.ContainsFunc(fixes, func(f fix) bool { return len(f.commands) > 0 }) {
		title = "Remedies (each verified with the scheduler's allocator; --commands prints them for the shell)"
	}
	p.Heading(title)
	for i := range fixes {
		fixes[i].where = remedyResult(fixes[i].remedy)
	}
	number := len(strconv.Itoa(len(fixes)))
	t := newFixTable(p, 2+number+render.ColumnGap, fixes)
	for i := range fixes {
		p.TableRow(2, t.row(&fixes[i], 0, render.Cell{Text: strconv.Itoa(i + 1), Width: number, Right: true})...)
		writeRemedyEdits(p, t.margin, fixes[i].remedy)
		if commands {
			p.Verbatim(t.margin, strings.Join(fixes[i].commands, "\n"))
		}
	}
	if e.MoreRemedies > 0 {
		more := fmt.Sprintf("and %d more", e.MoreRemedies)
		if !p.Opts.Screen {
			more += ": --all-remedies lists them"
		}
		p.Text(t.margin, render.Plain, more)
	}
	for _, note := range remedyPods(e, fixes) {
		p.Text(2+number+render.ColumnGap, render.Plain, note)
	}
}

// writeNextSteps draws what somebody can do besides.
func writeNextSteps(p *page, e *api.Explanation) {
	steps := fixesOf(e)[len(e.Remedies):]
	if len(steps) == 0 {
		return
	}
	p.Heading("Next steps")
	t := newFixTable(p, 2, steps)
	for i := range steps {
		p.Row(2, t.row(&steps[i], 0)...)
		p.Verbatim(t.margin, strings.Join(steps[i].commands, "\n"))
	}
}

// writeConflict draws the conditions that keep the target from fitting on a node.
func writeConflict(p *page, c *api.Conflict) {
	if c == nil || len(c.Facts) == 0 {
		return
	}
	p.Heading(conflictTitle(c))
	for _, f := range slices.Concat(c.Facts, c.Besides) {
		p.Items(f.Text)
	}
	if c.OtherNodeCount > 0 {
		p.Text(2, render.Plain, "Also on "+english.Count(c.OtherNodeCount, "other node"))
	}
}

func conflictTitle(c *api.Conflict) string {
	switch {
	case len(c.Facts) == 1 && c.AnyOneSuffices:
		return "Blocking condition on node " + c.Node
	case len(c.Besides) > 0:
		return fmt.Sprintf("Node %s is ruled out by each of these", c.Node)
	case len(c.Facts) == 1:
		return fmt.Sprintf("Node %s is ruled out by this and by other conditions", c.Node)
	case len(c.Facts) == 2 && c.AnyOneSuffices:
		return fmt.Sprintf("Conflict on %s (relaxing either one is enough)", c.Node)
	case c.AnyOneSuffices:
		return fmt.Sprintf("Conflict on %s (relaxing any one is enough)", c.Node)
	default:
		return fmt.Sprintf("Conflict on %s (other conditions rule the node out too)", c.Node)
	}
}

// remedyResult says where it fits after a remedy, and with which devices.
func remedyResult(r *api.Remedy) string {
	var names []string
	for i := range r.Devices {
		names = append(names, r.Devices[i].Device)
	}
	names = english.Collapse(names)
	const most = 4
	said := r.Node
	if len(names) > most {
		said += ": " + english.Count(len(r.Devices), "device")
	} else if len(names) > 0 {
		said += ": " + strings.Join(names, ", ")
	}
	if r.Nodes > 1 {
		said = fmt.Sprintf("%d nodes, first %s", r.Nodes, said)
	}
	return said
}

// writeRemedyEdits draws the fields that a remedy changes, one a line. What a
// controller makes from them is left out, unless that is all that is known, and so
// is what the sentence above says: that an object is deleted, or a claim released. Slices are
// the driver's: nobody else can change them. A taint that no command removes goes with the
// condition that the sentence names. The diff of files says it all.
func writeRemedyEdits(p *page, indent int, r *api.Remedy) {
	if r.Diff != "" {
		p.Verbatim(indent, r.Diff)
		return
	}
	for i := range r.Edits {
		e := &r.Edits[i]
		kind := whatif.KindOf(e)
		moved := kind == whatif.EditAlternatives && e.Op == "add"
		followed := kind == whatif.EditNodeTaint && len(r.Commands) == 0
		if !e.Generated && e.Path != "" && !slices.Contains([]whatif.EditKind{whatif.EditAllocation, whatif.EditPoolSlices, whatif.EditDeviceTaint}, kind) && !moved && !followed {
			p.Text(indent, render.Plain, editLine(e))
		}
	}
	if r.Owner.Kind == "" {
		return
	}
	owner := r.Owner.Kind + " " + r.Owner.Name
	if r.Owner.APIGroup != "" {
		owner += " (" + r.Owner.APIGroup + ")"
	}
	p.Text(indent, render.Plain, "Change the pod template of "+owner+", which creates the pod:")
	for i := range r.Edits {
		if e := &r.Edits[i]; e.Generated {
			p.Text(indent, render.Plain, editLine(e))
		}
	}
}

// editLine says what an edit does: "ResourceClaim gpus: …count: 8 -> 4".
func editLine(e *api.Edit) string {
	line := fmt.Sprintf("%s %s: %s: ", e.Object.Kind, e.Object.Name, fieldOf(e.Path))
	value, from := plainValue(e.Value), plainValue(e.From)
	switch {
	case e.Op == "remove" && whatif.KindOf(e) == whatif.EditNodeTaint:
		return line + "removed: " + from
	case e.Op == "remove" && whatif.KindOf(e) == whatif.EditAlternatives:
		return line + "moved to the front"
	case e.Op == "remove":
		return line + "removed"
	case from == "":
		return line + "added: " + value
	default:
		return line + from + " -> " + value
	}
}

// fieldOf returns the path of a field as in JSONPath, from where it tells claims and pods
// apart: "…requests[0].exactly.count".
func fieldOf(pointer string) string {
	words := whatif.PointerTokens(pointer)
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
func remedyPods(e *api.Explanation, fixes []fix) []string {
	var notes []string
	if len(e.SchedulingGates) > 0 {
		notes = append(notes, "The "+gatesText(e)+english.Plural(len(e.SchedulingGates), " stays", " stay")+": the scheduler looks at the pod once "+english.Plural(len(e.SchedulingGates), "it is", "they are")+" removed.")
	}
	for i := range fixes {
		for _, note := range podNotes(e.Target, fixes[i].remedy) {
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	return notes
}

func podNotes(target api.ObjectRef, r *api.Remedy) []string {
	if r == nil {
		return nil
	}
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
	if slices.ContainsFunc(r.Edits, func(e api.Edit) bool { return e.Object.Kind == api.KindTemplate }) {
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
	return "pods " + english.Sample(names, most)
}
