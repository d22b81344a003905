// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package english

import (
	"slices"
	"strconv"
	"strings"
)

// Collapse orders names naturally and writes three or more consecutive ones, such
// as gpu-0, gpu-1 and gpu-2, as "gpu-0 … gpu-2".
func Collapse(names []string) []string { return CollapseTo(" … ", names) }

// CollapseTo is like Collapse, with another text between the first and the last of such
// names.
func CollapseTo(between string, names []string) []string {
	names = slices.SortedFunc(slices.Values(names), CompareNames)
	var ranges []string
	for i := 0; i < len(names); {
		end := i + 1
		for end < len(names) && follows(names[end-1], names[end]) {
			end++
		}
		if end-i < 3 {
			ranges = append(ranges, names[i:end]...)
		} else {
			ranges = append(ranges, names[i]+between+names[end-1])
		}
		i = end
	}
	return ranges
}

// follows reports whether two names differ only in the number at their end, and the
// second's is the next one.
func follows(a, b string) bool {
	stem := strings.TrimRight(a, "0123456789")
	rest, ok := strings.CutPrefix(b, stem)
	if !ok {
		return false
	}
	n, err := strconv.ParseUint(a[len(stem):], 10, 32)
	return err == nil && rest == strconv.FormatUint(n+1, 10) && a[len(stem):] == strconv.FormatUint(n, 10)
}
