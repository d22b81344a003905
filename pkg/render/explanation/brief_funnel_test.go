// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"strings"
	"testing"
)

// TestFunnelRowWithin expects rows that are too long to keep their counts: names are left out in the
// middle, never at the end, and a list says how many.
func TestFunnelRowWithin(t *testing.T) {
	teams := []string{"team-00 56", "team-07 56", "team-19 56", "team-08 55"}
	for _, test := range []struct {
		row         funnelRow
		room, lines int
		want        string
	}{
		{funnelRow{text: strings.Join(teams, ", "), list: teams, place: "257 nodes"}, 80, 1, "team-00 56, team-07 56, team-19 56, team-08 55 (257 nodes)"},
		{funnelRow{text: strings.Join(teams, ", "), list: teams, place: "257 nodes"}, 40, 1, "team-00 56 and 3 more (257 nodes)"},
		{funnelRow{text: strings.Join(teams, ", "), list: teams, place: "257 nodes"}, 40, 2, "team-00 56, team-07 56, team-19 56, team-08 55 (257 nodes)"},
		{funnelRow{text: "cordoned (8), node taint dedicated=vision:NoSchedule (8)", place: "2 nodes"}, 40, 1, "cordoned (8), node taint … (2 nodes)"},
		{funnelRow{text: "10Gi of 80Gi available (17); 30Gi of 40Gi available (13); 8 others (72)", place: "84 nodes"}, 60, 1, "10Gi of 80Gi available (17); 30Gi of 40Gi … (84 nodes)"},
		{funnelRow{text: "10Gi of 80Gi available (17); 30Gi of 40Gi available (13); 8 others (72)", place: "84 nodes"}, 36, 1, "10Gi of 80Gi available … (84 nodes)"},
		{funnelRow{text: "ecc=uncorrectable, set by driver gpu.example.com", place: "gpu-01, gpu-02 and 7 more"}, 48, 1, "ecc=uncorrectable … (gpu-01, gpu-02 and 7 more)"},
		{funnelRow{text: "on 315 nodes, at most 8 on one (node-00000)"}, 34, 1, "on 315 nodes, at most 8 on one …"},
		{funnelRow{text: "50G of 100G available (2), 1 other (6)", place: "6 nodes"}, 41, 1, "50G of 100G available (2) … (6 nodes)"},
		{funnelRow{text: "short"}, 2, 1, "short"},
	} {
		if got := test.row.within(test.room, test.lines); got != test.want {
			t.Errorf("%+v in %d x %d:\ngot  %s\nwant %s", test.row, test.lines, test.room, got, test.want)
		}
	}
}
