// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package english

import (
	"cmp"
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

// Tally counts how often names occur.
type Tally map[string]int

// Sorted returns the most frequent first, and equally frequent ones in the order of names.
func (t Tally) Sorted() []string {
	keys := make([]string, 0, len(t))
	for key := range t {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(t[b], t[a]), CompareNames(a, b))
	})
	return keys
}

// CompareNames orders node-2 before node-10.
func CompareNames(a, b string) int {
	return cmp.Or(compareNumbers(a, b), cmp.Compare(a, b))
}

// compareNumbers compares runs of digits as numbers and the rest as text.
func compareNumbers(a, b string) int {
	for a != "" && b != "" {
		da, db := leadingDigits(a), leadingDigits(b)
		if da > 0 && db > 0 {
			na, nb := strings.TrimLeft(a[:da], "0"), strings.TrimLeft(b[:db], "0")
			if c := cmp.Or(cmp.Compare(len(na), len(nb)), cmp.Compare(na, nb)); c != 0 {
				return c
			}
			a, b = a[da:], b[db:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// leadingDigits counts the decimal digits at the start of a string.
func leadingDigits(s string) int {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return i
		}
	}
	return len(s)
}
