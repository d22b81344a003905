// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// host has the shared state of all screens, and opens one screen from the other.
type host struct {
	ctx     context.Context
	now     func() time.Time
	keys    keyMap
	look    widget.Look
	live    *live.Cluster
	catalog *views.Catalog
	// fixed is true if the cluster never changes; changer makes changes of it, nil where
	// none may be made.
	fixed   bool
	changer Changer
	// namespace is the only one whose claims and pods are shown, empty for all.
	namespace string
	// sorts are the orders that the user wants lists to begin with.
	sorts         map[string]Sort
	width, height int
	// stack has the screens that were opened one from the other, the view first.
	stack []screen
	// panes are how the panes of views are wanted, where that was said.
	panes map[views.ID]paneChoice
	// line is where something is typed for a screen, message what there is to say after a
	// key.
	line    widget.Line
	message string
	// stopTravel ends going through a recording; nil while nothing does.
	stopTravel func()
}

// screen is one page of the dashboard.
type screen interface {
	title() string
	resize(h *host, width, height int)
	// refresh works out the parts that are missing, or not of the newest picture.
	refresh(h *host) tea.Cmd
	// actions are the keys that do something on this screen, or something else than
	// elsewhere.
	actions(h *host) []action
	// wheel scrolls by so many lines.
	wheel(h *host, by int)
	// click is one at a place of the screen.
	click(h *host, x, y int) tea.Cmd
	// view draws as many lines as the screen is high.
	view(h *host) string
	// bindings are the keys that matter most here, for the line of keys.
	bindings(h *host) []key.Binding
	// hasCauses reports whether it shows causes, or what they are found from.
	hasCauses() bool
}

// rows is a screen with a selected row.
type rows interface {
	// row returns the selected item; nil for none.
	row() any
}

// result is the result of background work for a screen.
type result interface {
	// arrive shows it.
	arrive(h *host) tea.Cmd
}

// top returns the screen that is shown.
func (h *host) top() screen { return h.stack[len(h.stack)-1] }

// cannotConnect reports whether there is nothing to see, since there is no connection.
func (h *host) cannotConnect() bool {
	return h.live.Problem() != nil && !h.live.Connected() && len(h.stack) == 1
}

// seen returns what background work has to fill in.
func (h *host) seen() live.Seen {
	return live.Seen{Causes: h.top().hasCauses(), Namespace: h.namespace}
}

// causes returns the newest causes; nil if there are none.
func (h *host) causes() *live.Causes {
	found, _ := h.live.Causes(h.namespace)
	return found
}

// push opens a screen on top of the current one.
func (h *host) push(s screen) tea.Cmd {
	h.line.Close()
	h.order(s)
	h.stack = append(h.stack, s)
	h.resize()
	return h.refresh()
}

// order gives a new list the order that the user wants.
func (h *host) order(s screen) {
	list, ok := s.(*listScreen)
	if !ok {
		return
	}
	if by, ok := h.sorts[list.id.String()]; ok {
		list.wanted.SortBy, list.wanted.Descending = by.Column, by.Descending
	}
}

// back leaves the screen that is shown.
func (h *host) back() tea.Cmd {
	if h.stopTravel != nil {
		h.stopTravel()
		return nil
	}
	if len(h.stack) > 1 {
		h.stack = h.stack[:len(h.stack)-1]
	}
	h.resize()
	return h.refresh()
}

// refresh brings the current screen up to date.
func (h *host) refresh() tea.Cmd {
	return tea.Batch(h.top().refresh(h), h.live.Work(h.seen()))
}

func (h *host) resize() {
	h.line.Resize(h.width)
	for _, s := range h.stack {
		s.resize(h, h.width, h.bodyHeight())
	}
}

// bodyHeight returns what titles, status and help leave to the screen.
func (h *host) bodyHeight() int { return max(h.height-4, 1) }

// oneLine makes a text from outside fit to be a line of the screen.
func (h *host) oneLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return ansi.Truncate(render.Escape(text), h.width, h.look.Glyphs.More)
}

// noLimit is the size of output that is no terminal.
const noLimit = 1 << 20
