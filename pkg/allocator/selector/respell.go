// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"slices"
	"strings"
)

// spellings returns operators and quotes of other languages and word processors, with their
// CEL equivalents. Longer ones come first.
func spellings() []Change {
	return []Change{
		{"===", "=="},
		{"!==", "!="},
		{"==", "=="},
		{"!=", "!="},
		{"<=", "<="},
		{">=", ">="},
		{"&&", "&&"},
		{"||", "||"},
		{"=>", ">="},
		{"=<", "<="},
		{"<>", "!="},
		{"=", "=="},
		{"&", "&&"},
		{"|", "||"},
		{"“", `"`},
		{"”", `"`},
		{"„", `"`},
		{"‘", "'"},
		{"’", "'"},
	}
}

// respelled writes the operators and quotes of other languages as CEL does, outside of
// texts. There are no changes if it finds none.
func respelled(expression string) (string, []Change) {
	var out strings.Builder
	var changes []Change
	for rest := expression; rest != ""; {
		if n := textLength(rest); n > 0 {
			out.WriteString(rest[:n])
			rest = rest[n:]
			continue
		}
		at := slices.IndexFunc(spellings(), func(c Change) bool { return strings.HasPrefix(rest, c.From) })
		if at < 0 {
			out.WriteByte(rest[0])
			rest = rest[1:]
			continue
		}
		c := spellings()[at]
		if c.From != c.To && !slices.Contains(changes, c) {
			changes = append(changes, c)
		}
		out.WriteString(c.To)
		rest = rest[len(c.From):]
	}
	return out.String(), changes
}

// textLength returns the length of the string literal at the beginning of an expression, 0
// if there is none.
func textLength(expression string) int {
	quote := expression[:1]
	if quote != `"` && quote != "'" {
		return 0
	}
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(expression, triple) {
		quote = triple
	}
	for i := len(quote); i < len(expression); i++ {
		switch {
		case expression[i] == '\\':
			i++
		case strings.HasPrefix(expression[i:], quote):
			return i + len(quote)
		}
	}
	return len(expression)
}
