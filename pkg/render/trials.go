// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

const (
	// shownTrials is how many trials that passed are shown one by one.
	shownTrials = 20
	// shownNodes is how many nodes are named that have the same reason.
	shownTrialNodes = 3
)

// Trials draws the result of a test: the trials, the times of stages if there are several
// of a claim, the skipped trials, and the explanation of each kind of failure. With Wide,
// all trials with all checks and their evidence are shown.
func Trials(w io.Writer, r *api.TestReport, opts Options) error {
	p := NewPage(opts)
	writeTrials(p, r.Trials)
	writeNotChecked(p, r.Trials)
	writeTimes(p, r.Times)
	if len(r.Skipped) > 0 {
		p.Heading("Not tried out")
		writeSkipped(p, r.Skipped)
	}
	if len(r.Left) > 0 {
		p.Heading("Not deleted")
		p.List(2, Bad, english.Texts(r.Left, api.ObjectRef.String))
	}
	writeTrialFailures(p, r.Trials)
	p.Blank()
	p.Text(0, Strong, fmt.Sprintf("%s: %s", r.Source, r.Summary))
	return p.Print(w)
}

// writeSkipped shows the skipped trials. Nodes with the same reason share a line.
func writeSkipped(p *Page, all []api.SkippedTrial) {
	type line struct{ subject, message string }
	var lines []line
	nodes := map[line][]string{}
	for i := range all {
		l := line{trialSubject(all[i].Class, all[i].File), all[i].Message}
		if !slices.Contains(lines, l) {
			lines = append(lines, l)
		}
		if all[i].Node != "" {
			nodes[l] = append(nodes[l], all[i].Node)
		}
	}
	for _, l := range lines {
		on := ""
		if names := nodes[l]; len(names) > 0 {
			most := shownTrialNodes
			if p.Opts.Wide {
				most = len(names)
			}
			on = " on " + english.Sample(names, most)
		}
		p.Text(2, Unsure, l.subject+on+": "+l.message)
	}
}

func trialSubject(class, file string) string {
	if class != "" {
		return "class " + class
	}
	return file
}

// writeTrials shows each trial. Of many, those that passed are counted.
func writeTrials(p *Page, trials []api.Trial) {
	passed, shown := 0, 0
	for i := range trials {
		t := &trials[i]
		if t.Result == api.TestPassed || t.Result == api.TestPlanned {
			if passed++; passed > shownTrials && !p.Opts.Wide {
				continue
			}
			shown++
		}
		writeTrial(p, t)
	}
	if more := passed - shown; more > 0 {
		p.Text(0, Faint, fmt.Sprintf("and %d more like these; -o wide shows all", more))
	}
}

// writeNotChecked names once the checks that passed trials skipped.
func writeNotChecked(p *Page, trials []api.Trial) {
	var names []string
	for i := range trials {
		for j := range trials[i].Checks {
			c := &trials[i].Checks[j]
			name := strings.ToLower(string(c.Check))
			if trials[i].Result == api.TestPassed && c.Result == api.TestUnknown && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) > 0 && !p.Opts.Wide {
		p.Text(0, Unsure, fmt.Sprintf("? not checked: %s; -o wide says why", english.JoinAnd(names)))
	}
}

func writeTrial(p *Page, t *api.Trial) {
	mark, sign := signOf(t.Result)
	line := sign + " " + trialSubject(t.Class, t.File)
	if t.Node != "" {
		line += " on " + t.Node
	}
	if t.Round > 1 {
		line += fmt.Sprintf(", round %d", t.Round)
	}
	if devices := trialDevices(t.Devices); devices != "" {
		line += ": " + devices
	}
	p.Text(0, mark, line)
	if t.Message != "" {
		p.Text(4, Plain, t.Message)
	}
	if stages := stageTimes(t.Stages); stages != "" {
		p.Text(4, Faint, stages)
	}
	for i := range t.Checks {
		c := &t.Checks[i]
		if !p.Opts.Wide && (c.Result == api.TestPassed || c.Result == api.TestUnknown && t.Result == api.TestPassed) {
			continue
		}
		mark, sign := signOf(c.Result)
		p.Text(4, mark, fmt.Sprintf("%s %s: %s", sign, strings.ToLower(string(c.Check)), c.Message))
		if p.Opts.Wide || c.Result == api.TestFailed {
			for j := range c.Evidence {
				p.Text(6, Faint, evidenceLine(&c.Evidence[j]))
			}
		}
	}
}

func signOf(result api.TestResult) (Mark, string) {
	switch result {
	case api.TestPassed:
		return Good, "✓"
	case api.TestFailed:
		return Bad, "✗"
	case api.TestPlanned:
		return Plain, "-"
	case api.TestUnknown:
		return Unsure, "?"
	default:
		return Unsure, "?"
	}
}

func trialDevices(devices []api.AllocatedDevice) string {
	names := make([]string, 0, len(devices))
	for i := range devices {
		names = append(names, devices[i].Pool+"/"+devices[i].Device)
	}
	return strings.Join(names, ", ")
}

// stageTimes returns the stages that were reached, each with its time.
func stageTimes(stages []api.TrialStage) string {
	var texts []string
	var total int64
	for _, stage := range stages {
		if stage.Milliseconds != nil {
			total += *stage.Milliseconds
			texts = append(texts, strings.ToLower(string(stage.Stage))+" "+took(*stage.Milliseconds))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return strings.Join(texts, ", ") + "; " + took(total) + " in all"
}

// took returns a time in two or three digits: "12ms", "1.24s", "95s".
func took(milliseconds int64) string {
	switch {
	case milliseconds < 1000:
		return fmt.Sprintf("%dms", milliseconds)
	case milliseconds < 10000:
		return fmt.Sprintf("%.2fs", float64(milliseconds)/1000)
	default:
		return fmt.Sprintf("%.1fs", float64(milliseconds)/1000)
	}
}

// writeTimes draws a table of percentiles for each claim.
func writeTimes(p *Page, times []api.StageTimes) {
	subject := ""
	const number = 7
	for i := range times {
		t := &times[i]
		if of := trialSubject(t.Class, t.File); of != subject {
			subject = of
			p.Heading("Times of " + subject)
			p.TableRow(2, Cell{Text: "Stage", Width: 11, Mark: Faint}, Cell{Text: "Trials", Width: number, Right: true, Mark: Faint},
				Cell{Text: "p50", Width: number, Right: true, Mark: Faint}, Cell{Text: "p90", Width: number, Right: true, Mark: Faint},
				Cell{Text: "p99", Width: number, Right: true, Mark: Faint}, Cell{Text: "max", Width: number, Right: true, Mark: Faint})
		}
		p.TableRow(2, Cell{Text: string(t.Stage), Width: 11}, Cell{Text: fmt.Sprint(t.Count), Width: number, Right: true},
			Cell{Text: took(t.P50), Width: number, Right: true}, Cell{Text: took(t.P90), Width: number, Right: true},
			Cell{Text: took(t.P99), Width: number, Right: true}, Cell{Text: took(t.Max), Width: number, Right: true})
	}
}

// writeTrialFailures shows the explanation of each kind of failure once.
func writeTrialFailures(p *Page, trials []api.Trial) {
	type kind struct {
		class, file string
		stage       api.Stage
		code        api.Code
	}
	seen := map[kind]bool{}
	for i := range trials {
		t := &trials[i]
		if t.Explanation == nil {
			continue
		}
		k := kind{t.Class, t.File, t.Explanation.Stage, t.Explanation.Code}
		if seen[k] {
			continue
		}
		seen[k] = true
		p.Heading("Why " + cmp.Or(t.Pod, t.Name) + " failed")
		writeExplained(p, t.Explanation)
	}
}

// writeExplained draws an explanation without funnels and nodes: the stage of the pod, the
// evidence and the next steps.
func writeExplained(p *Page, e *api.Explanation) {
	p.Text(2, Plain, e.Summary)
	if e.Stage != "" {
		p.Text(2, Plain, "Stage: "+string(e.Stage))
	}
	for i := range e.StageEvidence {
		p.Text(2, Faint, evidenceLine(&e.StageEvidence[i]))
	}
	for i := range e.NextSteps {
		step := &e.NextSteps[i]
		p.Text(2, Plain, Actor(step.Actor)+": "+step.Text)
		p.Verbatim(4, strings.Join(step.Commands, "\n"))
	}
}

// TrialsJUnit writes what came of a test as the report of a test suite. Each stage and
// each check of a trial is a test, with its time; so is each trial that was not made,
// as skipped.
func TrialsJUnit(w io.Writer, r *api.TestReport) error {
	suite := junit.Testsuite{Name: "kubectl-dra test"}
	suite.AddProperty("source", Escape(r.Source))
	if r.KubernetesVersion != "" {
		suite.AddProperty("kubernetesVersion", Escape(r.KubernetesVersion))
	}
	var total int64
	for i := range r.Trials {
		total += addTrial(&suite, &r.Trials[i])
	}
	for i := range r.Skipped {
		s := &r.Skipped[i]
		suite.AddTestcase(junit.Testcase{
			Classname: "kubectl-dra.test", Name: Escape(skippedName(s)), Time: "0", Skipped: &junit.Result{Message: Escape(s.Message), Type: string(s.Reason)},
		})
	}
	suite.Time = seconds(total)
	return writeJUnit(w, suite, suite.Time)
}

// addTrial adds the tests of one trial, and returns how many milliseconds it took.
func addTrial(suite *junit.Testsuite, t *api.Trial) int64 {
	var total int64
	name := func(of string) string { return Escape(t.Name + ": " + of) }
	if len(t.Stages)+len(t.Checks) == 0 {
		test := junit.Testcase{Classname: "kubectl-dra.test", Name: Escape(t.Name), Time: "0"}
		judge(&test, t.Result, t.Message, explanationText(t.Explanation))
		suite.AddTestcase(test)
	}
	for _, stage := range t.Stages {
		took := int64(0)
		if stage.Milliseconds != nil {
			took = *stage.Milliseconds
		}
		total += took
		test := junit.Testcase{Classname: "kubectl-dra.test", Name: name(string(stage.Stage)), Time: seconds(took)}
		message := t.Message
		if stage.Result == api.TestUnknown && t.Result == api.TestFailed {
			message = "not reached"
		}
		judge(&test, stage.Result, message, explanationText(t.Explanation))
		suite.AddTestcase(test)
	}
	for i := range t.Checks {
		c := &t.Checks[i]
		test := junit.Testcase{Classname: "kubectl-dra.test", Name: name(string(c.Check)), Time: "0"}
		var lines []string
		for j := range c.Evidence {
			lines = append(lines, evidenceLine(&c.Evidence[j]))
		}
		judge(&test, c.Result, c.Message, lines)
		suite.AddTestcase(test)
	}
	return total
}

// judge marks a test as failed or skipped.
func judge(test *junit.Testcase, result api.TestResult, message string, lines []string) {
	switch result {
	case api.TestFailed:
		test.Failure = &junit.Result{Message: Escape(message), Type: string(result), Data: escapedLines(lines)}
	case api.TestUnknown, api.TestPlanned:
		test.Skipped = &junit.Result{Message: Escape(message), Type: string(result)}
	case api.TestPassed:
	}
}

// explanationText returns an explanation in a few lines.
func explanationText(e *api.Explanation) []string {
	if e == nil {
		return nil
	}
	lines := []string{e.Summary}
	for i := range e.StageEvidence {
		lines = append(lines, evidenceLine(&e.StageEvidence[i]))
	}
	for i := range e.NextSteps {
		lines = append(lines, remedyLines(&e.NextSteps[i])...)
	}
	return lines
}

func seconds(milliseconds int64) string {
	return fmt.Sprintf("%d.%03d", milliseconds/1000, milliseconds%1000)
}

func skippedName(s *api.SkippedTrial) string {
	name := trialSubject(s.Class, s.File)
	if s.Node != "" {
		name += " on " + s.Node
	}
	return name
}
