// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// section is a part of a page: a title and entries, which are left out from the end where there is
// no room.
type section struct {
	title   string
	entries []*Page
}

// Difference draws what changed between two states on one screen: the answers, the causes, the
// capacity, and the changes. With Wide, all of it is shown, with each object and field.
func Difference(w io.Writer, d *api.Difference, opts Options) error {
	p := NewPage(opts)
	p.Text(0, Strong, differenceTotal(d))
	p.Text(0, Faint, d.Old.Source+" -> "+d.New.Source+laterText(&d.Old, &d.New))
	var sections []section
	for _, s := range []section{
		answerSection(d, opts), causeSection("Causes that began", d.Began, opts), causeSection("Causes that ended", d.Ended, opts),
		capacitySection(d, opts), changeSection(d, opts), notComparedSection(d, opts),
	} {
		if len(s.entries) > 0 {
			sections = append(sections, s)
		}
	}
	left := max(statusLines, opts.Height-1) - p.Lines()
	for i, s := range sections {
		after := 0
		for _, later := range sections[i+1:] {
			after += later.least()
		}
		before := p.Lines()
		s.write(p, left-after)
		left -= p.Lines() - before
	}
	return p.Print(w)
}

// least returns the lines that a section takes at least: its title, its first entry, and how many
// entries are left out.
func (s *section) least() int {
	return 2 + s.entries[0].Lines() + min(1, len(s.entries)-1)
}

// write adds a section, on a terminal with as many entries as the lines take, and at least one.
func (s *section) write(p *Page, lines int) {
	p.Heading(s.title)
	lines -= 2
	for i, entry := range s.entries {
		rest := len(s.entries) - i
		if i > 0 && !p.Opts.Wide && p.Opts.Width > 0 && entry.Lines()+min(1, rest-1) > lines {
			p.Text(2, Faint, fmt.Sprintf("%d more: -o wide", rest))
			return
		}
		lines -= entry.Lines()
		p.Buf.Write(entry.Buf.Bytes())
	}
}

func differenceTotal(d *api.Difference) string {
	var parts []string
	count := func(n int, noun, verb, verbs string) {
		if n > 0 {
			parts = append(parts, english.Count(n, noun)+" "+english.Plural(n, verb, verbs))
		}
	}
	answers := 0
	for i := range d.Answers {
		if a := &d.Answers[i]; !sameVerdict(a) {
			answers += 1 + len(a.Others)
		}
	}
	count(answers, "answer", "differs", "differ")
	count(len(d.Began), "cause", "began", "began")
	count(len(d.Ended), "cause", "ended", "ended")
	changed := 0
	for i := range d.Changes {
		changed += len(d.Changes[i].Objects)
	}
	count(changed, "object", "changed", "changed")
	where := ""
	if d.Namespace != "" {
		where = "Namespace " + d.Namespace + ": "
	}
	if len(parts) == 0 {
		parts = append(parts, "no difference")
	}
	return english.Sentence(where + strings.Join(parts, ", "))
}

// laterText says how long after the old state the new one was read.
func laterText(old, later *api.ComparedState) string {
	if old.TakenAt == nil || later.TakenAt == nil || old.TakenAt.Equal(later.TakenAt) {
		return ""
	}
	if passed := later.TakenAt.Sub(old.TakenAt.Time); passed > 0 {
		return ", " + Age(int64(passed/time.Second)) + " later"
	}
	return ", " + Age(int64(old.TakenAt.Sub(later.TakenAt.Time)/time.Second)) + " earlier"
}

func sameVerdict(a *api.ChangedAnswer) bool {
	return outcomeOf(a.Was.Verdict) == outcomeOf(a.Is.Verdict)
}

func outcomeOf(v api.Verdict) api.Verdict {
	if v == api.Allocated {
		return api.Fits
	}
	return v
}

func answerSection(d *api.Difference, opts Options) section {
	s := section{title: "Answers"}
	for i := range d.Answers {
		s.entries = append(s.entries, answerEntry(&d.Answers[i], opts))
	}
	return s
}

func answerEntry(a *api.ChangedAnswer, opts Options) *Page {
	p := NewPage(opts)
	who := strings.ToLower(a.Object.Kind) + " " + a.Object.QualifiedName()
	if n := len(a.Others); n > 0 {
		who += " and " + english.Count(n, "more pod")
	}
	mark := Bad
	if outcomeOf(a.Is.Verdict) == api.Fits || sameVerdict(a) {
		mark = Plain
	}
	p.Text(2, mark, who+": "+turnText(a))
	const margin = 4
	if text := undoText(a); text != "" {
		p.Text(margin, Plain, text)
	}
	if !opts.Wide {
		return p
	}
	if len(a.Others) > 0 {
		p.List(margin, Faint, english.Texts(a.Others, func(o api.ObjectRef) string { return o.QualifiedName() }))
	}
	for _, state := range []struct {
		when string
		*api.AnswerState
	}{{"before", &a.Was}, {"now", &a.Is}} {
		if state.Summary != "" {
			p.Text(margin, Faint, state.when+": "+state.Summary)
		}
	}
	return p
}

// turnText says how an answer changed.
func turnText(a *api.ChangedAnswer) string {
	was, is := outcomeOf(a.Was.Verdict), outcomeOf(a.Is.Verdict)
	before, now := "was "+string(was), "is "+string(is)
	switch {
	case was == "":
		return "did not exist; " + now
	case was == api.Fits && a.Was.Node != "":
		before = "ran on " + a.Was.Node
	case was == api.Fits && a.Was.Supposed:
		before = "would have fitted"
	case was == api.Fits:
		before = "fitted"
	case was == api.DoesNotFit && a.Was.Supposed:
		before = "would not have fitted"
	case was == api.DoesNotFit:
		before = "did not fit"
	}
	switch {
	case was == is && is == api.DoesNotFit:
		return "does not fit, as before"
	case was == is && is == api.Fits:
		return "fits, as before"
	case was == is:
		return now + ", as before"
	case is == "":
		return before + "; is gone"
	case is == api.Fits && a.Is.Node != "":
		now = "runs on " + a.Is.Node
	case is == api.Fits:
		now = "fits now"
	case is == api.DoesNotFit && was == api.Fits:
		now = "fits no longer"
	case is == api.DoesNotFit:
		now = "does not fit"
	}
	return before + ", " + now
}

// undoText names the changes that made the difference.
func undoText(a *api.ChangedAnswer) string {
	if len(a.Undo) == 0 {
		return a.Note
	}
	effect := "gives the old answer"
	if outcomeOf(a.Was.Verdict) == api.Fits {
		effect = "makes " + english.Plural(1+len(a.Others), "it", "each of them") + " fit again"
	}
	messages := english.Texts(a.Undo, func(c api.Change) string { return c.Message })
	if len(messages) == 1 {
		return messages[0] + "; undoing this alone " + effect
	}
	return strings.Join(messages, "; ") + "; undoing these " + strconv.Itoa(len(messages)) + " changes " + strings.Replace(effect, "s ", " ", 1) + ", and no part of them does"
}

func causeSection(title string, causes []api.Cause, opts Options) section {
	s := section{title: title}
	groups, _ := cause.Same(causes)
	for i, group := range groups {
		p := NewPage(opts)
		if opts.Wide {
			causeGroup(group).write(p, i+1, true)
		} else {
			text := group[0].Message
			if parts := causeGroup(group).blast(); len(parts) > 0 {
				text = strings.TrimSuffix(text, ".") + ": " + parts[0]
			}
			p.Row(2, Cell{Text: text, Lines: 1})
		}
		s.entries = append(s.entries, p)
	}
	return s
}

func capacitySection(d *api.Difference, opts Options) section {
	s := section{title: "Capacity"}
	rows := [][]Cell{{{Text: "CLASS"}, {Text: "DEVICES"}, {Text: "USED"}, {Text: "FREE"}, {Text: "AVAILABLE"}, {Text: "PLACEABLE"}}}
	for i := range d.Capacity {
		c := &d.Capacity[i]
		some := cmp.Or(c.Was, c.Is)
		row := []Cell{{Text: cmp.Or(some.Class, some.Driver)}}
		for _, number := range []func(*api.ClassCapacity) string{
			func(c *api.ClassCapacity) string { return strconv.Itoa(c.Devices.Total) },
			func(c *api.ClassCapacity) string { return strconv.Itoa(c.Devices.Allocated + c.Devices.Shared) },
			func(c *api.ClassCapacity) string { return strconv.Itoa(c.Devices.Free) },
			func(c *api.ClassCapacity) string { return strconv.Itoa(c.Devices.Available) },
			func(c *api.ClassCapacity) string {
				if c.Placeable == nil {
					return "-"
				}
				return strconv.Itoa(c.Placeable.AtLeast)
			},
		} {
			row = append(row, Cell{Text: turned(c, number)})
		}
		rows = append(rows, row)
	}
	const nameWidth, numberWidth = 40, 16
	Align(rows, nameWidth, numberWidth, numberWidth, numberWidth, numberWidth, numberWidth)
	if len(rows) == 1 {
		return s
	}
	for i, row := range rows[1:] {
		p := NewPage(opts)
		if i == 0 {
			p.Row(2, rows[0]...)
		}
		p.Row(2, row...)
		s.entries = append(s.entries, p)
	}
	return s
}

// turned shows a number of a class in both states.
func turned(c *api.ChangedCapacity, number func(*api.ClassCapacity) string) string {
	was, is := "none", "none"
	if c.Was != nil {
		was = number(c.Was)
	}
	if c.Is != nil {
		is = number(c.Is)
	}
	if was == is {
		return is
	}
	return was + " -> " + is
}

func changeSection(d *api.Difference, opts Options) section {
	s := section{title: "Changes"}
	for i := range d.Changes {
		c, p := &d.Changes[i], NewPage(opts)
		if !opts.Wide {
			p.Row(2, Cell{Text: c.Message, Lines: 1})
		} else {
			p.Text(2, Plain, c.Message)
			for j := range c.Objects {
				writeChangedObject(p, &c.Objects[j])
			}
		}
		s.entries = append(s.entries, p)
	}
	return s
}

func writeChangedObject(p *Page, o *api.ChangedObject) {
	const margin = 4
	if o.Object.Kind != "" {
		p.Text(margin, Faint, strings.ToLower(string(o.Op))+" "+o.Object.String())
	}
	for i := range o.Fields {
		f := &o.Fields[i]
		p.Text(margin+2, Faint, f.Path+": "+cmp.Or(f.From, "none")+" -> "+cmp.Or(f.To, "none"))
	}
	if more := o.FieldCount - len(o.Fields); more > 0 {
		p.Text(margin+2, Faint, english.Count(more, "more field"))
	}
}

func notComparedSection(d *api.Difference, opts Options) section {
	s := section{title: "Not compared"}
	for _, text := range d.NotCompared {
		p := NewPage(opts)
		p.Text(2, Faint, text)
		s.entries = append(s.entries, p)
	}
	return s
}
