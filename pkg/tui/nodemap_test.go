// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
)

// TestMap shows nodes as cells, how full they are also if something is wrong with them, with the room
// that is left, and opens one.
func TestMap(t *testing.T) {
	s := browse(t, 80, 24)
	s.keys("2", "v", "g")
	s.shows("›[██] ▅▅▅! ▂▂▂▂", "8 of gpu.example.com fit on 1 node; partly free: 6 nodes", "gpu-01, Ready: 10 devices, 8 allocated, 2 shared")
	s.shows("▅▅▅t ▁▁▁○ ▁▁▁✗ ▆▆▆▆", "! devices in trouble  ○ cordoned  ✗ not usable  t node tainted  ▁▂▃▄▅▆▇█ used")
	s.keys("l", "l", "h", "l")
	s.shows("gpu-03, Ready: 10 devices, 2 shared, 8 free")
	s.keys("enter")
	s.shows("devices of gpu-03")
	s.keys("esc", "v")
	if row := s.selected(); !strings.Contains(row, "gpu-03") {
		t.Errorf("the list has selected %q", row)
	}
}

// TestMapGroups groups nodes by any label.
func TestMapGroups(t *testing.T) {
	s := browse(t, 120, 30)
	s.keys("2", "b", `"rack`, "enter")
	s.shows("by example.com/rack", "(none)", "all free")
	s.keys("j", "enter")
	s.shows("devices of ")
}

// TestMapSorted puts the groups with most of something first, by a key or by its name.
func TestMapSorted(t *testing.T) {
	s := browse(t, 160, 30)
	s.keys("2", "b", `"driv`, "enter")
	s.shows("by drivers", "gpu+nic", "fabric")
	s.keys("s", `"trou`, "enter")
	s.shows("most trouble first", "in trouble")
	if first := s.lines()[3]; !strings.HasPrefix(first, "›gpu  ") {
		t.Errorf("the first group is %q", first)
	}
	s.keys("r")
	s.shows("r does nothing here")
	s.keys(",")
	s.shows("most whole nodes free first", "all free")
	s.keys(".", ".")
	s.lacks("first")
}

// TestMapSortedByOneKey sorts by a capital each, which leads back the second time. The small
// letters stay what they are everywhere.
func TestMapSortedByOneKey(t *testing.T) {
	s := browse(t, 160, 30)
	s.keys("2", "v")
	s.shows("s sort by")
	for key, want := range map[string]string{"U": "most used first", "F": "most fragmented first", "W": "most whole nodes free first", "X": "most trouble first"} {
		s.keys(key)
		s.shows(want)
		s.keys(key)
		s.lacks(" first")
	}
	s.keys("U", "X")
	s.shows("most trouble first")
	s.keys("v", "U")
	s.shows("U does nothing here")
	s.keys("v", "x")
	s.shows("a file cannot be changed")
	s.keys("w")
	s.shows("no claim or pod to explain")
	s.keys("f")
	s.shows("find:")
}

// TestMapHidden leaves the map out of a page that has room for it, too.
func TestMapHidden(t *testing.T) {
	s := browse(t, 200, 60)
	s.shows("Nodes 11 of 14 with devices", "v hide map")
	s.keys("v")
	s.lacks("with devices", "v hide map")
	s.keys("?")
	s.shows("v    map")
	s.keys("esc", "v")
	s.shows("Nodes 11 of 14 with devices", "v hide map")
	s.keys("?")
	s.shows("hide map")
	s.keys("esc", "2")
	s.shows("v list")
	s.keys("1", "v", "2")
	s.shows("v map")
}

// TestMapOfFleet covers 5,000 nodes on a screen of 200x60.
func TestMapOfFleet(t *testing.T) {
	s := newSession(t, Options{Source: live.NewFixed(fleet.Fleet(5000, 8, 20000)), Fixed: true}, 200, 60)
	s.keys("2", "G")
	s.shows("5,000 nodes with devices")
	s.lacks(", lines ")
	s.shows(fmt.Sprintf("Node     node-%05d", 4999))
}

// TestMapFirst shows a fleet as a map on the first page, where its cells can be grouped, sorted and
// opened.
func TestMapFirst(t *testing.T) {
	snap := fleet.Mixed(120)
	fleet.AddWaiting(snap, 20)
	s := newSession(t, Options{Source: live.NewFixed(snap), Fixed: true}, 80, 24)
	s.shows("Causes ", "Capacity", "Waiting 20")
	s.lacks("map")
	if rows := strings.Count(s.screen(), "/waits-0"); rows < 4 {
		t.Errorf("%d rows of what waits:\n%s", rows, s.screen())
	}
	for range 40 {
		if strings.Contains(s.screen(), "node-00000, Ready: ") {
			break
		}
		s.keys("j")
	}
	s.keys("l")
	s.shows("v hide map  b group by", "node-00001, Ready: 10 devices, 8 allocated, 2 free", "Nodes 110 of 120 with devices  ! devices in trouble  ○ cordoned  ✗ not usable")
	s.keys("U")
	s.lacks(" ▁▇▆▃█▅▃▁▅▁▇▅")
	s.keys("U", "b", `"driv`, "enter")
	s.shows("gpu+nic", "% ", "all free")
	s.keys("?")
	s.shows("Map of nodes", "share of the devices", "group by")
	s.keys("esc", "enter")
	s.shows("devices of node-")
	s.keys("1", "v")
	s.lacks("Nodes 110 of")
	s.shows("Waiting 20")
	s.keys("2")
	s.shows("NODE", "DEVICES")
}
