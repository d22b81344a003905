// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// homepage is where the pages of rules stand.
const homepage = "https://github.com/kubectl-dra/kubectl-dra"

// Report lists the checks and findings of a verb, for programs that read the reports of
// linters and of tests.
type Report struct {
	// Verb is the verb that made the report, such as "doctor"; Version is the version of
	// the program.
	Verb, Version string
	// Source names the checked cluster or files in a few words.
	Source string
	// Rules are the checks that were made.
	Rules []Rule
	// Findings are each of one of the rules.
	Findings []api.Finding
	// FailOn is the severity from which on a finding fails.
	FailOn api.Severity
}

// Rule is a check of which findings are.
type Rule struct {
	// Code is stable, Title says in a few words what the check looks for.
	Code, Title string
	// About says what it means, Advice what can be done.
	About, Advice string
	// Page is its page, a path in the repository; it may be empty.
	Page string
	// Severity is the severity of its findings, unless they have their own.
	Severity api.Severity
}

// Lint draws the findings as compilers do: each begins with the file, the line
// and the column, which editors and terminals follow. With Wide, the evidence is shown. fixable
// is false if what was checked is in no file that --fix could change.
func Lint(w io.Writer, r *api.LintReport, fixable bool, opts Options) error {
	// A line for each, however long: other programs read them, too.
	opts.Width = 0
	p := NewPage(opts)
	for i := range r.Findings {
		f := &r.Findings[i]
		mark := Plain
		for _, section := range severitySections() {
			if section.severity == f.Severity {
				mark = section.mark
			}
		}
		// The position is one word that nothing breaks.
		head := place(f) + ": "
		level := fmt.Sprintf("%s %s: ", f.Severity, f.Code)
		p.Row(0, Cell{Text: head + level + f.Message, Mark: mark})
		if p.Opts.Wide {
			for _, fact := range f.Evidence {
				p.Text(2, Faint, evidenceLine(&fact))
			}
		}
		if f.Remedy != nil {
			text := "-> " + f.Remedy.Text
			if len(f.Fix) > 0 && fixable {
				text += " (--fix does)"
			}
			p.Text(2, Plain, text)
		}
	}
	p.Blank()
	p.Text(0, Strong, lintTotal(r))
	return p.Print(w)
}

func lintTotal(r *api.LintReport) string {
	c := r.Counts
	what := fmt.Sprintf("%s of %s", english.Count(r.Objects, "object"), english.Count(r.Files, "file"))
	if r.Source != "" {
		what += ", held against " + r.Source
	}
	if r.Objects == 0 {
		return "No objects that have to do with devices in " + english.Count(r.Files, "file")
	}
	text := fmt.Sprintf("%s: %s, %s, %d informational", what, english.Count(c.Error, "error"), english.Count(c.Warning, "warning"), c.Info)
	if c.Error+c.Warning+c.Info == 0 {
		text = fmt.Sprintf("%s: nothing found", what)
	}
	if c.Unknown > 0 {
		text += fmt.Sprintf("; %s could not be answered", english.Count(c.Unknown, "question"))
	}
	if r.Ignored > 0 {
		text += fmt.Sprintf("; %s ignored by annotation", english.Count(r.Ignored, "finding"))
	}
	return text
}

// GitHub writes a report as commands of a workflow of GitHub Actions, which shows the
// findings beside the lines of a pull request.
func GitHub(w io.Writer, r *Report) error {
	var b strings.Builder
	for i := range r.Findings {
		f := &r.Findings[i]
		command := "notice"
		switch f.Severity {
		case api.SeverityError:
			command = "error"
		case api.SeverityWarning:
			command = "warning"
		case api.SeverityInfo, api.SeverityUnknown:
		}
		properties := []string{"title=" + inProperty(f.Code+" "+f.Title)}
		if f.File != "" {
			properties = append(properties, "file="+inProperty(f.File))
		}
		if f.Line > 0 {
			properties = append(properties, fmt.Sprintf("line=%d", f.Line))
		}
		if f.Column > 0 {
			properties = append(properties, fmt.Sprintf("col=%d", f.Column))
		}
		text := strings.Join(append([]string{f.Message}, remedyLines(f.Remedy)...), "\n")
		fmt.Fprintf(&b, "::%s %s::%s\n", command, strings.Join(properties, ","), inCommand(text))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("print workflow commands: %w", err)
	}
	return nil
}

// inCommand keeps a text from ending its line, which would begin another command.
func inCommand(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(Escape(line), "%", "%25")
	}
	return strings.Join(lines, "%0A")
}

// inProperty keeps a text from ending a property of a command.
func inProperty(text string) string {
	return strings.NewReplacer("%", "%25", ":", "%3A", ",", "%2C").Replace(Escape(text))
}

// JUnit writes a report as a test suite. A rule without findings is a passed test. Each
// finding is a test: a failed one from the severity of FailOn on, a skipped one if it could
// not be checked.
func JUnit(w io.Writer, r *Report) error {
	suite := junit.Testsuite{Name: "kubectl-dra " + r.Verb, Time: "0"}
	suite.AddProperty("source", Escape(r.Source))
	if r.Version != "" {
		suite.AddProperty("version", Escape(r.Version))
	}
	for i := range r.Rules {
		rule := &r.Rules[i]
		test := junit.Testcase{Classname: "kubectl-dra." + r.Verb, Name: rule.Code + " " + rule.Title, Time: "0"}
		passes := true
		for k := range r.Findings {
			if f := &r.Findings[k]; f.Code == rule.Code {
				passes = false
				suite.AddTestcase(findingInJUnit(test, f, fails(f.Severity, r.FailOn)))
			}
		}
		if passes {
			suite.AddTestcase(test)
		}
	}
	return writeJUnit(w, suite, "0")
}

// writeJUnit writes a report with one suite, which took so many seconds.
func writeJUnit(w io.Writer, suite junit.Testsuite, seconds string) error {
	suites := junit.Testsuites{Time: seconds}
	suites.AddSuite(suite)
	if _, err := io.WriteString(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"); err != nil {
		return fmt.Errorf("print JUnit: %w", err)
	}
	if err := suites.WriteXML(w); err != nil {
		return fmt.Errorf("print JUnit: %w", err)
	}
	return nil
}

func findingInJUnit(test junit.Testcase, f *api.Finding, failure bool) junit.Testcase {
	if at := place(f); at != "" {
		test.Name += " " + Escape(at)
	} else if len(f.Objects) > 0 {
		test.Name += " " + Escape(f.Objects[0].String())
	}
	message := Escape(f.Message)
	if f.Severity == api.SeverityUnknown {
		test.Skipped = &junit.Result{Message: message}
		return test
	}
	var lines []string
	if at := place(f); at != "" {
		lines = append(lines, at)
	}
	for i := range f.Evidence {
		lines = append(lines, evidenceLine(&f.Evidence[i]))
	}
	lines = append(lines, remedyLines(f.Remedy)...)
	if failure {
		test.Failure = &junit.Result{Message: message, Type: string(f.Severity), Data: escapedLines(lines)}
	} else {
		test.SystemOut = &junit.Output{Data: escapedLines(append([]string{string(f.Severity) + ": " + f.Message}, lines...))}
	}
	return test
}

// fails reports whether a severity is that bad, or worse.
func fails(severity, from api.Severity) bool {
	order := severitySections()
	rank := func(s api.Severity) int {
		return slices.IndexFunc(order, func(section severitySection) bool { return section.severity == s })
	}
	return rank(severity) <= rank(from)
}

// The part of the Static Analysis Results Interchange Format 2.1.0 that a report
// needs (docs.oasis-open.org/sarif/sarif/v2.1.0).
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID                   string           `json:"id"`
		ShortDescription     sarifText        `json:"shortDescription"`
		FullDescription      *sarifText       `json:"fullDescription,omitempty"`
		Help                 *sarifText       `json:"help,omitempty"`
		HelpURI              string           `json:"helpUri,omitempty"`
		DefaultConfiguration sarifRuleDefault `json:"defaultConfiguration"`
	}
	sarifRuleDefault struct {
		Level string `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		ExecutionSuccessful        bool                `json:"executionSuccessful"`
		ToolExecutionNotifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	// sarifNotification reports a check that could not be made.
	sarifNotification struct {
		AssociatedRule sarifRuleReference `json:"associatedRule"`
		Level          string             `json:"level"`
		Message        sarifText          `json:"message"`
	}
	sarifRuleReference struct {
		ID string `json:"id"`
	}
	sarifResult struct {
		RuleID     string          `json:"ruleId"`
		RuleIndex  int             `json:"ruleIndex"`
		Level      string          `json:"level"`
		Message    sarifText       `json:"message"`
		Locations  []sarifLocation `json:"locations,omitempty"`
		Properties sarifProperties `json:"properties"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
		Kind               string `json:"kind"`
	}
	// sarifProperties is the rest of a finding, as in -o json.
	sarifProperties struct {
		Severity api.Severity   `json:"severity"`
		Evidence []api.Evidence `json:"evidence,omitempty"`
		Remedy   *api.NextStep  `json:"remedy,omitempty"`
	}
)

// SARIF writes a report as a log of SARIF 2.1.0. Objects are logical locations; a
// finding in a file has the position in it. What could not be checked is no result
// but a notification.
func SARIF(w io.Writer, r *Report) error {
	run := sarifRun{
		Tool: sarifTool{Driver: sarifDriver{
			Name: "kubectl-dra " + r.Verb, Version: r.Version, InformationURI: homepage, Rules: []sarifRule{},
		}},
		Invocations: []sarifInvocation{{ExecutionSuccessful: true}},
		Results:     []sarifResult{},
	}
	for i := range r.Rules {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, ruleInSARIF(&r.Rules[i]))
	}
	invocation := &run.Invocations[0]
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Severity == api.SeverityUnknown {
			invocation.ToolExecutionNotifications = append(invocation.ToolExecutionNotifications, sarifNotification{
				AssociatedRule: sarifRuleReference{f.Code}, Level: "warning", Message: sarifText{f.Message},
			})
			continue
		}
		at := slices.IndexFunc(r.Rules, func(rule Rule) bool { return rule.Code == f.Code })
		run.Results = append(run.Results, resultInSARIF(f, at))
	}
	text := &bytes.Buffer{}
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}); err != nil {
		return fmt.Errorf("encode SARIF: %w", err)
	}
	if _, err := w.Write(EscapeJSON(text.Bytes())); err != nil {
		return fmt.Errorf("print SARIF: %w", err)
	}
	return nil
}

func ruleInSARIF(rule *Rule) sarifRule {
	out := sarifRule{
		ID: rule.Code, ShortDescription: sarifText{rule.Title}, DefaultConfiguration: sarifRuleDefault{sarifLevel(rule.Severity)},
	}
	if rule.About != "" {
		out.FullDescription = &sarifText{rule.About}
	}
	if rule.Advice != "" {
		out.Help = &sarifText{rule.Advice}
	}
	if rule.Page != "" {
		out.HelpURI = homepage + "/blob/main/" + rule.Page
	}
	return out
}

func resultInSARIF(f *api.Finding, rule int) sarifResult {
	out := sarifResult{
		RuleID: f.Code, RuleIndex: rule, Level: sarifLevel(f.Severity),
		Message:    sarifText{strings.Join(append([]string{f.Message}, remedyLines(f.Remedy)...), "\n")},
		Properties: sarifProperties{f.Severity, f.Evidence, f.Remedy},
	}
	where := sarifLocation{}
	if f.File != "" {
		where.Physical = &sarifPhysical{Artifact: sarifArtifact{fileURI(f.File)}}
		if f.Line > 0 {
			where.Physical.Region = &sarifRegion{f.Line, f.Column}
		}
	}
	for _, o := range f.Objects {
		where.Logical = append(where.Logical, sarifLogical{FullyQualifiedName: o.String(), Kind: "resource"})
	}
	if where.Physical != nil || len(where.Logical) > 0 {
		out.Locations = []sarifLocation{where}
	}
	return out
}

func sarifLevel(severity api.Severity) string {
	switch severity {
	case api.SeverityError:
		return "error"
	case api.SeverityWarning:
		return "warning"
	default:
		return "note"
	}
}

// fileURI returns a path as a reference: relative to where the program runs, if the path
// is.
func fileURI(path string) string {
	slashed := filepath.ToSlash(path)
	if !filepath.IsAbs(path) {
		// A first part with a colon would be a scheme.
		return (&url.URL{Path: slashed}).String()
	}
	return (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(slashed, "/")}).String()
}

// remedyLines returns what can be done, with the commands, a line for each.
func remedyLines(step *api.NextStep) []string {
	if step == nil {
		return nil
	}
	return append([]string{Actor(step.Actor) + ": " + step.Text}, step.Commands...)
}

// place returns the file of a finding with the known position in it.
func place(f *api.Finding) string {
	switch {
	case f.Line > 0 && f.Column > 0:
		return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	case f.Line > 0:
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	default:
		return f.File
	}
}

func escapedLines(lines []string) string {
	escaped := make([]string, 0, len(lines))
	for _, line := range lines {
		escaped = append(escaped, EscapeLines(line))
	}
	return strings.Join(escaped, "\n")
}
