// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"slices"
	"strings"

	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/key"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// headLine returns a title on the left and the time on the right.
func headLine(l *widget.Look, title, taken string, width int) string {
	left := ansi.Truncate(title, max(width-ansi.StringWidth(taken)-1, 0), l.Glyphs.More)
	return widget.Padded(left, width-ansi.StringWidth(taken)) + taken
}

// clusterTitle returns the cluster and namespace. The address or the file is last if the cluster
// has a name: if there is no room for all, it is cut first.
func clusterTitle(l *widget.Look, context, address, namespace string) string {
	if namespace != "" {
		namespace = "namespace " + namespace
	}
	parts := []string{l.Say(widget.Strong, "kubectl dra top")}
	for _, part := range []string{cmp.Or(context, address), namespace, address} {
		if part = render.Escape(part); part != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "  ")
}

// windowTitle returns the title of the window: which cluster it is and, in a few words, how it
// is.
func windowTitle(cluster string, troubles []string) string {
	title := "dra top " + render.Escape(cluster)
	if len(troubles) == 0 {
		return title
	}
	return title + ": " + strings.Join(troubles, ", ")
}

// pathLine returns the path to the screen.
func pathLine(l *widget.Look, titles []string, width int) string {
	path := render.Escape(strings.Join(titles, " > "))
	// Where one is matters more than where one came from.
	return l.Tab.Render(widget.Padded(ansi.TruncateLeft(path, max(ansi.StringWidth(path)-width, 0), ""), width))
}

// tabLine returns the names of the views with the numbers of their rows that matter, and a mark at the
// shown one.
func tabLine(l *widget.Look, shown views.ID, counts map[views.ID]int, width int) string {
	texts := tabTexts(shown, counts, width)
	texts[shown] = l.Tab.Render(texts[shown])
	return ansi.Truncate(strings.Join(texts, " "), width, "")
}

// tabAt returns the view whose name stands at a place of that line; false for none.
func tabAt(shown views.ID, counts map[views.ID]int, width, x int) (views.ID, bool) {
	from := 0
	for id, text := range tabTexts(shown, counts, width) {
		if x >= from && x < from+len(text) {
			return views.ID(id), true
		}
		from += len(text) + 1
	}
	return 0, false
}

// tabTexts returns the names of the views as they stand beside each other. Where there is no
// room for all, they are short, then without numbers and, on a narrow terminal, only the shown
// view has more than its key.
func tabTexts(shown views.ID, counts map[views.ID]int, width int) []string {
	var texts []string
	for _, tier := range []struct {
		names  []string
		counts map[views.ID]int
	}{{views.Names(), counts}, {views.ShortNames(), counts}, {views.ShortNames(), nil}, {make([]string, len(views.Names())), nil}} {
		texts = texts[:0]
		for id, name := range tier.names {
			id := views.ID(id)
			if id == shown {
				name = shown.String()
			}
			text := strings.TrimSuffix(id.Key()+" "+name, " ")
			if n := tier.counts[id]; n > 0 {
				// With a blank, the number would read as the key of the next view.
				text += ":" + english.Thousands(n)
			}
			if id == shown {
				// The brackets are for terminals that cannot reverse.
				text = "[" + text + "]"
			}
			texts = append(texts, text)
		}
		if len(strings.Join(texts, " ")) <= width {
			break
		}
	}
	return texts
}

// keyLine returns the line of keys. Where it would be too long, keys before the last two are
// left out: those for help and for the way out are always there.
func keyLine(bindings []key.Binding, width int) string {
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
