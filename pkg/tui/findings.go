// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"bytes"
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/doctor"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/report"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/picture"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/table"
)

// newFindings shows what doctor found last.
func newFindings(known *picture.Diagnosis) (table.Content, error) {
	found, err := known.Newest()
	if err != nil {
		return nil, err
	}
	list := &table.ListOf[api.Finding]{
		Cols: report.FindingColumns(), ID: func(f *api.Finding) string { return f.Code + " " + f.Message }, Pins: 2,
		State: findingTone, StateColumn: "Severity",
		Say: func(f *api.Finding) string {
			if f.Remedy == nil {
				return f.Title
			}
			return f.Title + ": " + f.Remedy.Text
		},
	}
	if found != nil {
		list.Items = found.Findings
	}
	return list, nil
}

func findingTone(f *api.Finding) look.Tone {
	switch f.Severity {
	case api.SeverityError:
		return look.Bad
	case api.SeverityWarning:
		return look.Warning
	case api.SeverityUnknown:
		return look.Faint
	default:
		return look.Plain
	}
}

// findingPage has all of a finding.
func findingPage(f *api.Finding) screen {
	return newPage("finding "+f.Code, func(_ context.Context, _ *picture.Picture, width int) (string, error) {
		about, advice := "", ""
		for _, check := range doctor.Checks() {
			if check.Code == f.Code {
				about, advice = check.About, check.Advice
			}
		}
		var text bytes.Buffer
		err := report.Finding(&text, f, about, advice, render.Options{Width: width, Color: true})
		return text.String(), err
	})
}

// itemOf is the pod or the claim that a finding is about first; nil if there is none.
func itemOf(f *api.Finding) any {
	for _, object := range f.Objects {
		parts := strings.Split(object, "/")
		if len(parts) != 3 {
			continue
		}
		switch parts[0] {
		case api.KindPod:
			return &inventory.Pod{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: parts[1], Name: parts[2]}}}
		case api.KindClaim:
			return &api.Claim{Namespace: parts[1], Name: parts[2]}
		}
	}
	return nil
}
