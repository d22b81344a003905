// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

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
