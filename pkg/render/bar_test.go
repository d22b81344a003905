// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"
)

func TestBar(t *testing.T) {
	for percent, want := range map[int]string{
		-5: "[----------]", 0: "[----------]", 1: "[#---------]", 9: "[#---------]", 40: "[####------]",
		99: "[#########-]", 100: "[##########]", 140: "[##########]",
	} {
		if got := Bar(percent); got != want {
			t.Errorf("%d%%: %s, want %s", percent, got, want)
		}
	}
}

func TestDrawnBar(t *testing.T) {
	for _, test := range []struct {
		part, whole int
		want        string
	}{{0, 8, ""}, {8, 8, "██████████"}, {1, 1000, "▏"}, {4, 8, "█████"}, {1, 8, "█▎"}, {1, 0, ""}} {
		if got := DrawnBar(test.part, test.whole, 10); got != test.want {
			t.Errorf("%d of %d: %q, want %q", test.part, test.whole, got, test.want)
		}
	}
}
