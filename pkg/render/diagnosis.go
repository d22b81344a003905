// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"math"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// severitySection has the findings of a severity.
type severitySection struct {
	severity api.Severity
	title    string
	mark     Mark
}

func severitySections() []severitySection {
	return []severitySection{
		{api.SeverityError, "Errors", Bad},
		{api.SeverityWarning, "Warnings", Unsure},
		{api.SeverityInfo, "Information", Plain},
		{api.SeverityUnknown, "Not checked", Faint},
	}
}

// Diagnosis draws the findings, the worst first. With Wide, all objects and all
// evidence are shown, with Commands the commands of remedies. In place of errors and warnings,
// the causes behind them are drawn, if there are some.
func Diagnosis(w io.Writer, d *api.Diagnosis, causes []api.Cause, opts Options) error {
	p := NewPage(opts)
	total := diagnosisTotal(d)
	if len(causes) > 0 {
		total += " (-o wide lists them)"
		writeCauses(p, causes, causesOptions{lines: math.MaxInt, findings: true})
	}
	for _, section := range severitySections() {
		if len(causes) == 0 || section.severity == api.SeverityInfo || section.severity == api.SeverityUnknown {
			writeFindings(p, d.Findings, section)
		}
	}
	p.Blank()
	p.Text(0, Strong, total)
	return p.Print(w)
}

func writeFindings(p *Page, all []api.Finding, section severitySection) {
	var list []*api.Finding
	for i := range all {
		if all[i].Severity == section.severity {
			list = append(list, &all[i])
		}
	}
	if len(list) == 0 {
		return
	}
	p.Heading(section.title)
	if section.severity == api.SeverityUnknown {
		writeUnknown(p, list)
		return
	}
	margin := 2 + len(list[0].Code) + ColumnGap
	for _, f := range list {
		p.Row(2, Cell{Text: f.Code, Width: len(f.Code), Mark: section.mark}, Cell{Text: f.Message})
		if p.Opts.Wide {
			for _, fact := range f.Evidence {
				p.Text(margin, Faint, evidenceLine(&fact))
			}
		}
		if f.Remedy == nil {
			continue
		}
		p.Text(margin, Plain, Actor(f.Remedy.Actor)+": "+f.Remedy.Text)
		// Commands that only read are short; others are shown on request.
		if p.Opts.Wide || p.Opts.Commands || len(f.Remedy.Commands) == 1 && looks(f.Remedy.Commands[0]) {
			p.Verbatim(margin, strings.Join(f.Remedy.Commands, "\n"))
		}
	}
}

// writeUnknown groups checks by the missing resources. With Wide, it names them.
func writeUnknown(p *Page, list []*api.Finding) {
	var messages []string
	codes := map[string][]string{}
	for _, f := range list {
		if codes[f.Message] == nil {
			messages = append(messages, f.Message)
		}
		codes[f.Message] = append(codes[f.Message], f.Code)
	}
	for _, message := range messages {
		which := english.Count(len(codes[message]), "check")
		if p.Opts.Wide {
			which = strings.Join(codes[message], ", ")
		}
		p.Text(2, Faint, which+": "+strings.TrimPrefix(message, "not checked: "))
	}
}

// Finding draws one finding with its details: the meaning of the check, the advice, the
// objects, the evidence and the commands.
func Finding(w io.Writer, f *api.Finding, about, advice string, opts Options) error {
	p := NewPage(opts)
	p.Text(0, Strong, f.Code+": "+f.Title)
	p.Text(0, Plain, f.Message)
	p.Heading("What it means")
	p.Text(2, Plain, about)
	p.Heading("What to do")
	if f.Remedy == nil {
		p.Text(2, Plain, advice)
	} else {
		p.Text(2, Plain, Actor(f.Remedy.Actor)+": "+f.Remedy.Text)
		p.Verbatim(2, strings.Join(f.Remedy.Commands, "\n"))
	}
	if len(f.Evidence) > 0 {
		p.Heading("Evidence")
		for _, fact := range f.Evidence {
			p.Text(2, Plain, evidenceLine(&fact))
		}
	}
	if len(f.Objects) > 0 {
		p.Heading("Objects")
		for _, object := range f.Objects {
			p.Text(2, Plain, object.String())
		}
		if more := f.ObjectCount - len(f.Objects); more > 0 {
			p.Text(2, Faint, fmt.Sprintf("and %d more", more))
		}
	}
	return p.Print(w)
}

// FindingColumns returns the columns of a list of findings.
func FindingColumns() []Column[api.Finding] {
	return []Column[api.Finding]{
		{Name: "Severity", Cell: func(f *api.Finding) string { return string(f.Severity) }},
		{Name: "Code", Cell: func(f *api.Finding) string { return f.Code }},
		{Name: "Message", Cell: func(f *api.Finding) string { return f.Message }},
	}
}

func diagnosisTotal(d *api.Diagnosis) string {
	c := d.Counts
	of := d.Source
	if d.Namespace != "" {
		of += ", without findings of other namespaces than " + d.Namespace
	}
	text := fmt.Sprintf("%s of %s: %s, %s, %d informational", english.Count(len(d.Checks), "check"), of,
		english.Count(c.Error, "error"), english.Count(c.Warning, "warning"), c.Info)
	switch {
	case c.Unknown == len(d.Checks):
		return fmt.Sprintf("None of %s of %s could be made", english.Count(len(d.Checks), "check"), d.Source)
	case c.Error+c.Warning+c.Info == 0:
		text = fmt.Sprintf("%s of %s found nothing wrong", english.Count(len(d.Checks), "check"), of)
	}
	if c.Unknown > 0 {
		text += fmt.Sprintf("; %s could not be made", english.Count(c.Unknown, "check"))
	}
	if d.Ignored > 0 {
		text += fmt.Sprintf("; %s ignored by annotation", english.Count(d.Ignored, "finding"))
	}
	return text
}
