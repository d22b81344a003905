// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseXIDs(t *testing.T) {
	got := parseXIDs([]string{
		"NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.",
		"NVRM: Xid (PCI:0000:3B:00): 154",
		"NVRM: Xid (PCI:0000:af:00): 13, Graphics SM Warp Exception",
		"NVRM: Xid (PCI:0000:af:00): many",
		"NVRM: GPU at PCI:0000:af:00",
	})
	want := map[string][]XID{
		"0000:3b:00": {{79, "pid=1234, GPU has fallen off the bus."}, {154, ""}},
		"0000:af:00": {{13, "Graphics SM Warp Exception"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var many []string
	for range 3 * maxXIDs {
		many = append(many, "NVRM: Xid (PCI:0000:3b:00): 79, x")
	}
	if n := len(parseXIDs(many)["0000:3b:00"]); n != maxXIDs {
		t.Errorf("%d errors kept", n)
	}
	many = append(many[:1], slices.Repeat([]string{"NVRM: Xid (PCI:0000:3b:00): 45, x"}, 3*maxXIDs)...)
	if kept := parseXIDs(many)["0000:3b:00"]; kept[0].Code != 79 {
		t.Errorf("the error of the GPU is gone: %v", kept)
	}
}

func FuzzParseXIDs(f *testing.F) {
	f.Add("NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.")
	f.Fuzz(func(t *testing.T, line string) {
		for slot, list := range parseXIDs([]string{line}) {
			if slot == "" || len(list) != 1 || list[0].Code < 0 {
				t.Errorf("%q: %v", slot, list)
			}
		}
	})
}
