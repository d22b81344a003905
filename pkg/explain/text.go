// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agext/levenshtein"
)

// joinAnd joins with commas and "and".
func joinAnd(items []string) string { return join(items, "and") }

// joinOr joins with commas and "or".
func joinOr(items []string) string { return join(items, "or") }

func join(items []string, word string) string {
	switch len(items) {
	case 0:
		return ""
	case 1:
		return items[0]
	default:
		last := len(items) - 1
		return strings.Join(items[:last], ", ") + " " + word + " " + items[last]
	}
}

// plural counts something: "1 node", "12 nodes".
func plural(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		return fmt.Sprintf("%d %ses", n, noun)
	default:
		return fmt.Sprintf("%d %ss", n, noun)
	}
}

// distinctValues says how many different values an attribute has: "only 1
// distinct value exists".
func distinctValues(n int) string {
	if n == 1 {
		return "only 1 distinct value exists"
	}
	return fmt.Sprintf("only %d distinct values exist", n)
}

// thousands writes a number with commas.
func thousands[T int | uint64](n T) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// sample names the first few of a list and counts the rest.
func sample(items []string, most int) string {
	if len(items) <= most {
		return strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(items[:most], ", "), len(items)-most)
}

// nearest gives the name that was probably meant, or nothing if none is close.
func nearest(name string, names []string) string {
	best, bestDistance := "", -1
	for _, candidate := range names {
		if strings.HasPrefix(candidate, name+"-") {
			return candidate
		}
		if distance, near := distanceOf(name, candidate); near && (best == "" || distance < bestDistance) {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

// letters is the number of letters in which two names differ.
func letters(a, b string) int {
	return levenshtein.Distance(strings.ToLower(a), strings.ToLower(b), nil)
}

// distanceOf counts the letters in which names differ, and tells whether these
// are few. Of qualified names each part has to be close to the other's, and the
// first label of each domain, too: that two have the same domain, or two domains
// the same parent, does not bring them nearer.
func distanceOf(name, other string) (distance int, near bool) {
	parts, others := strings.Split(name, "/"), strings.Split(other, "/")
	if len(parts) != len(others) {
		parts, others = []string{name}, []string{other}
	}
	for i, part := range parts {
		label, _, isDomain := strings.Cut(part, ".")
		otherLabel, _, otherIs := strings.Cut(others[i], ".")
		if !alike(part, others[i]) || isDomain && otherIs && !alike(label, otherLabel) {
			return 0, false
		}
		distance += letters(part, others[i])
	}
	return distance, true
}

// alike says whether two words differ in few letters.
func alike(word, other string) bool {
	return letters(word, other) <= max(1, (len(word)+1)/3)
}

// didYouMean is a clause to append to a sentence about a wrong name.
func didYouMean(name string, names []string) string { return didYouMeanName(nearest(name, names)) }

// didYouMeanName is the same about what was found already, if anything was.
func didYouMeanName(near string) string {
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", near)
}

// precededBy puts something before a text, if there is one.
func precededBy(with, text string) string {
	if text == "" {
		return ""
	}
	return with + text
}

// tally counts strings and gives them most frequent first.
type tally map[string]int

func (t tally) sorted() []string {
	keys := make([]string, 0, len(t))
	for key := range t {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(t[b], t[a]), naturalCompare(a, b))
	})
	return keys
}

// naturalCompare orders node-2 before node-10.
func naturalCompare(a, b string) int {
	return cmp.Or(compareNumbers(a, b), cmp.Compare(a, b))
}

// compareNumbers compares runs of digits as numbers and the rest as text.
func compareNumbers(a, b string) int {
	for a != "" && b != "" {
		da, db := digits(a), digits(b)
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

// digits counts the decimal digits at the start of a string.
func digits(s string) int {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return i
		}
	}
	return len(s)
}

// oneLine gives an error without line breaks.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

// sentence makes a clause a sentence.
func sentence(clause string) string {
	if clause == "" {
		return ""
	}
	// Names keep their letters.
	if word, _, _ := strings.Cut(clause, " "); !strings.ContainsAny(word, "./") {
		first, size := utf8.DecodeRuneInString(clause)
		clause = string(unicode.ToUpper(first)) + clause[size:]
	}
	if strings.HasSuffix(clause, "?") || strings.HasSuffix(clause, ".") {
		return clause
	}
	return clause + "."
}
