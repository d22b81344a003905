// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

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
