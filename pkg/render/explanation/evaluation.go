// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// Evaluation draws the results of an expression on devices. With Wide, all nodes are named.
func Evaluation(w io.Writer, e *api.Evaluation, opts render.Options) error {
	p := newPage(opts)
	writeLikeness(p, e.Like)
	if e.Like == nil || len(e.Like.Selectors) > 0 {
		writeEvaluation(p, e)
	}
	return p.Print(w)
}

func writeEvaluation(p *page, e *api.Evaluation) {
	p.Blank()
	title, m := evaluationTitle(e)
	p.Text(0, m, title)
	p.Blank()
	if e.Problem != nil {
		writeProblem(p, e.Expression, e.Problem)
	} else {
		p.Field("Devices", chosenText(e))
		p.Field("Cost", costText(e))
		if e.Devices > 0 {
			writeDriverOutcomes(p, e.Drivers)
			writeNodeOutcomes(p, e.Nodes)
			writeParts(p, e)
		}
		writeFailures(p, e.Failures)
		for _, note := range e.Notes {
			p.Blank()
			p.Text(0, render.Unsure, note)
		}
	}
	writeSuggestions(p, e.Suggestions)
	writeComparison(p, e)
}

// evaluationTitle returns the result of an expression in a sentence.
func evaluationTitle(e *api.Evaluation) (string, render.Mark) {
	switch {
	case e.Problem != nil:
		return "The expression does not compile", render.Bad
	case e.Devices == 0:
		return "There is no device to evaluate it for", render.Unsure
	}
	text := fmt.Sprintf("True for %s of %s", english.Thousands(e.Outcomes.True), english.Count(e.Devices, "device"))
	switch {
	case e.Outcomes.Fails > 0:
		return text + fmt.Sprintf(", fails for %s", english.Thousands(e.Outcomes.Fails)), render.Bad
	case e.Outcomes.True == 0:
		return text, render.Unsure
	default:
		return text, render.Good
	}
}

// writeProblem shows the line with the error of an expression, with a mark under the place.
func writeProblem(p *page, expression string, problem *api.ExpressionProblem) {
	lines := strings.Split(expression, "\n")
	if problem.Line < 1 || problem.Line > len(lines) {
		p.Verbatim(2, strings.Join(lines, "\n"))
	} else {
		line := []rune(lines[problem.Line-1])
		before := string(line[:min(max(problem.Column-1, 0), len(line))])
		p.Verbatim(2, string(line))
		p.Verbatim(2, strings.Repeat(" ", ansi.StringWidth(render.Escape(before)))+"^")
	}
	text := problem.Reason
	if len(lines) > 1 && problem.Line > 0 {
		text += fmt.Sprintf(" (line %d)", problem.Line)
	}
	if problem.More > 0 {
		text += ", and " + english.Count(problem.More, "more error")
	}
	p.Text(2, render.Bad, text)
}

// chosenText names the devices of an evaluation.
func chosenText(e *api.Evaluation) string {
	text := english.Thousands(e.Devices)
	for _, chosen := range []struct{ what, name string }{{"of class ", e.DeviceClass}, {"of driver ", e.Driver}, {"named ", e.Device}} {
		if chosen.name != "" {
			text += " " + chosen.what + chosen.name
		}
	}
	if e.Outcomes.True > 0 && len(e.Matching) > 0 && e.Outcomes.True <= render.InCell {
		text += "; true for " + english.JoinAnd(e.Matching)
	}
	return text
}

func costText(e *api.Evaluation) string {
	if e.Cost == 0 {
		return ""
	}
	return fmt.Sprintf("at most %s, the limit is %s", english.Thousands(e.Cost), english.Thousands(e.CostLimit))
}

// outcomeCells returns the counts of outcomes, in columns.
func outcomeCells(o api.EvaluationOutcomes) []render.Cell {
	mark := func(n int, m render.Mark) render.Mark {
		if n == 0 {
			return render.Faint
		}
		return m
	}
	return []render.Cell{
		{Text: strconv.Itoa(o.True), Width: 7, Right: true, Mark: mark(o.True, render.Good)},
		{Text: strconv.Itoa(o.False), Width: 7, Right: true, Mark: mark(o.False, render.Plain)},
		{Text: strconv.Itoa(o.Fails), Width: 7, Right: true, Mark: mark(o.Fails, render.Bad)},
	}
}

// outcomeHeads returns the heads of these columns.
func outcomeHeads(last string) []render.Cell {
	return []render.Cell{
		{Text: "true", Width: 7, Right: true, Mark: render.Faint},
		{Text: "false", Width: 7, Right: true, Mark: render.Faint},
		{Text: "fails", Width: 7, Right: true, Mark: render.Faint},
		{Text: last, Mark: render.Faint},
	}
}

func writeDriverOutcomes(p *page, drivers []api.DriverOutcomes) {
	if len(drivers) == 0 {
		return
	}
	p.Heading("By driver")
	p.TableRow(0, outcomeHeads("")...)
	for _, d := range drivers {
		p.TableRow(0, append(outcomeCells(d.Outcomes), render.Cell{Text: d.Driver})...)
	}
}

// nodeGroupsShown is how many groups of nodes are shown without -o wide.
const nodeGroupsShown = 10

func writeNodeOutcomes(p *page, groups []api.NodeOutcomes) {
	if len(groups) == 0 {
		return
	}
	p.Heading("By node")
	p.TableRow(0, outcomeHeads("on each of")...)
	for i, group := range groups {
		if i == nodeGroupsShown && !p.Opts.Wide {
			p.Text(2, render.Faint, fmt.Sprintf("and %s: -o wide shows all", english.Count(len(groups)-i, "more group")))
			return
		}
		where := group.Scope
		if group.Count > 0 {
			const indent = 3 * (7 + render.ColumnGap)
			where = p.Some(group.Names, group.Count, p.Table-indent-len("1000 nodes: "))
			if group.Count > 1 {
				where = english.Count(group.Count, "node") + ": " + where
			}
		}
		p.TableRow(0, append(outcomeCells(group.Outcomes), render.Cell{Text: where})...)
	}
}

// writeParts shows the parts with their values, as an explanation does.
func writeParts(p *page, e *api.Evaluation) {
	if len(e.Parts) == 0 {
		return
	}
	p.Heading("By value")
	for i := range e.Parts {
		writeSelectorPart(p, 2, &e.Parts[i], true)
	}
}

func writeFailures(p *page, failures []api.SelectorFailure) {
	if len(failures) == 0 {
		return
	}
	p.Heading("Failures (an error on one device that a claim considers makes scheduling fail on every node)")
	for i := range failures {
		p.Items(inventory.FailureText(&failures[i]))
	}
}

func outcomesText(o api.EvaluationOutcomes) string {
	return fmt.Sprintf("true for %s, false for %s, fails for %s", english.Thousands(o.True), english.Thousands(o.False), english.Thousands(o.Fails))
}

func writeSuggestions(p *page, suggestions []api.ExpressionSuggestion) {
	for _, s := range suggestions {
		switch s.Reason {
		case api.SuggestCorrection:
			p.Heading("Did you mean")
		case api.SuggestGuard:
			p.Heading("False instead of failing where a value is missing")
		}
		p.Verbatim(2, s.Expression)
		p.Text(2, render.Plain, outcomesText(s.Outcomes))
		for _, change := range s.Changes {
			p.Text(2, render.Faint, change.From+" -> "+change.To)
		}
	}
}

func writeComparison(p *page, e *api.Evaluation) {
	c := e.Comparison
	if c == nil {
		return
	}
	p.Heading("Compared with")
	p.Verbatim(2, c.Expression)
	if c.Problem != nil {
		p.Text(2, render.Bad, "does not compile")
		writeProblem(p, c.Expression, c.Problem)
		return
	}
	p.Text(2, render.Plain, outcomesText(c.Outcomes))
	switch {
	case e.Problem != nil:
		return
	case c.Different == 0:
		p.Text(2, render.Good, "The same outcome for each device")
		return
	}
	p.Text(2, render.Unsure, "Another outcome for "+english.Count(c.Different, "device"))
	for _, d := range c.Differences {
		p.Row(4, render.Cell{Text: fmt.Sprintf("%s -> %s", strings.ToLower(d.From), strings.ToLower(d.To)), Width: len("false -> false")},
			render.Cell{Text: strconv.Itoa(d.Count), Width: 6, Right: true}, render.Cell{Text: p.Some(d.Devices, d.Count, p.Width-30)})
	}
}

func writeLikeness(p *page, l *api.DeviceLikeness) {
	if l == nil {
		return
	}
	if len(l.Selectors) == 0 {
		p.Text(0, render.Bad, "No expression singles out devices like "+l.Device)
	} else {
		p.Text(0, render.Good, fmt.Sprintf("%s for devices like %s, the shortest first", english.Count(len(l.Selectors), "expression"), l.Device))
	}
	p.Blank()
	for _, s := range l.Selectors {
		p.Verbatim(2, s)
	}
	p.Blank()
	p.Field("Devices", english.Count(l.Count, "device")+" like it")
	p.Field("Same", strings.Join(l.Same, ", "))
	p.Field("Left out", strings.Join(l.LeftOut, ", "))
}

// outcomeWidth is the width of the column with the names of outcomes.
const outcomeWidth = len("not reached")

// writeSelectors shows what the selectors of a request do to all devices, part by
// part, with the values that decided.
func writeSelectors(p *page, indent int, traces []api.SelectorTrace) {
	if len(traces) == 0 {
		return
	}
	p.Blank()
	p.Text(indent, render.Strong, "Selectors, in the order in which they are evaluated")
	for i := range traces {
		trace := &traces[i]
		p.Text(indent+2, render.Plain, fmt.Sprintf("%s %s%s", trace.Object, trace.Path, costNote(trace)))
		single := len(trace.Parts) == 1
		if !single {
			p.Text(indent+4, render.Strong, trace.Expression)
			writeOutcomes(p, indent+6, trace.Outcomes, nil, 0)
		}
		for j := range trace.Parts {
			writeSelectorPart(p, indent+4+outdent(!single), &trace.Parts[j], single)
		}
		if trace.Error != "" {
			p.Text(indent+4, render.Bad, "It fails with: "+trace.Error)
		}
		for _, note := range trace.Notes {
			p.Text(indent+4, render.Unsure, note)
		}
	}
}

func outdent(nested bool) int {
	if nested {
		return 2
	}
	return 0
}

// costNote says what an evaluation costs.
func costNote(trace *api.SelectorTrace) string {
	switch {
	case trace.Cost == 0:
		return ""
	case trace.Cost > trace.CostLimit:
		return ""
	default:
		return fmt.Sprintf(", costs at most %s of %s", english.Thousands(trace.Cost), english.Thousands(trace.CostLimit))
	}
}

func writeSelectorPart(p *page, indent int, part *api.SelectorPart, top bool) {
	m := render.Plain
	if top {
		m = render.Strong
	}
	p.Text(indent, m, part.Expression)
	writeOutcomes(p, indent+2, part.Outcomes, part.Values, part.MoreValues)
	for i := range part.Operands {
		writeSelectorPart(p, indent+4, &part.Operands[i], false)
	}
}

// writeOutcomes counts devices, with the values that they have.
func writeOutcomes(p *page, indent int, o api.SelectorOutcomes, values []api.SelectorValue, more int) {
	width := render.Widest(12, strconv.Itoa(max(o.True, o.False, o.Fails, o.NotEvaluated)))
	for _, line := range []struct {
		name, outcome string
		count         int
		mark          render.Mark
	}{
		{"true", api.OutcomeTrue, o.True, render.Good},
		{"false", api.OutcomeFalse, o.False, render.Plain},
		{"fails", api.OutcomeFails, o.Fails, render.Bad},
		{"not reached", "", o.NotEvaluated, render.Faint},
	} {
		if line.count == 0 {
			continue
		}
		p.Row(indent,
			render.Cell{Text: strconv.Itoa(line.count), Width: width, Right: true},
			render.Cell{Text: line.name, Width: outcomeWidth, Mark: line.mark},
			render.Cell{Text: valuesText(line.outcome, line.count, values, more), Mark: render.Faint})
	}
}

// valuesText lists the values behind an outcome, with their counts.
func valuesText(outcome string, total int, values []api.SelectorValue, more int) string {
	var said []string
	shown := 0
	for _, value := range values {
		if value.Outcome != outcome {
			continue
		}
		shown += value.Count
		if value.Count == total {
			return value.Found
		}
		said = append(said, fmt.Sprintf("%s (%d)", value.Found, value.Count))
	}
	if rest := total - shown; more > 0 && rest > 0 && outcome != "" {
		said = append(said, fmt.Sprintf("other values (%d)", rest))
	}
	return strings.Join(said, ", ")
}
