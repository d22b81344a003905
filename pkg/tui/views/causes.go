// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// causesContent is the list of causes, the worst first.
type causesContent struct {
	widget.ListOf[render.CauseLine]
}

// newCauses lists causes; nil stands for causes that are not found yet.
func newCauses(look *widget.Look, known *live.Causes) *causesContent {
	list := &causesContent{widget.ListOf[render.CauseLine]{
		ID: causeKey, State: causeTone, StateColumn: "#", Say: func(l *render.CauseLine) string { return l.Step },
		Cols: []render.Column[render.CauseLine]{
			{Name: "#", Sort: func(l *render.CauseLine) (float64, bool) { return float64(l.Number), true }, Cell: func(l *render.CauseLine) string {
				return fmt.Sprintf("%s %2d", cmp.Or(severitySign(look, l.Causes[0].Severity), " "), l.Number)
			}},
			{Name: "Since", Sort: func(l *render.CauseLine) (float64, bool) { return float64(l.Seconds), l.Seconds > 0 }, Cell: func(l *render.CauseLine) string { return l.Age }},
			{Name: "Pods", Sort: func(l *render.CauseLine) (float64, bool) { return float64(l.Pods), l.Pods > 0 }, Cell: func(l *render.CauseLine) string { return strconv.Itoa(l.Pods) }},
			{Name: "Who", Cell: func(l *render.CauseLine) string { return l.Who }},
			{Name: "Cause", Cell: func(l *render.CauseLine) string { return l.Causes[0].Message }},
			{Name: "Then", Cell: func(l *render.CauseLine) string { return l.Then }},
		},
	}}
	if known != nil {
		list.Items = known.Lines
	}
	return list
}

// causeKey tells causes apart, in this picture and the next.
func causeKey(l *render.CauseLine) string { return l.Causes[0].ID }

// causeTone returns how severe causes are.
func causeTone(l *render.CauseLine) widget.Tone { return tones(l.Causes[0].Severity) }

// tones returns the color of a severity.
func tones(severity api.Severity) widget.Tone {
	switch severity {
	case api.SeverityWarning:
		return widget.Warning
	case api.SeverityInfo:
		return widget.Faint
	case api.SeverityError, api.SeverityUnknown:
		return widget.Bad
	default:
		return widget.Plain
	}
}

// severitySign returns a sign for a severity: colors alone do not tell it to everybody. It is empty for
// what is only worth knowing.
func severitySign(l *widget.Look, severity api.Severity) string {
	switch severity {
	case api.SeverityError:
		return l.Glyphs.Unhealthy
	case api.SeverityWarning:
		return l.Glyphs.Tainted
	case api.SeverityUnknown:
		return l.Glyphs.Unusable
	case api.SeverityInfo:
	}
	return ""
}

// Severities explain the signs of the severities of causes, the worst first.
func Severities(l *widget.Look, known *live.Causes) []string {
	var texts []string
	if known == nil {
		return nil
	}
	for _, severity := range []api.Severity{api.SeverityError, api.SeverityWarning, api.SeverityUnknown} {
		if slices.ContainsFunc(known.Lines, func(line render.CauseLine) bool { return line.Causes[0].Severity == severity }) {
			texts = append(texts, l.Say(tones(severity), severitySign(l, severity))+" "+l.Say(widget.Faint, render.Words(severity)))
		}
	}
	return texts
}

// Also returns the pods that suffer and their owners, which no column has.
func (c *causesContent) Also(row int) []string {
	var names []string
	for _, of := range c.Items[row].Causes {
		for i := range of.Affected {
			names = append(names, of.Affected[i].Namespace+"/"+of.Affected[i].Name, of.Affected[i].Owner.Name)
		}
	}
	return names
}

// Lines draw all that is known of a cause.
func (c *causesContent) Lines(l *widget.Look, row, width int) []string {
	return causeLines(l, &c.Items[row], width)
}

func causeLines(l *widget.Look, of *render.CauseLine, width int) []string {
	text, err := CauseText(of).Write(context.Background(), nil, width)
	if err != nil {
		return []string{err.Error()}
	}
	return strings.Split(l.Recolor(text), "\n")
}

// CauseText shows all that is known of causes that read the same.
func CauseText(of *render.CauseLine) *Text {
	return &Text{Name: of.Title(), Write: func(_ context.Context, _ *live.Picture, width int) (string, error) {
		var text bytes.Buffer
		err := of.Write(&text, render.Options{Width: width, Color: true})
		var lines []string
		for line := range strings.SplitSeq(strings.TrimRight(text.String(), "\n"), "\n") {
			// Only commands are longer than there is room.
			command := strings.TrimLeft(line, " ")
			margin := line[:len(line)-len(command)]
			if ansi.StringWidth(line) <= width {
				lines = append(lines, line)
				continue
			}
			lines = append(lines, widget.Indented(command, len(margin), width)...)
		}
		return strings.Join(lines, "\n"), err
	}}
}

// ItemsOf returns the objects of an item, and the objects that suffer from it: for a cause, the
// objects at fault and the pods or workloads; for others, the item alone.
func ItemsOf(p *live.Picture, item any) (objects, suffer []any) {
	line, ok := item.(*render.CauseLine)
	if !ok || p == nil {
		return []any{item}, nil
	}
	add := func(list []any, o api.ObjectRef) []any {
		if found := itemOf(p, o); found != nil {
			list = append(list, found)
		}
		return list
	}
	for _, cause := range line.Causes {
		for _, o := range cause.Objects {
			objects = add(objects, o)
		}
		for i := range cause.Affected {
			if a := &cause.Affected[i]; a.Count > 0 {
				suffer = add(suffer, api.Ref(api.KindPod, a.Namespace, a.Name))
			} else {
				suffer = append(suffer, &a.Owner)
			}
		}
	}
	return objects, suffer
}

// itemOf returns the item of an object; nil if it has none.
func itemOf(p *live.Picture, o api.ObjectRef) any {
	snap := p.Cluster.Snapshot
	switch o.Kind {
	case api.KindNode:
		return first(p.Inventory.Nodes(), func(n *inventory.Node) bool { return n.Name == o.Name })
	case api.KindDevice:
		return first(p.Inventory.Devices(), func(d *api.Device) bool { return inventory.DeviceName(d) == o.Name })
	case "DeviceTaintRule":
		return first(p.Inventory.Taints(), func(t *api.Taint) bool { return t.Rule == o.Name })
	case "Pool":
		return first(p.Pools, func(pool *api.Pool) bool { return inventory.PoolName(pool) == o.Name })
	case "ResourceSlice":
		for _, slice := range snap.Slices {
			if slice.Name == o.Name {
				return first(p.Pools, func(pool *api.Pool) bool {
					return pool.Driver == slice.Spec.Driver && pool.Name == slice.Spec.Pool.Name
				})
			}
		}
	case "DeviceClass":
		if snap.Class(o.Name) != nil {
			return &api.Class{Name: o.Name}
		}
	case api.KindPod:
		if pod := snap.Pod(o.Namespace, o.Name); pod != nil {
			return &inventory.Pod{Pod: pod}
		}
	case api.KindClaim:
		return &api.Claim{Namespace: o.Namespace, Name: o.Name}
	}
	return nil
}

// first returns the first of a list that is wanted; nil if none is.
func first[T any](list []T, wanted func(*T) bool) any {
	for i := range list {
		if wanted(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// StepsOf returns what somebody can do about a cause, or about a pod or a workload that does not
// run.
func StepsOf(known *live.Causes, item any) []widget.Step {
	var of api.ObjectRef
	switch x := item.(type) {
	case *render.CauseLine:
		var steps []widget.Step
		for _, c := range x.Causes {
			if next := c.NextStep; next != nil && !slices.ContainsFunc(steps, func(s widget.Step) bool { return s.Text == next.Text }) {
				steps = append(steps, widget.Step{Who: x.Who, Text: next.Text, Commands: next.Commands})
			}
		}
		return steps
	case *inventory.Pod:
		of = api.Ref(api.KindPod, x.Namespace, x.Name)
	case *api.Claim:
		of = api.Ref(api.KindClaim, x.Namespace, x.Name)
	case *api.ObjectRef:
		of = *x
	}
	if row := known.RowOf(of); row != nil {
		return widget.Steps(row.First)
	}
	return nil
}

// worstOf returns the first cause of a row; nil if it has none.
func worstOf(row *cause.Row, known *live.Causes) *api.Cause {
	if len(row.Causes) == 0 {
		return nil
	}
	return &known.Status.Causes[row.Causes[0]]
}

// HeldBack says why a pod that fits waits, and what somebody can do first; empty for others, whose
// explanation says it.
func HeldBack(known *live.Causes, of api.ObjectRef, width int) string {
	row := known.RowOf(of)
	if row == nil || row.Verdict != api.Fits || len(row.Causes) == 0 {
		return ""
	}
	text := worstOf(row, known).Message + "."
	if steps := widget.Steps(row.First); len(steps) > 0 {
		text += "\n" + steps[0].Who + ": " + steps[0].Text
	}
	return ansi.Wrap(render.EscapeLines(text), width, "") + "\n\n"
}

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
