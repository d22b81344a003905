// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// migrationMost limits how many workloads are listed without Wide.
const migrationMost = 12

// Migration draws what has to change so that pods get devices from drivers: by node, by workload and
// by quota. With Wide, all workloads are shown, with their notes, and with Commands the commands.
func Migration(w io.Writer, m *api.Migration, opts Options) error {
	p := NewPage(opts)
	p.Text(0, Strong, migrationTotal(m))
	writeMigrationChecks(p, m.Verified)
	writeMigrationNodes(p, m.Nodes)
	writeMigrationWorkloads(p, m.Workloads)
	writeMigrationClasses(p, m.Classes)
	writeMigrationSteps(p, m)
	writeMigrationQuotas(p, m.Quotas)
	if opts.Wide && len(m.Assumptions) > 0 {
		p.Heading("Assumptions")
		p.Items(m.Assumptions...)
	} else if n := len(m.Assumptions); n > 0 {
		p.Blank()
		p.Text(0, Faint, fmt.Sprintf("%s not verified: -o wide", english.Count(n, "assumption")))
	}
	return p.Print(w)
}

// MigrationDiff draws the changes of workloads as unified diffs. Lines with # count workloads, and say what
// becomes of those without changes.
func MigrationDiff(w io.Writer, m *api.Migration, opts Options) error {
	p := NewPage(opts)
	p.Verbatim(0, "# "+migrationTotal(m))
	for i := range m.Workloads {
		workload := &m.Workloads[i]
		if workload.Way != api.MigrationClaims {
			p.Verbatim(0, fmt.Sprintf("# %s %s: %s", workload.Object.Namespace, workload.Object.Argument(), english.Sentence(workload.Reason)))
		}
		p.Verbatim(0, workload.Diff)
	}
	return p.Print(w)
}

// migrationTotal counts workloads by what becomes of them.
func migrationTotal(m *api.Migration) string {
	counts := map[api.MigrationWay]int{}
	for i := range m.Workloads {
		counts[m.Workloads[i].Way]++
	}
	var parts []string
	for _, way := range []api.MigrationWay{api.MigrationClaims, api.MigrationUnchanged, api.MigrationNotPossible, api.MigrationUnknown} {
		if n := counts[way]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, map[api.MigrationWay]string{
				api.MigrationClaims: english.Plural(n, "needs a claim", "need claims"), api.MigrationUnchanged: english.Plural(n, "stays as it is", "stay as they are"),
				api.MigrationNotPossible: "cannot move", api.MigrationUnknown: english.Plural(n, "is", "are") + " not known",
			}[way]))
		}
	}
	where := ""
	if m.Namespace != "" {
		where = "Namespace " + m.Namespace + ": "
	}
	n := len(m.Workloads)
	if n == 0 {
		return english.Sentence(where + "no workload asks for extended resources")
	}
	return english.Sentence(fmt.Sprintf("%s%s %s for extended resources: %s", where, english.Count(n, "workload"), english.Plural(n, "asks", "ask"), strings.Join(parts, ", ")))
}

func writeMigrationNodes(p *Page, groups []api.MigrationNodes) {
	if len(groups) == 0 {
		return
	}
	p.Heading("Nodes")
	rows := [][]Cell{{{Text: "NODES", Right: true}, {Text: "DEVICE PLUGINS"}, {Text: "DRIVERS"}, {Text: "NAMES"}}}
	var warnings []string
	for i := range groups {
		g := &groups[i]
		var plugins, drivers []string
		for _, o := range g.Plugins {
			text := fmt.Sprintf("%d %s", o.Allocatable, o.Resource)
			if o.Sharing != "" {
				text += fmt.Sprintf(" (%s)", o.Sharing)
			}
			plugins = append(plugins, text)
			if o.Contradiction != "" {
				warnings = append(warnings, fmt.Sprintf("%s: %s: %s", migrationNames(p, g), o.Resource, o.Contradiction))
			}
		}
		for _, d := range g.Drivers {
			drivers = append(drivers, fmt.Sprintf("%d %s", d.Devices, d.Driver))
			for _, same := range d.SameAs {
				warnings = append(warnings, fmt.Sprintf("%s: %s and driver %s are the same hardware, by their names: each gives it to pods without knowing of the other", migrationNames(p, g), same, d.Driver))
			}
		}
		rows = append(rows, []Cell{
			{Text: fmt.Sprint(g.Count), Right: true},
			{Text: cmp.Or(strings.Join(plugins, ", "), "-")},
			{Text: cmp.Or(strings.Join(drivers, ", "), "-")},
			{Text: migrationNames(p, g)},
		})
	}
	p.Rows(2, rows, 8, 40, 40, 40)
	for _, text := range warnings {
		p.Row(2, Cell{Text: "!", Width: 1, Mark: Bad}, Cell{Text: text})
	}
}

func migrationNames(p *Page, g *api.MigrationNodes) string {
	return p.Some(g.Names, g.Count, 40)
}

func writeMigrationWorkloads(p *Page, workloads []api.MigrationWorkload) {
	if len(workloads) == 0 {
		return
	}
	p.Heading("Workloads")
	shown := workloads
	if !p.Opts.Wide && !p.Opts.Commands {
		shown = workloads[:min(len(workloads), migrationMost)]
	}
	for i := range shown {
		w := &shown[i]
		marks := map[api.MigrationWay]Cell{
			api.MigrationUnchanged: {Text: "=", Mark: Good}, api.MigrationClaims: {Text: "+", Mark: Strong},
			api.MigrationUnknown: {Text: "?", Mark: Unsure}, api.MigrationNotPossible: {Text: "✗", Mark: Bad},
		}
		mark := marks[w.Way]
		mark.Width = 1
		p.Row(2, mark, Cell{Text: fmt.Sprintf("%s (%s): %s", w.Object.Namespace+" "+w.Object.Argument(), english.Count(w.Pods, "pod"), askTexts(w.Asks)), Mark: Strong})
		p.Text(4, Plain, migrationText(w))
		if p.Opts.Wide || p.Opts.Commands {
			for _, note := range w.Notes {
				p.Text(4, Faint, english.Sentence(note))
			}
		}
		if p.Opts.Commands {
			p.Verbatim(4, strings.Join(w.Commands, "\n"))
		}
	}
	if n := len(workloads) - len(shown); n > 0 {
		p.Text(2, Faint, fmt.Sprintf("and %s: -o wide", english.Count(n, "more workload")))
	}
}

// writeMigrationClasses draws which field of a class lets workloads stay as they are.
func writeMigrationClasses(p *Page, classes []api.MigrationClass) {
	for i := range classes {
		c := &classes[i]
		p.Row(2, Cell{Text: "*", Width: 1}, Cell{Text: fmt.Sprintf("%s %s, without a claim, if class %s gets extendedResourceName: %s. The class selects %s, and the feature gate DRAExtendedResource is on.",
			english.Count(c.Workloads, "workload"), english.Plural(c.Workloads, "stays as it is", "stay as they are"), c.Class, c.Resource, english.Count(c.Devices, "device"))})
		if p.Opts.Commands {
			p.Verbatim(4, c.Command)
		}
	}
}

// migrationText says what becomes of a workload.
func migrationText(w *api.MigrationWorkload) string {
	switch {
	case w.Way != api.MigrationClaims:
		return english.Sentence(w.Reason)
	case w.Verdict == "":
		return english.Sentence("it needs " + w.Reason)
	case w.Verdict == api.Fits:
		return english.Sentence("it needs "+w.Reason) + " One pod of it would fit now."
	case w.Verdict == api.DoesNotFit:
		return english.Sentence("it needs "+w.Reason) + " One pod of it would not fit now: " + w.Summary
	default:
		return english.Sentence("it needs "+w.Reason) + " Whether one pod of it would fit now is not known: " + w.Summary
	}
}

// writeMigrationChecks draws how far an earlier plan is.
func writeMigrationChecks(p *Page, checks []api.MigrationCheck) {
	if len(checks) == 0 {
		return
	}
	p.Heading("Steps of the earlier plan")
	for i := range checks {
		c := &checks[i]
		mark, text := Cell{Text: "✗", Mark: Bad}, strings.Join(c.Findings, "; ")
		switch c.State {
		case api.MigrationTaken:
			mark, text = Cell{Text: "✓", Mark: Good}, "taken, as planned"
		case api.MigrationNotTaken:
			mark, text = Cell{Text: "-"}, "not taken yet"
		case api.MigrationDiffers:
		}
		mark.Width = 1
		p.Row(2, mark, Cell{Text: fmt.Sprintf("%d: %s", c.Step, text)})
	}
}

// writeMigrationSteps draws the order of nodes and workloads.
func writeMigrationSteps(p *Page, m *api.Migration) {
	if len(m.Steps)+len(m.Kept) == 0 && m.Undecided == "" {
		return
	}
	p.Heading("Order")
	for i := range m.Steps {
		s := &m.Steps[i]
		p.Row(2, Cell{Text: fmt.Sprint(i + 1), Width: 2, Mark: Strong}, Cell{Text: stepText(p, s)})
		if p.Opts.Commands {
			p.Verbatim(6, strings.Join(s.Commands, "\n"))
			back := "# To go back:"
			for _, command := range s.Back {
				back += "\n# " + strings.TrimPrefix(command, "# ")
			}
			p.Verbatim(6, back)
		}
	}
	kept, why := map[string][]string{}, []string{}
	for _, k := range m.Kept {
		if kept[k.Reason] == nil {
			why = append(why, k.Reason)
		}
		kept[k.Reason] = append(kept[k.Reason], k.Node)
	}
	for _, reason := range why {
		names := kept[reason]
		p.Row(2, Cell{Text: "-", Width: 2}, Cell{Text: fmt.Sprintf("%s %s: %s", p.Some(names, len(names), 40), english.Plural(len(names), "keeps its device plugin", "keep their device plugins"), reason)})
	}
	if len(m.NotMoved) > 0 {
		names := make([]string, 0, len(m.NotMoved))
		for _, o := range m.NotMoved {
			names = append(names, o.Namespace+" "+o.Argument())
		}
		p.Row(2, Cell{Text: "!", Width: 2, Mark: Bad}, Cell{Text: fmt.Sprintf("%s: moved by no step", p.Some(names, len(names), 60))})
	}
	if m.Undecided != "" {
		p.Row(2, Cell{Text: "?", Width: 2, Mark: Unsure}, Cell{Text: english.Sentence(m.Undecided)})
	}
}

// stepText says what a step does, and what it means for pods.
func stepText(p *Page, s *api.MigrationStep) string {
	text := fmt.Sprintf("switch %s from %s to %s", p.Some(s.Nodes, len(s.Nodes), 40), english.JoinAnd(s.Resources), s.Driver)
	each := english.Plural(len(s.Nodes), "", " each")
	switch {
	case s.Like != "":
		text += fmt.Sprintf(", with %s%s as on %s", english.Count(s.Devices, "device"), each, s.Like)
		if s.Offered != s.Devices {
			text += fmt.Sprintf(" (the device plugin offers %d)", s.Offered)
		}
	case s.Devices > 0:
		text += fmt.Sprintf(", which publishes its %s%s already", english.Count(s.Devices, "device"), each)
	}
	sentences := []string{english.Sentence(text)}
	switch {
	case s.Evicted > 0 && s.Waiting == 0:
		sentences = append(sentences, fmt.Sprintf("%s leave%s and %s another node.", english.Count(s.Evicted, "pod"), english.Plural(s.Evicted, "s", ""), english.Plural(s.Evicted, "finds", "find")))
	case s.Evicted > 0:
		sentences = append(sentences, fmt.Sprintf("%s leave%s.", english.Count(s.Evicted, "pod"), english.Plural(s.Evicted, "s", "")))
	}
	if s.Deleted > 0 {
		sentences = append(sentences, fmt.Sprintf("%s without a controller %s deleted.", english.Count(s.Deleted, "pod"), english.Plural(s.Deleted, "is", "are")))
	}
	if s.Waiting > 0 {
		names := make([]string, 0, len(s.WaitingPods))
		for _, o := range s.WaitingPods {
			names = append(names, Qualified(o.Namespace, o.Name))
		}
		sentences = append(sentences, fmt.Sprintf("%s then: %s.", english.Plural(s.Waiting, "1 pod waits", fmt.Sprintf("%d pods wait", s.Waiting)), p.Some(names, s.Waiting, 60)))
	}
	if len(s.Moves) > 0 {
		names := make([]string, 0, len(s.Moves))
		for _, o := range s.Moves {
			names = append(names, o.Namespace+" "+o.Argument())
		}
		sentences = append(sentences, "Then move "+p.Some(names, len(names), 60)+".")
	}
	return strings.Join(sentences, " ")
}

// askTexts sums up what one pod asks for. Init containers use the devices of the others, as far as
// there are enough.
func askTexts(asks []api.MigrationAsk) string {
	sums, most := map[string]int64{}, map[string]int64{}
	for _, a := range asks {
		if a.Init {
			most[a.Resource] = max(most[a.Resource], a.Count)
		} else {
			sums[a.Resource] += a.Count
		}
	}
	for name, count := range most {
		sums[name] = max(sums[name], count)
	}
	texts := make([]string, 0, len(sums))
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		texts = append(texts, fmt.Sprintf("%d %s", sums[name], name))
	}
	return strings.Join(texts, ", ")
}

func writeMigrationQuotas(p *Page, quotas []api.MigrationQuota) {
	if len(quotas) == 0 {
		return
	}
	p.Heading("Quotas")
	for i := range quotas {
		q := &quotas[i]
		text := fmt.Sprintf("%s: %s=%d", Qualified(q.Namespace, q.Name), q.Resource, q.Hard)
		if q.Becomes != "" {
			text += fmt.Sprintf(" does not limit claims; add %s=%d", q.Becomes, q.Hard)
		} else {
			text += ": " + q.Reason
		}
		p.Row(2, Cell{Text: "-", Width: 1}, Cell{Text: text})
		if p.Opts.Commands {
			p.Verbatim(4, strings.Join(q.Commands, "\n"))
		}
	}
}
