// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// ExpressionWords complete expressions about some devices. They do not change, and can be used while
// an expression is evaluated.
type ExpressionWords struct {
	published *selector.Vocabulary
	patterns  []wordPattern
}

// wordPattern recognizes the end of an unfinished expression. The last group is what is
// to be replaced.
type wordPattern struct {
	end     *regexp.Regexp
	propose func(w *ExpressionWords, groups []string) []string
}

const (
	// valueOf matches an attribute or a capacity: its kind, domain and name.
	valueOf = `device\.(attributes|capacity)\["([^"]*)"\]\.\??`
	// maxProposed limits how many words are proposed.
	maxProposed = 100
)

// NewExpressionWords takes the words of devices.
func NewExpressionWords(list []*cluster.Device) *ExpressionWords {
	w := &ExpressionWords{published: selector.NewVocabulary(english.Typo)}
	for _, d := range list {
		w.published.Add(d.ID.Driver, d.Device)
	}
	w.patterns = []wordPattern{
		{regexp.MustCompile(`device\.driver\s*[!=]=\s*("[^"]*|)$`), (*ExpressionWords).drivers},
		{regexp.MustCompile(`device\.(attributes|capacity)\["([^"]*)$`), (*ExpressionWords).domains},
		{regexp.MustCompile(valueOf + `(\w*)$`), (*ExpressionWords).names},
		{regexp.MustCompile(valueOf + `(\w+)\.(\w*)$`), (*ExpressionWords).methods},
		{regexp.MustCompile(valueOf + `(\w+)\s*(?:[!=]=|<=?|>=?)\s*("[^"]*|\w*)$`), (*ExpressionWords).values},
		{regexp.MustCompile(valueOf + `(\w+)\.\w+\((?:quantity|semver)\("([^"]*)$`), (*ExpressionWords).ordered},
		{regexp.MustCompile(`\bdevice\.(\w*)$`), (*ExpressionWords).fields},
		{regexp.MustCompile(`(?:^|[\s(!&|?:])(\w+)$`), (*ExpressionWords).starts},
	}
	return w
}

// Complete proposes what the end of an expression, from a byte on, can be replaced
// with. There is nothing to propose if there are no words.
func (w *ExpressionWords) Complete(before string) (start int, words []string) {
	for _, p := range w.patterns {
		at := p.end.FindStringSubmatchIndex(before)
		if at == nil {
			continue
		}
		var groups []string
		for i := 2; i < len(at); i += 2 {
			groups = append(groups, before[at[i]:at[i+1]])
		}
		typed := groups[len(groups)-1]
		for _, word := range p.propose(w, groups) {
			if strings.HasPrefix(word, typed) && word != typed && len(words) < maxProposed {
				words = append(words, word)
			}
		}
		return len(before) - len(typed), words
	}
	return len(before), nil
}

func (w *ExpressionWords) drivers([]string) []string {
	var list []string
	for _, driver := range w.published.Drivers() {
		list = append(list, strconv.Quote(driver))
	}
	return list
}

func (w *ExpressionWords) domains(groups []string) []string {
	var list []string
	for _, r := range w.published.Readings(groups[0]) {
		// What a string of CEL would have to escape is left to be typed.
		if word := r.Domain + `"].`; !slices.Contains(list, word) && strconv.Quote(r.Domain) == `"`+r.Domain+`"` {
			list = append(list, word)
		}
	}
	return list
}

func (w *ExpressionWords) names(groups []string) []string {
	var list []string
	for _, r := range w.published.Readings(groups[0]) {
		if r.Domain == groups[1] {
			list = append(list, r.Name)
		}
	}
	return list
}

func readingOf(groups []string) selector.Reading {
	return selector.Reading{Kind: groups[0], Domain: groups[1], Name: groups[2]}
}

// methods returns the methods of the type of a value.
func (w *ExpressionWords) methods(groups []string) []string {
	switch of, _ := w.published.TypeOf(readingOf(groups)); of {
	case selector.TypeQuantity:
		return []string{`compareTo(quantity("`, `isGreaterThan(quantity("`, `isLessThan(quantity("`}
	case selector.TypeVersion:
		return []string{`compareTo(semver("`, `isGreaterThan(semver("`, `isLessThan(semver("`}
	case selector.TypeString:
		return []string{`startsWith("`, `endsWith("`, `contains("`, `matches("`}
	case selector.TypeList:
		return []string{`includes(`, `exists(v, v == `, `all(v, v == `}
	default:
		return nil
	}
}

// values returns the values for a comparison, the most frequent first.
func (w *ExpressionWords) values(groups []string) []string {
	r := readingOf(groups)
	var list []string
	for _, value := range w.byFrequency(r) {
		switch value.Type {
		case selector.TypeInt, selector.TypeBool:
			list = append(list, value.Plain)
		case selector.TypeString:
			list = append(list, strconv.Quote(value.Plain))
		case selector.TypeVersion, selector.TypeQuantity, selector.TypeList:
		}
	}
	return list
}

// ordered returns quantities and versions, with the end of the call around them.
func (w *ExpressionWords) ordered(groups []string) []string {
	r := readingOf(groups)
	var list []string
	for _, value := range w.byFrequency(r) {
		if text, ok := r.Value(value.Driver, value.Device); ok && (value.Type == selector.TypeVersion || value.Type == selector.TypeQuantity) {
			list = append(list, text+`"))`)
		}
	}
	return list
}

func (w *ExpressionWords) byFrequency(r selector.Reading) []*selector.PublishedValue {
	values := w.published.Values(r)
	slices.SortFunc(values, func(a, b *selector.PublishedValue) int {
		return cmp.Or(cmp.Compare(b.Devices, a.Devices), english.CompareNames(a.Plain, b.Plain), cmp.Compare(a.Type, b.Type))
	})
	return values
}

func (w *ExpressionWords) fields([]string) []string {
	return []string{`attributes["`, `capacity["`, "driver", "allowMultipleAllocations"}
}

func (w *ExpressionWords) starts([]string) []string {
	return []string{"device.", "has(device.", "true", "false"}
}
