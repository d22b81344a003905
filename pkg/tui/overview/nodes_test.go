// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// TestNodeLines puts groups beside each other, and those that are longer than a line on
// several.
func TestNodeLines(t *testing.T) {
	cells := func(signs string) []widget.HeatCell {
		var list []widget.HeatCell
		for i, sign := range signs {
			list = append(list, widget.HeatCell{Glyph: string(sign), Tone: []widget.Tone{widget.Busy, widget.Good}[i/3%2]})
		}
		return list
	}
	l := widget.NewLook(func(string) string { return "" })
	p := New(&l)
	p.Set(Model{Nodes: []widget.HeatGroup{
		{Name: "r1", Cells: cells("abc")}, {Name: "r2", Cells: cells("defg")}, {Name: "r3", Cells: cells("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")}, {Cells: cells("xyz")},
	}})
	want := []string{" r1 abc  r2 defg", " r3 0123456789ABCDEFG", " HIJKLMNOPQRSTUVWXYZ", " xyz"}
	var got []string
	for _, line := range p.nodeLines(21) {
		line = strings.TrimRight(ansi.Strip(line), " ")
		if ansi.StringWidth(line) > 21 {
			t.Errorf("%q is too long", line)
		}
		got = append(got, line)
	}
	if !slices.Equal(got, want) {
		t.Errorf("it is %q, want %q", got, want)
	}
}
