// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"slices"
	"strings"

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

// clusterTitle returns the cluster and namespace. The address is last if the cluster has a name: if
// there is no room for all, it is cut first. A file has no other name than its own, so its path is cut
// in front to what a width leaves for it; 0 is no limit.
func clusterTitle(l *widget.Look, context, address, namespace string, width int) string {
	if namespace != "" {
		namespace = "namespace " + namespace
	}
	title := titleOf(l, context, address, namespace)
	if over := ansi.StringWidth(title) - width; context == "" && width > 0 && over > 0 {
		return titleOf(l, context, withoutBegin(l, render.Escape(address), over), namespace)
	}
	return title
}

func titleOf(l *widget.Look, context, address, namespace string) string {
	parts := []string{l.Say(widget.Strong, "kubectl dra top")}
	for _, part := range []string{cmp.Or(context, address), namespace, address} {
		if part = render.Escape(part); part != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "  ")
}

// withoutBegin makes an address such as "file a/b/c.yaml" shorter, by folders of the path if its name
// has room then.
func withoutBegin(l *widget.Look, address string, over int) string {
	kind, path, found := strings.Cut(address, " ")
	if !found {
		return address
	}
	path = ansi.TruncateLeft(path, over+1, "")
	if at := strings.IndexAny(path, `/\`); at >= 0 {
		path = path[at:]
	}
	return kind + " " + l.Glyphs.More + path
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

// pathLine returns the path to the screen. Where one is matters more than where one came from.
func pathLine(l *widget.Look, titles []string, width int) string {
	path := render.Escape(strings.Join(titles, " > "))
	for i := 1; i < len(titles) && ansi.StringWidth(path) > width; i++ {
		path = render.Escape(strings.Join(append([]string{l.Glyphs.More}, titles[i:]...), " > "))
	}
	if over := ansi.StringWidth(path) - width; over > 0 {
		path = ansi.TruncateLeft(path, over+1, l.Glyphs.More)
	}
	return l.Tab.Render(widget.Padded(path, width))
}

// tabLine returns the names of the views with the numbers of their rows that matter, and a mark at the
// shown one.
func tabLine(l *widget.Look, shown views.ID, counts map[views.ID]int, width int) string {
	texts, gap := tabTexts(shown, counts, width)
	between := "  "[:gap]
	if gap == 1 {
		between = l.Say(widget.Faint, l.Glyphs.Between)
	}
	for id, text := range texts {
		if views.ID(id) == shown {
			texts[id] = l.Tab.Render(text)
			continue
		}
		// The number is a key: it counts nothing.
		texts[id] = l.Say(widget.Strong, text[:1]) + text[1:]
	}
	return ansi.Truncate(strings.Join(texts, between), width, "")
}

// tabAt returns the view whose name stands at a place of that line; false for none.
func tabAt(shown views.ID, counts map[views.ID]int, width, x int) (views.ID, bool) {
	from := 0
	texts, gap := tabTexts(shown, counts, width)
	for id, text := range texts {
		if x >= from && x < from+len(text) {
			return views.ID(id), true
		}
		from += len(text) + gap
	}
	return 0, false
}

// tabTexts returns the names of the views, and how wide the gap between them is. Where there is no room
// for all, they stand closer, with a line between, then those not shown are short and right behind their
// keys, and at last some have only a key: the shown view and those with counts are the last to lose
// their names.
func tabTexts(shown views.ID, counts map[views.ID]int, width int) (texts []string, gap int) {
	text := func(id views.ID, between, name string) string {
		text := id.Key()
		if name != "" {
			text += between + name
			if n := counts[id]; n > 0 {
				// With a blank, the number would read as the key of the next view.
				text += ":" + english.Thousands(n)
			}
		}
		if id == shown {
			// The brackets are for terminals that cannot reverse.
			text = "[" + text + "]"
		}
		return text
	}
	for id, name := range views.Names() {
		texts = append(texts, text(views.ID(id), " ", name))
	}
	for _, gap := range []int{2, 1} {
		if len(strings.Join(texts, "  "[:gap])) <= width {
			return texts, gap
		}
	}
	for id := range texts {
		texts[id] = text(views.ID(id), "", "")
	}
	texts[shown] = text(shown, " ", shown.String())
	for _, id := range []views.ID{views.Pending, views.Causes, views.Overview, views.Nodes, views.Pools, views.Devices, views.Claims, views.Classes, views.Taints, views.Teams} {
		if id == shown {
			continue
		}
		texts[id] = text(id, "", views.ShortNames()[id])
		if len(strings.Join(texts, " ")) > width {
			texts[id] = text(id, "", "")
			break
		}
	}
	return texts, 1
}

// keyLine returns the line of keys. Where it would be too long, keys before the last two are
// left out: those for help and for the way out are always there.
func keyLine(l *widget.Look, bindings []key.Binding, width int) string {
	texts := make([]string, 0, len(bindings))
	for _, b := range bindings {
		texts = append(texts, l.Say(widget.Strong, b.Help().Key)+" "+b.Help().Desc)
	}
	for len(texts) > 2 && ansi.StringWidth(strings.Join(texts, "  ")) > width {
		texts = slices.Delete(texts, len(texts)-3, len(texts)-2)
	}
	return ansi.Truncate(strings.Join(texts, "  "), width, "")
}
