// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestFitOnTerminals counts the lines of an answer about many groups of nodes, whose first line
// has to stay on the screen.
func TestFitOnTerminals(t *testing.T) {
	f := &api.Fit{Summary: "5 more copies fit now.", Verdict: api.Fits, Now: api.CopyCount{AtLeast: 5}, Released: api.CopyCount{AtLeast: 9}, NodeCount: 40, Assumptions: []string{"a", "b"}}
	for i := range 20 {
		f.Nodes = append(f.Nodes, api.CopyNodes{Count: 2, Message: fmt.Sprintf("%d available, 8 needed, the others without enough counters available", i), Names: []string{"node-1", "node-2"}})
	}
	shown := map[int]int{}
	for _, height := range []int{0, 24, 40} {
		var out bytes.Buffer
		if err := Fit(&out, f, Options{Width: 80, Height: height}); err != nil {
			t.Fatal(err)
		}
		shown[height] = strings.Count(out.String(), " available, 8 needed")
		if lines := strings.Count(out.String(), "\n"); height > 0 && lines >= height || !strings.Contains(out.String(), "more groups with") {
			t.Errorf("height %d: %d lines:\n%s", height, lines, out.String())
		}
	}
	if shown[0] != ShownGroups || shown[24] >= shown[40] || shown[24] == 0 {
		t.Errorf("groups by height: %v", shown)
	}
}
