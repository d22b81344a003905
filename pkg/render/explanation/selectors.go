// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"strconv"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

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
