// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
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
