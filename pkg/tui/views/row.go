// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/doctor"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/explanation"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/tables"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// Explainer is a content that knows more about its rows than their columns have.
type Explainer interface {
	// Lines draw the details of a row; nil for a row without more details than its item has.
	Lines(l *widget.Look, row, width int) []string
}

// RowText returns the columns of a row, without those that are shown, and the lines behind it.
func RowText(ctx context.Context, p *live.Picture, l *widget.Look, c widget.Content, row int, shown map[int]bool, width int) []string {
	var lines []string
	if explained, ok := c.(Explainer); ok {
		for _, line := range explained.Lines(l, row, width) {
			lines = append(lines, l.Whole(line, width)...)
		}
		if lines != nil {
			return lines
		}
	}
	more, known := textBehind(ctx, p, l, c.Item(row), width)
	more = l.Recolor(more)
	if !known {
		lines = columnLines(l, c, row, shown, width)
		if title := titleOf(c, row, shown); len(lines) > 0 && title != "" {
			lines = slices.Insert(lines, 0, l.Say(widget.Strong, ansi.Truncate(title, width, l.Glyphs.More)))
		}
	}
	if len(lines) > 0 {
		lines = append(lines, "")
	}
	for line := range strings.SplitSeq(strings.TrimRight(more, "\n"), "\n") {
		lines = append(lines, ansi.Truncate(line, width, l.Glyphs.More))
	}
	return lines
}

// titleOf returns the pinned columns of a row; empty if one of them stands among those that are not
// shown.
func titleOf(c widget.Content, row int, shown map[int]bool) string {
	var names []string
	for column := range min(c.Pinned(), len(c.Columns())) {
		if !shown[column] {
			return ""
		}
		names = append(names, c.Cell(row, column))
	}
	return strings.Join(names, "/")
}

// breaks are where a value that is too long for a line may be cut, besides spaces and hyphens.
const breaks = ",:/"

// columnLines returns the columns of a row with values, without those that are shown, one below the
// other.
func columnLines(l *widget.Look, c widget.Content, row int, shown map[int]bool, width int) []string {
	titles := c.Columns()
	widest := 0
	for _, title := range titles {
		widest = max(widest, ansi.StringWidth(title))
	}
	var lines []string
	for column, title := range titles {
		text := c.Cell(row, column)
		if text == "" || text == "-" || shown[column] {
			continue
		}
		for i, line := range strings.Split(ansi.Wrap(text, max(width-widest-2, 1), breaks), "\n") {
			if i > 0 {
				title = ""
			}
			lines = append(lines, l.Say(widget.Faint, widget.Padded(title, widest))+"  "+c.Paint(l, row, column, line))
		}
	}
	return lines
}

// textBehind returns the text about an item; known is true if it says all that the columns say.
func textBehind(ctx context.Context, p *live.Picture, l *widget.Look, item any, width int) (text string, known bool) {
	options := render.Options{Width: width, Color: true}
	var page *Text
	switch x := item.(type) {
	case *api.Finding:
		page, known = FindingText(x), true
	case *api.Device:
		return deviceText(l, x), false
	case *api.Claim:
		var text bytes.Buffer
		if err := tables.ClaimDetails(&text, []*api.Claim{x}, options); err != nil {
			return err.Error(), false
		}
		return treeOrError(ctx, p, item, width) + "\n" + text.String(), false
	case *api.Pool:
		var text bytes.Buffer
		if err := tables.PoolDetails(&text, []*api.Pool{x}, options); err != nil {
			return err.Error(), false
		}
		return text.String() + "\n" + treeOrError(ctx, p, item, width), false
	case *api.Taint:
		return strings.Join(x.Devices, "\n"), false
	default:
		return treeOrError(ctx, p, item, width), false
	}
	if page != nil {
		text, err := page.Write(ctx, p, width)
		if err != nil {
			return err.Error(), known
		}
		return text, known
	}
	return "", known
}

func treeOrError(ctx context.Context, p *live.Picture, item any, width int) string {
	page := TreeText(item)
	if page == nil {
		return ""
	}
	text, err := page.Write(ctx, p, width)
	if err != nil {
		return err.Error()
	}
	return text
}

// deviceText returns what a device publishes.
func deviceText(l *widget.Look, d *api.Device) string {
	var lines []string
	section := func(title string, of map[string]string) {
		if len(of) == 0 {
			return
		}
		lines = append(lines, l.Say(widget.Strong, title))
		names := make([]string, 0, len(of))
		for name := range of {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			lines = append(lines, "  "+render.Escape(name)+"  "+render.Escape(of[name]))
		}
	}
	section("Attributes", d.Attributes)
	section("Counters", d.Counters)
	return strings.Join(lines, "\n")
}

// Text is the text about an item.
type Text struct {
	Name string
	// Write makes the text, as wide as the screen. It is for the background.
	Write func(ctx context.Context, p *live.Picture, width int) (string, error)
	// Again is true if it is worth to write it once more.
	Again bool
	// Of is the object that somebody can do something about; nil for none.
	Of *api.ObjectRef
}

// errGone is an object that was there when it was selected.
var errGone = errors.New("is gone")

// WhyText explains the claim or pod that an item is, or the claim that has the
// device. Nil if there is none.
func WhyText(item any) *Text {
	var of api.ObjectRef
	if f, ok := item.(*api.Finding); ok {
		item = itemOfFinding(f)
	}
	switch x := item.(type) {
	case *api.ObjectRef:
		of = *x
	case *api.Claim:
		of = api.Ref(api.KindClaim, x.Namespace, x.Name)
	case *inventory.Pod:
		of = api.Ref(api.KindPod, x.Namespace, x.Name)
	case *api.Device:
		if len(x.Holders) == 0 {
			return nil
		}
		of = api.Ref(api.KindClaim, x.Holders[0].Namespace, x.Holders[0].Claim)
	default:
		return nil
	}
	return &Text{
		Name:  "why " + of.Title(),
		Again: true,
		Of:    &of,
		Write: func(ctx context.Context, p *live.Picture, width int) (string, error) {
			answer, err := p.Explain(ctx, explain.Options{Object: of})
			if err != nil {
				return "", err
			}
			var text bytes.Buffer
			err = explanation.Full(&text, answer, render.Options{Width: width, Color: true, Screen: true})
			return text.String(), err
		},
	}
}

// itemOfFinding returns the first pod or claim of a finding; nil if there is none.
func itemOfFinding(f *api.Finding) any {
	for _, object := range f.Objects {
		switch object.Kind {
		case api.KindPod:
			return &inventory.Pod{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name}}}
		case api.KindClaim:
			return &api.Claim{Namespace: object.Namespace, Name: object.Name}
		}
	}
	return nil
}

// FindingText returns all of a finding.
func FindingText(f *api.Finding) *Text {
	return &Text{Name: "finding " + f.Code, Write: func(_ context.Context, _ *live.Picture, width int) (string, error) {
		about, advice := "", ""
		for _, check := range doctor.Checks() {
			if check.Code == f.Code {
				about, advice = check.About, check.Advice
			}
		}
		var text bytes.Buffer
		err := render.Finding(&text, f, about, advice, render.Options{Width: width, Color: true})
		return text.String(), err
	}}
}
