// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"testing"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestCountersOfManyNodes says what lacks on the most devices, and who uses it only where
// that can be read: partitions of nodes are used in many ways.
func TestCountersOfManyNodes(t *testing.T) {
	// Of a node with a board of that size, so many of the small partitions are in use.
	node := func(name, board string, size, used int) []any {
		devices := []tc.DeviceWrapper{tc.Device("whole").Consuming(board, fmt.Sprintf("slices=%d", size)).With("size=whole")}
		objects := []any{tc.Nodes(name), tc.Pool(name).Of(2).WithCounters(board, fmt.Sprintf("slices=%d", size))}
		for i := range used {
			small := fmt.Sprintf("small-%d", i)
			devices = append(devices, tc.Device(small).Consuming(board, "slices=1").With("size=small"))
			objects = append(objects, tc.Serving(name+"-"+small, name, small))
		}
		return append(objects, tc.Pool(name, devices...).Of(2))
	}
	message := func(objects ...[]any) (messages []string) {
		var all []any
		for _, o := range objects {
			all = append(all, o...)
		}
		all = append(all, tc.Claim(waiting, tc.GPUs("gpu", 1, `device.attributes["gpu.example.com"].size == "whole"`)))
		e, err := Explain(t.Context(), tc.Cluster(all...), Options{Object: api.Ref(api.KindClaim, tc.Namespace, waiting)})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range e.Claims[0].Requests[0].Rejected {
			if r.Code == api.CountersExhausted {
				messages = append(messages, fmt.Sprintf("%d %s: %s", r.Count, r.Label, r.Message))
			}
		}
		return messages
	}
	few := [][]any{node("n1", "board", 8, 1), node("n2", "board", 8, 1), node("n3", "board", 8, 2)}
	many := slices.Concat(few, [][]any{node("n4", "board", 8, 3), node("n5", "board", 8, 4), node("n6", "board", 8, 4), node("n7", "board", 8, 4), node("n8", "board", 8, 5)})
	for name, test := range map[string]struct {
		objects [][]any
		want    string
	}{
		"few":       {few, "3 counters: 7 of 8 available in counter slices, used by small-0 (2); 6 of 8 available in counter slices, used by small-0, small-1 (1); 8 required"},
		"many":      {many, "8 counters: 4 of 8 available in counter slices (3), 7 of 8 available in counter slices (2), 3 of 8 available in counter slices (1), 2 others (2); 8 required"},
		"two sizes": {slices.Concat(few, [][]any{node("m1", "board", 4, 1)}), "4 counters: 7 of 8 available in counter slices, 8 required (2); 3 of 4 available in counter slices, 4 required (1); 6 of 8 available in counter slices, 8 required (1)"},
	} {
		if got := message(test.objects...); len(got) != 1 || got[0] != test.want {
			t.Errorf("%s: got\n%q\nwant\n%q", name, got, test.want)
		}
	}
}
