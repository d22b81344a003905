// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// numbers returns a content with a name and two numbers.
func numbers(rows ...[3]string) Content {
	column := func(at int, name string) render.Column[[3]string] {
		c := render.Column[[3]string]{Name: name, Cell: func(row *[3]string) string { return row[at] }}
		if at > 0 {
			c.Sort = func(*[3]string) (float64, bool) { return 0, true }
		}
		return c
	}
	return &ListOf[[3]string]{
		Items: rows, ID: func(row *[3]string) string { return row[0] },
		Cols: []render.Column[[3]string]{column(0, "Name"), column(1, "Free"), column(2, "Age")},
	}
}

// tableOf draws a table of the first row, so wide.
func tableOf(c Content, width int) []string {
	var t Table
	t.Resize(width, 4)
	t.Set(c, []int{0}, false)
	return strings.Split(ansi.Strip(t.View(unicode(), -1, false, time.Time{})), "\n")
}

// TestTitlesAreWhole expects no title that the mark for more columns cuts.
func TestTitlesAreWhole(t *testing.T) {
	for width := 10; width < 50; width++ {
		titles := tableOf(numbers([3]string{"claim-with-a-name", "12", "4m59s"}), width)[0]
		for _, title := range strings.Fields(strings.TrimSuffix(titles, "…")) {
			if !slices.Contains([]string{"NAME", "FREE", "AGE"}, title) {
				t.Errorf("at %d columns, a title is cut: %q", width, titles)
			}
		}
	}
}

// TestNumbersHaveCommas writes long numbers in columns of numbers, and names as they are.
func TestNumbersHaveCommas(t *testing.T) {
	row := tableOf(numbers([3]string{"node-10000", "10692 (9942 used)", "12s"}), 60)[1]
	if want := "node-10000  10,692 (9,942 used)  12s"; !strings.Contains(row, want) {
		t.Errorf("%q has no %q", row, want)
	}
}
