// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package english

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/agext/levenshtein"
)

// Distance returns the number of letters in which two names differ.
func Distance(a, b string) int {
	return levenshtein.Distance(strings.ToLower(a), strings.ToLower(b), nil)
}

// DidYouMean returns a clause to append to a sentence about a wrong name: the name that was meant
// by one with a [Typo], or else the shortest that goes on after it.
func DidYouMean(name string, names []string) string {
	near := Typo(name, names)
	if near == "" && len(name) >= minBeginning {
		for _, other := range names {
			if len(other) >= len(name) && strings.EqualFold(other[:len(name)], name) && (near == "" || len(other) < len(near)) {
				near = other
			}
		}
	}
	return Suggestion(near)
}

// minBeginning limits how short the beginning of a name may be.
const minBeginning = 3

// Typo finds the name that was meant by one with a typo, which is empty where none is
// or several are. Unlike [Nearest], it takes no name of something else: names have the
// same words and numbers but for one word, and cpu is no typo of gpu.
func Typo(name string, names []string) string {
	meant, fewest := "", maxSlips+1
	for _, candidate := range names {
		switch slips := slipsIn(name, candidate); {
		case slips < fewest:
			meant, fewest = candidate, slips
		case slips == fewest && candidate != meant:
			meant = ""
		}
	}
	return meant
}

// maxSlips limits how many letters of a word are wrong at most.
const maxSlips = 2

// slipsIn counts the letters by which one word of a name differs from another name,
// more than maxSlips where it is another name.
func slipsIn(name, other string) int {
	words, others := wordsOf(name), wordsOf(other)
	if strings.EqualFold(strings.Join(words, ""), strings.Join(others, "")) {
		return 0
	}
	if len(words) != len(others) {
		return maxSlips + 1
	}
	slips := 0
	for i, word := range words {
		n := slipsInWord(strings.ToLower(word), strings.ToLower(others[i]))
		if slips > 0 && n > 0 {
			return maxSlips + 1
		}
		slips += n
	}
	return slips
}

// slipsInWord counts the letters by which words differ, more than maxSlips where
// they are different words. Two letters that changed places count as one, as do zeros before
// a number. Words that begin with another letter, and other numbers, mean something else.
func slipsInWord(word, other string) int {
	const long = 8
	word, other = singular(word), singular(other)
	switch n := Distance(word, other); {
	case n == 0:
		return 0
	case strings.TrimLeft(word, "0") == strings.TrimLeft(other, "0"):
		return 1
	case unicode.IsDigit(rune(word[0])) || unicode.IsDigit(rune(other[0])) || min(len(word), len(other)) < 2:
		return maxSlips + 1
	case swapped(word, other):
		return 1
	case word[0] != other[0], n > 1 && max(len(word), len(other)) < long:
		return maxSlips + 1
	default:
		return n
	}
}

// singular turns capacities into capacity.
func singular(word string) string {
	if stem, ok := strings.CutSuffix(word, "ies"); ok {
		return stem + "y"
	}
	return word
}

// swapped reports whether words differ in two letters that changed places.
func swapped(word, other string) bool {
	if len(word) != len(other) {
		return false
	}
	i := 0
	for i < len(word)-2 && word[i] == other[i] {
		i++
	}
	return word[i] == other[i+1] && word[i+1] == other[i] && word[i+2:] == other[i+2:]
}

// wordsOf splits a name into its words and numbers: numaNode0 has three.
func wordsOf(name string) []string {
	var words []string
	kind := func(c rune) int {
		switch {
		case unicode.IsDigit(c):
			return 1
		case unicode.IsLetter(c):
			return 2
		default:
			return 0
		}
	}
	begin, last := 0, rune(0)
	for i, c := range name {
		if kind(c) != kind(last) || unicode.IsLower(last) && unicode.IsUpper(c) {
			if kind(last) > 0 {
				words = append(words, name[begin:i])
			}
			begin = i
		}
		last = c
	}
	if kind(last) > 0 {
		words = append(words, name[begin:])
	}
	return words
}

// Suggestion returns that clause for the name that was probably meant; it is empty if there
// is none.
func Suggestion(near string) string {
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", near)
}
