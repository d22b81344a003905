// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"fmt"
	"strings"

	"github.com/agext/levenshtein"
)

// Nearest gives the name that was probably meant, or nothing if none is close.
func Nearest(name string, names []string) string {
	best, bestDistance := "", -1
	for _, candidate := range names {
		if strings.HasPrefix(candidate, name+"-") {
			return candidate
		}
		if distance, near := distanceOfParts(name, candidate); near && (best == "" || distance < bestDistance) {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

// Distance is the number of letters in which two names differ.
func Distance(a, b string) int {
	return levenshtein.Distance(strings.ToLower(a), strings.ToLower(b), nil)
}

// distanceOfParts counts the letters in which names differ, and reports whether
// these are few. Of qualified names each part has to be close to the other's, and the
// first label of each domain, too: that two have the same domain, or two domains
// the same parent, does not bring them nearer.
func distanceOfParts(name, other string) (distance int, near bool) {
	parts, others := strings.Split(name, "/"), strings.Split(other, "/")
	if len(parts) != len(others) {
		parts, others = []string{name}, []string{other}
	}
	for i, part := range parts {
		label, _, isDomain := strings.Cut(part, ".")
		otherLabel, _, otherIs := strings.Cut(others[i], ".")
		if !similar(part, others[i]) || isDomain && otherIs && !similar(label, otherLabel) {
			return 0, false
		}
		distance += Distance(part, others[i])
	}
	return distance, true
}

// similar reports whether two words differ in few letters.
func similar(word, other string) bool {
	return Distance(word, other) <= max(1, (len(word)+1)/3)
}

// DidYouMean is a clause to append to a sentence about a wrong name.
func DidYouMean(name string, names []string) string { return Suggestion(Nearest(name, names)) }

// Suggestion is the same about what was found already, if anything was.
func Suggestion(near string) string {
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", near)
}
