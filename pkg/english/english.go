// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package english knows how clauses, lists and counts are put into words, how names are
// ordered, and which name was meant by one with a typo. It knows nothing of clusters, and
// its texts are never parsed again. Every package that writes for people may import it.
package english

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// JoinAnd joins with commas and "and".
func JoinAnd(items []string) string { return join(items, "and") }

// JoinOr joins with commas and "or".
func JoinOr(items []string) string { return join(items, "or") }

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

// Count counts something: "1 node", "12 nodes", "2 classes", "3,000 entries".
func Count(n int, noun string) string {
	number := Thousands(n)
	switch {
	case n == 1:
		return number + " " + noun
	case strings.HasSuffix(noun, "s"):
		return number + " " + noun + "es"
	case strings.HasSuffix(noun, "y"):
		return number + " " + strings.TrimSuffix(noun, "y") + "ies"
	default:
		return number + " " + noun + "s"
	}
}

// Plural returns one of two forms of a word, by a number that it goes with.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Thousands writes a number with commas.
func Thousands[T int | int64 | uint64](n T) string { return Grouped(fmt.Sprint(n)) }

// Grouped writes a text with commas in the numbers that have more than three digits.
func Grouped(text string) string {
	digits := 0
	for i := len(text) - 1; i >= 0; i-- {
		switch {
		case text[i] < '0' || text[i] > '9':
			digits = 0
		case digits == 3:
			text, digits = text[:i+1]+","+text[i+1:], 1
		default:
			digits++
		}
	}
	return text
}

// Between returns a number of which bounds are known: "4", "4 to 6", or "at least 4" if
// nothing limits it.
func Between(least int, most *int) string {
	switch {
	case most == nil:
		return "at least " + Thousands(least)
	case *most == least:
		return Thousands(least)
	default:
		return Thousands(least) + " to " + Thousands(*most)
	}
}

// Sample names the first few of a list and counts the rest.
func Sample(items []string, most int) string {
	if len(items) <= most {
		return strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s and %s more", strings.Join(items[:most], ", "), Thousands(len(items)-most))
}

// Texts returns the text of each item.
func Texts[T any](items []T, text func(T) string) []string {
	texts := make([]string, 0, len(items))
	for _, item := range items {
		texts = append(texts, text(item))
	}
	return texts
}

// PrecededBy puts something before a text, if there is one.
func PrecededBy(with, text string) string {
	if text == "" {
		return ""
	}
	return with + text
}

// OneLine returns an error without line breaks.
func OneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

// Sentence makes a clause a sentence.
func Sentence(clause string) string {
	if clause == "" {
		return ""
	}
	// Names keep their letters.
	if word, _, _ := strings.Cut(clause, " "); !strings.ContainsAny(word, "./") {
		clause = Capitalized(clause)
	}
	if strings.HasSuffix(clause, "?") || strings.HasSuffix(clause, ".") {
		return clause
	}
	return clause + "."
}

// Capitalized begins a text with a capital letter.
func Capitalized(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// OnDevices says on how many of all devices something is: "exists on 3 of 10,245 devices of
// all pools".
func OnDevices(n, all int) string {
	switch {
	case n > 0:
		return fmt.Sprintf("exists on %s of %s devices of all pools", Thousands(n), Thousands(all))
	case all == 1:
		return "does not exist on the only device"
	default:
		return fmt.Sprintf("exists on none of the %s devices of all pools", Thousands(all))
	}
}

// NamedObject is one of the API.
type NamedObject interface {
	GetNamespace() string
	GetName() string
}

// QualifiedName returns "namespace/name", or the name of an object without a namespace.
func QualifiedName(o NamedObject) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}
