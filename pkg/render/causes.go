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
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
)

// PodCauses has the causes of a cluster. Of returns the indices of the causes of a pod.
type PodCauses struct {
	Causes []api.Cause
	Of     func(pod api.ObjectRef) []int
}

// waitingLines limits the lines of causes above the table of pods that wait on a terminal of 24
// lines.
const waitingLines = 24

// linesAbove is like waitingLines, for a terminal of any height: two thirds of a high one.
func linesAbove(opts Options) int { return max(waitingLines, 2*opts.Height/3) }

// Waiting draws the causes of pods that wait, and a row for pods with one owner and one answer.
func Waiting(w io.Writer, causes []api.Cause, rows []*cause.Row, opts Options) error {
	p := NewPage(opts)
	of := []int{}
	for _, row := range rows {
		of = append(of, row.Causes...)
	}
	writeCauses(p, causes, causesOptions{lines: linesAbove(p.Opts), only: of})
	p.Blank()
	_, numbers := cause.Same(causes)
	if err := p.table(NewTable(rows, waitingColumns(numbers))); err != nil {
		return err
	}
	return p.Print(w)
}

func waitingColumns(numbers []int) []Column[cause.Row] {
	return []Column[cause.Row]{
		{Name: "Namespace", Key: true, Cell: func(r *cause.Row) string { return r.Namespace }},
		{Name: "Name", Key: true, Cell: func(r *cause.Row) string { return r.Name }},
		{Name: "Stage", Cell: func(r *cause.Row) string { return string(r.Stage) }},
		{Name: "Age", Cell: func(r *cause.Row) string {
			if r.AgeSeconds == 0 {
				return "<unknown>"
			}
			return Age(r.AgeSeconds)
		}},
		{Name: "Answer", Cell: func(r *cause.Row) string { return waitingAnswer(r, numbers) }},
	}
}

// AnswerWords returns the verdict of a row in a few words: the numbers of the causes among all, which
// tell the most, and where or when the pods fit.
func AnswerWords(r *cause.Row, causes []api.Cause) string {
	_, numbers := cause.Same(causes)
	return waitingAnswer(r, numbers)
}

func waitingAnswer(r *cause.Row, numbers []int) string {
	text := Words(r.Verdict)
	switch outlook := OutlookWords(r.Outlook); {
	case r.Node != "" && len(r.Names) > 1:
		// The name of the node is the longest: what comes after it may be cut.
		text = "fit, " + r.Node + " first"
	case r.Node != "":
		text = "fits on " + r.Node
	case len(r.Causes) == 0:
		return r.Summary
	case r.Verdict == api.DoesNotFit && outlook != "" && r.Outlook != api.ConditionUnknown:
		text = outlook
	case r.Verdict == api.Blocked && r.First != nil && r.First.Code == api.NodeNotReady:
		// It may be gone.
		text = "node not usable"
	case r.Verdict != api.Undetermined && r.First != nil && r.First.Code != "":
		text = Words(r.First.Code)
	}
	if len(r.Causes) > 0 {
		text = causeNumbers(r.Causes, numbers) + ": " + text
	}
	return text
}

// causeGroup is a set of causes that read the same, such as two templates that ask for equally
// many devices. It has one number and one next step.
type causeGroup []*api.Cause

// causeNumbers says which causes some indices are: "cause 2", "causes 1, 4".
func causeNumbers(of []int, numbers []int) string {
	list := distinct(of, numbers)
	texts := make([]string, 0, len(list))
	for _, n := range list {
		texts = append(texts, fmt.Sprint(n))
	}
	return english.Plural(len(list), "cause ", "causes ") + strings.Join(texts, ", ")
}

// distinct returns the numbers of some causes, each once.
func distinct(of, numbers []int) []int {
	list := make([]int, 0, len(of))
	for _, i := range of {
		list = append(list, numbers[i])
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// causesOptions say which causes are drawn.
type causesOptions struct {
	// lines is the last line of the page for them on a terminal.
	lines int
	// only are the indices of the causes to draw, with the numbers that they have among all; nil
	// stands for all.
	only []int
	// findings shows the codes of findings, and commands that only read.
	findings bool
}

// writeCauses draws causes, the worst first, each with the pods that suffer from it and the next
// step.
func writeCauses(p *Page, causes []api.Cause, opts causesOptions) {
	groups, numbers := cause.Same(causes)
	var shown []int
	for number := range len(groups) {
		shown = append(shown, number+1)
	}
	if opts.only != nil {
		shown = distinct(opts.only, numbers)
	}
	if len(shown) == 0 {
		return
	}
	p.Heading("Causes")
	for i, number := range shown {
		one := NewPage(p.Opts)
		causeGroup(groups[number-1]).write(one, number, opts.findings)
		if rest := len(shown) - i; i > 0 && !p.Opts.Wide && p.Opts.Width > 0 && p.Lines()+one.Lines()+min(rest-1, 1) > opts.lines {
			p.Text(2, Faint, fmt.Sprintf("%d more %s: kubectl dra status -o wide", rest, english.Plural(rest, "cause", "causes")))
			return
		}
		p.Buf.Write(one.Buf.Bytes())
	}
}

func (g causeGroup) write(p *Page, number int, findings bool) {
	mark, c := Plain, g[0]
	switch c.Severity {
	case api.SeverityError:
		mark = Bad
	case api.SeverityWarning, api.SeverityUnknown:
		mark = Unsure
	case api.SeverityInfo:
	}
	const margin = 5
	p.Row(1, Cell{Text: fmt.Sprint(number), Width: 2, Right: true, Mark: mark}, Cell{Text: c.Message, Mark: Strong})
	parts := g.blast()
	if len(g) > 1 {
		parts = append(parts, g.where())
	}
	if findings {
		parts = append(parts, c.Findings...)
	}
	if len(parts) > 0 {
		p.Text(margin, Plain, strings.Join(parts, "; "))
	}
	if c.NextStep != nil {
		g.writeStep(p, margin, findings)
	}
	for _, c := range g {
		if !p.Opts.Wide {
			break
		}
		for i := range c.Evidence {
			p.Text(margin, Faint, evidenceLine(&c.Evidence[i]))
		}
		if c.Workloads > 1 {
			for i := range c.Affected {
				p.Text(margin, Faint, affectedText(&c.Affected[i]))
			}
		}
		if more := c.Workloads - len(c.Affected); more > 0 {
			p.Text(margin, Faint, "and "+english.Count(more, "more owner"))
		}
		p.Text(margin, Faint, "id "+c.ID)
	}
}

// writeStep says what to do about causes, with the commands.
func (g causeGroup) writeStep(p *Page, margin int, findings bool) {
	p.Text(margin, Plain, stepOf(g[0]))
	var also []api.ObjectRef
	for _, c := range g {
		if commands := c.NextStep.Commands; len(commands) > 0 && (p.Opts.Wide || p.Opts.Commands || findings && len(commands) == 1 && looks(commands[0])) {
			p.Verbatim(margin, strings.Join(commands, "\n"))
			also = append(also, c.AlsoFor...)
		}
	}
	writeAlsoFor(p, margin, also)
}

// where names the objects of causes that read the same: as many as there are causes in -o json.
func (g causeGroup) where() string {
	var names []string
	for _, c := range g {
		if len(c.Objects) > 0 {
			names = append(names, c.Objects[0].Title())
		}
	}
	return english.Count(len(g), "cause") + " that read the same" + english.PrecededBy(": ", english.Sample(names, 1))
}

// shownTargets limits the targets of a command that prints other commands, and how many such
// commands there are.
const shownTargets = 3

// writeAlsoFor says who needs the commands of a cause for objects of their own, and what prints
// them.
func writeAlsoFor(p *Page, margin int, also []api.ObjectRef) {
	if len(also) == 0 {
		return
	}
	targets, named := map[string][]string{}, 0
	for _, o := range also {
		targets[o.Namespace] = append(targets[o.Namespace], o.Argument())
	}
	var lines []string
	for _, namespace := range slices.Sorted(maps.Keys(targets))[:min(len(targets), shownTargets)] {
		list := targets[namespace][:min(len(targets[namespace]), shownTargets)]
		lines, named = append(lines, "kubectl dra why "+shell.Words(list...)+" -n "+shell.Quote(namespace)+" --commands"), named+len(list)
	}
	text := english.Plural(len(also), "1 more owner needs this for objects of its own", english.Thousands(len(also))+" more owners need this for objects of their own")
	if named < len(also) {
		text += fmt.Sprintf(", %d of them here", named)
	}
	p.Text(margin, Plain, text+". Print the commands:")
	p.Verbatim(margin, strings.Join(lines, "\n"))
}

// stepOf says who can mend a cause, how, and what changes then. It is empty if nothing is known that
// helps.
func stepOf(c *api.Cause) string {
	if c.NextStep == nil {
		return ""
	}
	step := c.NextStep.Text
	if c.NextStep.Actor != api.ActorNobody {
		step = Actor(c.NextStep.Actor) + ": " + step
	}
	if c.Mended != nil {
		step += "; then " + c.Mended.Message
	}
	return step
}

// blast says who suffers from the causes.
func (g causeGroup) blast() []string {
	var first *api.AffectedPods
	pods, owners, devices, longest, age := 0, 0, 0, int64(0), int64(0)
	for _, c := range g {
		if first == nil && len(c.Affected) > 0 {
			first = &c.Affected[0]
		}
		pods, owners, devices, longest = pods+c.Pods, owners+c.Workloads, devices+c.Devices, max(longest, c.LongestSeconds)
		age = max(age, c.AgeSeconds)
	}
	var parts []string
	if first != nil {
		text := affectedText(first)
		if owners > 1 {
			text = fmt.Sprintf("%s of %s: %s and %d more", english.Count(pods, "pod"), english.Count(owners, "owner"), text, owners-1)
		}
		if longest > 0 {
			text += ", for " + Age(longest)
		}
		parts = append(parts, text)
	}
	switch text := english.Count(devices, "device"); {
	case devices > 0 && age > 0:
		parts = append(parts, text+", for "+Age(age))
	case devices > 0:
		parts = append(parts, text+", since when is not recorded")
	case age > 0 && first == nil:
		parts = append(parts, "for "+Age(age))
	}
	return parts
}

// affectedText names the pods of an owner.
func affectedText(a *api.AffectedPods) string {
	switch {
	case a.Owner.Kind != "" && a.Count > 0:
		return fmt.Sprintf("%s/%s (%s)", a.Namespace, a.Owner.Argument(), english.Count(a.Count, "pod"))
	case a.Owner.Kind != "":
		return fmt.Sprintf("%s/%s", a.Namespace, a.Owner.Argument())
	default:
		return a.Namespace + "/" + a.Name
	}
}

// CauseLine has causes that read the same, in a few words for a line of a screen.
type CauseLine struct {
	Causes []*api.Cause
	// Number is the number that they have in a status, Pods how many pods suffer from them.
	Number, Pods int
	// Age says for how long the oldest pod has suffered or, without pods, since when the cause is
	// recorded; it is empty if that is not known. Seconds is the same as a number, 0 if not known.
	Age     string
	Seconds int64
	// Affected names the pods and counts the devices.
	Affected string
	// Who can act, Step says what they can do, and Then what changes when they have done it.
	Who, Step, Then string
}

// CauseLines puts the causes of a status into lines, in their order.
func CauseLines(causes []api.Cause) []CauseLine {
	groups, _ := cause.Same(causes)
	lines := make([]CauseLine, 0, len(groups))
	for i, group := range groups {
		c := group[0]
		line := CauseLine{Causes: group, Number: i + 1, Affected: strings.Join(causeGroup(group).blast(), "; "), Who: Actor(c.Actor), Step: stepOf(c)}
		if c.Mended != nil {
			line.Then = c.Mended.Message
		}
		longest, age := int64(0), int64(0)
		for _, c := range group {
			line.Pods, longest, age = line.Pods+c.Pods, max(longest, c.LongestSeconds), max(age, c.AgeSeconds)
		}
		if line.Seconds = cmp.Or(longest, age); line.Seconds > 0 {
			line.Age = Age(line.Seconds)
		}
		lines = append(lines, line)
	}
	return lines
}

// Title returns the number of the causes.
func (l *CauseLine) Title() string { return fmt.Sprint("cause ", l.Number) }

// Write draws all that is known of the causes, as a status with all of its causes does.
func (l *CauseLine) Write(w io.Writer, opts Options) error {
	p := NewPage(opts)
	p.Opts.Wide = true
	causeGroup(l.Causes).write(p, l.Number, true)
	return p.Print(w)
}
