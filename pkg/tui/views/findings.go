// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// newFindings shows what doctor found last.
func newFindings(known *live.Causes) widget.Content {
	list := &widget.ListOf[api.Finding]{
		Cols: render.FindingColumns(), ID: func(f *api.Finding) string { return f.Code + " " + f.Message }, Pins: 2,
		State: FindingTone, StateColumn: "Severity",
		Say: func(f *api.Finding) string {
			if f.Remedy == nil {
				return f.Title
			}
			return f.Title + ": " + f.Remedy.Text
		},
	}
	if known != nil {
		list.Items = known.Diagnosis.Findings
	}
	return list
}

// FindingTone returns how severe a finding is.
func FindingTone(f *api.Finding) widget.Tone {
	switch f.Severity {
	case api.SeverityError:
		return widget.Bad
	case api.SeverityWarning:
		return widget.Warning
	case api.SeverityUnknown:
		return widget.Faint
	default:
		return widget.Plain
	}
}
