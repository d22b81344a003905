// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/key"
	"github.com/charmbracelet/x/ansi"
)

// Keys returns the line of keys. Where it would be too long, keys before the last two are
// left out: those for help and for the way out are always there.
func Keys(bindings []key.Binding, width int) string {
	length := func() int {
		n := 0
		for _, b := range bindings {
			n += ansi.StringWidth(b.Help().Key) + 1 + ansi.StringWidth(b.Help().Desc) + 2
		}
		return n - 2
	}
	for len(bindings) > 2 && length() > width {
		bindings = append(bindings[:len(bindings)-3:len(bindings)-3], bindings[len(bindings)-2:]...)
	}
	line := help.New()
	line.Styles = help.Styles{}
	line.ShortSeparator = "  "
	line.SetWidth(width)
	return line.ShortHelpView(bindings)
}
