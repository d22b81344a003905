// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"
)

func TestByDriver(t *testing.T) {
	tests := map[string]struct {
		devices, want string
	}{
		"none":               {"", ""},
		"one":                {"d/p/gpu-0", "[d] p: gpu-0"},
		"consecutive":        {"d/p/gpu-0 d/p/gpu-1 d/p/gpu-2 d/p/gpu-4", "[d] p: gpu-0 … gpu-2, gpu-4"},
		"two are no range":   {"d/p/gpu-0 d/p/gpu-1", "[d] p: gpu-0, gpu-1"},
		"across a ten":       {"d/p/9 d/p/10 d/p/11", "[d] p: 9 … 11"},
		"leading zeros":      {"d/p/g08 d/p/g09 d/p/g10", "[d] p: g08, g09, g10"},
		"other stems":        {"d/p/a-0 d/p/b-1 d/p/c-2", "[d] p: a-0, b-1, c-2"},
		"descending":         {"d/p/2 d/p/1 d/p/0", "[d] p: 0 … 2"},
		"same in both pools": {"d/p/0 d/p/1 d/q/0 d/q/1", "[d] p, q: 0, 1"},
		"several drivers":    {"d/p/0 e/p/0 d/q/0", "[d] p, q: 0 [e] p: 0"},
		"pool with slashes":  {"d/a/b/c/0", "[d] a/b/c: 0"},
		"not a device ID":    {"x a/b", "[] a/b, x"},
		"huge numbers":       {"d/p/99999999999999999998 d/p/99999999999999999999", "[d] p: 99999999999999999998, 99999999999999999999"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, group := range byDriver(strings.Fields(test.devices)) {
				got = append(got, "["+group.driver+"]")
				for _, line := range group.lines {
					got = append(got, strings.Join(line, ", "))
				}
			}
			if got := strings.Join(got, " "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
