// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"fmt"
	"strconv"

	"github.com/google/cel-go/common/ast"
)

// wantedText describes the requirement of a simple comparison in a few words, and returns
// anything else as it is written.
func wantedText(e ast.Expr, text string) string {
	c, ok := comparisonOf(e)
	if !ok {
		return text
	}
	value := c.literalText()
	switch c.relation {
	case differs:
		return "anything but " + value
	case atLeast:
		return value + " or more"
	case greater:
		return "greater than " + value
	case atMost:
		return value + " or less"
	case less:
		return "less than " + value
	default:
		return value
	}
}

// literalText writes the compared value for people.
func (c comparison) literalText() string {
	text, isText := literalText(c.literal)
	switch {
	case c.wrapper == quantityFunction:
		if quantity, ok := ParseQuantity(text); ok {
			return QuantityText(quantity)
		}
		return text
	case c.wrapper != "":
		return text
	case isText:
		return strconv.Quote(text)
	default:
		return fmt.Sprint(c.literal.AsLiteral().Value())
	}
}
