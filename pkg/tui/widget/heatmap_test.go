// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func groups(sizes ...int) []HeatGroup {
	var list []HeatGroup
	for i, size := range sizes {
		g := HeatGroup{Name: fmt.Sprintf("rack-%d", i), Note: fmt.Sprintf("%d nodes", size)}
		for at := range size {
			g.Cells = append(g.Cells, HeatCell{Key: fmt.Sprintf("%d/%d", i, at), Glyph: "▇", Tone: Busy})
		}
		list = append(list, g)
	}
	return list
}

func mapOf(width, height int, sizes ...int) *HeatMap {
	m := &HeatMap{}
	m.SetSize(width, height)
	m.Set(groups(sizes...))
	return m
}

func lines(m *HeatMap) []string {
	l := NewLook(func(string) string { return "" })
	drawn := m.View(&l, false)
	for i := range drawn {
		drawn[i] = ansi.Strip(drawn[i])
	}
	return drawn
}

// TestLines wraps groups that are longer than a line, and puts notes under each other.
func TestHeatMapLines(t *testing.T) {
	m := mapOf(30, 3, 3, 14)
	want := []string{
		" rack-0  ▇▇▇         3 nodes", " rack-1  ▇▇▇▇▇▇▇▇▇▇  14 nodes", "         ▇▇▇▇",
	}
	if got := lines(m); !slices.Equal(got, want) {
		t.Errorf("it is\n%s", strings.Join(got, "\n"))
	}
}

// TestHeatMapFillsRoom makes cells wider where there is room for all of them, and puts short groups
// beside each other.
func TestHeatMapFillsRoom(t *testing.T) {
	for _, c := range []struct {
		width, height int
		sizes         []int
		want          []string
	}{
		{40, 2, []int{3, 2}, []string{" rack-0  ▇▇▇▇ ▇▇▇▇ ▇▇▇▇  3 nodes", " rack-1  ▇▇▇▇ ▇▇▇▇       2 nodes"}},
		{60, 2, []int{3, 2, 2, 1}, []string{" rack-0  ▇▇ ▇▇ ▇▇  3 nodes    rack-1  ▇▇ ▇▇     2 nodes", " rack-2  ▇▇ ▇▇     2 nodes    rack-3  ▇▇        1 nodes"}},
		{80, 1, []int{3, 2, 2}, []string{" rack-0  ▇▇▇▇▇▇  3 nodes    rack-1  ▇▇▇▇    2 nodes    rack-2  ▇▇▇▇    2 nodes"}},
		{72, 1, []int{3, 2, 2}, []string{" rack-0  ▇▇▇  3 nodes    rack-1  ▇▇   2 nodes    rack-2  ▇▇   2 nodes"}},
		{30, 5, []int{3, 14}, []string{" rack-0  ▇▇▇▇▇▇      3 nodes", " rack-1  ▇▇▇▇▇▇▇▇▇▇  14 nodes", "         ▇▇▇▇▇▇▇▇▇▇", "         ▇▇▇▇▇▇▇▇", ""}},
		// One sign would show no more of them.
		{30, 2, []int{3, 2, 2}, []string{" rack-0  ▇▇▇ ▇▇▇ ▇▇▇  3 nodes", " rack-1  ▇▇▇ ▇▇▇      2 nodes"}},
	} {
		if got := lines(mapOf(c.width, c.height, c.sizes...)); !slices.Equal(got, c.want) {
			t.Errorf("%dx%d is\n%s", c.width, c.height, strings.Join(got, "\n"))
		}
	}
}

// TestHeatMapClick finds the cell that was clicked.
func TestHeatMapClick(t *testing.T) {
	m := mapOf(60, 2, 3, 2, 2, 1)
	for y, line := range lines(m) {
		for x, r := range []rune(line) {
			if _, found := m.Click(x, y); r != ' ' && found != (r == '▇') {
				t.Errorf("a click at %d,%d of %q found a cell: %v", x, y, line, found)
			}
		}
	}
	if _, found := m.Click(9, 0); !found || m.Selected() != "0/0" {
		t.Errorf("the first cell is %q", m.Selected())
	}
	if again, _ := m.Click(10, 0); !again {
		t.Error("the second column of a cell is another cell")
	}
}

// TestHeatMapCursor marks the cell with the cursor by signs that no other cell has, whatever its
// colors are, and keeps all cells where they are.
func TestHeatMapCursor(t *testing.T) {
	l := NewLook(func(string) string { return "" })
	for _, glyph := range []string{"▁", "█", "!"} {
		for width, want := range map[int]string{44: "XXXX [XX] XXXX", 31: "XXX [X] XXX", 28: "XX ›X XX", 26: "XX›XXX", 23: "X›X"} {
			m := mapOf(width, 1, 3)
			for i := range m.groups[0].Cells {
				m.groups[0].Cells[i].Glyph = glyph
			}
			m.Right(1)
			want = "›rack-0  " + strings.ReplaceAll(want, "X", glyph) + "  3 nodes"
			colored := m.View(&l, true)[0]
			if got := ansi.Strip(colored); got != want {
				t.Errorf("%d columns have %q, want %q", width, got, want)
			}
			// The sign alone is reversed: what is used can be read as of any other cell.
			if !strings.Contains(colored, "\x1b[7m") || strings.Contains(colored, "\x1b[7m"+glyph) {
				t.Errorf("%d columns are marked wrongly: %q", width, colored)
			}
		}
	}
}

// TestMove moves between cells, lines and groups.
func TestMove(t *testing.T) {
	m := mapOf(30, 3, 3, 14)
	for _, step := range []struct {
		move func()
		want string
	}{
		{func() {}, "0/0"},
		{func() { m.Right(4) }, "1/1"},
		{func() { m.Down(1) }, "1/11"},
		{func() { m.Down(1) }, "1/11"},
		{func() { m.Right(99) }, "1/13"},
		{func() { m.Down(-1) }, "1/3"},
		{func() { m.Down(-1) }, "0/2"},
		{func() { m.Right(-99) }, "0/0"},
		{func() { m.Down(99) }, "1/10"},
		{func() { m.Choose("1/5"); m.Set(groups(0, 14)) }, "1/5"},
		{func() { m.Set(groups(2)) }, "0/1"},
		{func() { m.Set(nil) }, ""},
		{func() { m.Right(1); m.Down(1); m.Down(-1) }, ""},
	} {
		step.move()
		if got := m.Selected(); got != step.want {
			t.Fatalf("at %q, want %q", got, step.want)
		}
	}
}

// TestFleet covers 5,000 nodes on a screen of 200x60 with a pane, and follows the cursor
// where there is less room.
func TestFleet(t *testing.T) {
	m := mapOf(117, 55, 5000)
	if got := m.Lines(); got != "" {
		t.Errorf("not all are seen: %s", got)
	}
	m.SetSize(60, 10)
	m.Right(4999)
	if got := lines(m); !strings.Contains(m.Lines(), " of ") || strings.TrimSpace(got[9]) == "" || ansi.StringWidth(got[0]) > 60 {
		t.Errorf("the last cell is not seen: %s\n%s", m.Lines(), strings.Join(got, "\n"))
	}
}

// TestHeatMapMarks shows the filling of a marked cell and its mark, or one sign for both.
func TestHeatMapMarks(t *testing.T) {
	m := mapOf(20, 1, 3)
	m.groups[0].Name, m.groups[0].Note = "", ""
	m.groups[0].Cells[1].Mark, m.groups[0].Cells[1].Alone = "!", "7"
	m.arrange()
	if got := lines(m)[0]; got != " ▇▇▇▇ ▇▇▇! ▇▇▇▇" {
		t.Errorf("wide it is %q", got)
	}
	m.SetSize(5, 1)
	if got := lines(m)[0]; got != " ▇7▇" || !m.Narrow() {
		t.Errorf("narrow it is %q", got)
	}
}
