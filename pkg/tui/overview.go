// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/overview"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// overviewScreen is the first page: used devices, stuck pods with reasons, namespaces, and
// problems that need somebody. Its model is worked out in the background.
type overviewScreen struct {
	page *overview.Page
	// nodes is the list whose groups and order the nodes have here, too.
	nodes   *listScreen
	started time.Time
	// survey is of the picture that is shown, shown what the model was made of; they are
	// forgotten while another screen is shown. at is the time of the newest that history has.
	survey  *inventory.Survey
	shown   madeOf
	history views.History
	at      time.Time
	loading bool
	problem error
	height  int
	// noMap is true if somebody wants no map, also where there is room for it.
	noMap bool
}

// madeOf says what a model was made of: if that is the same, so is the model.
type madeOf struct {
	picture   *live.Picture
	causes    *live.Causes
	problem   error
	changes   string
	namespace string
	events    int
	// nodes is true if these are shown as cells, in groups and in an order; room says how many large
	// claims fit on them.
	nodes bool
	by    inventory.Grouping
	order inventory.Order
	room  string
}

// overviewMsg has the model of the overview.
type overviewMsg struct {
	screen *overviewScreen
	survey *inventory.Survey
	made   madeOf
	// overview is the overview that model shows.
	overview *inventory.Overview
	model    overview.Model
	took     time.Duration
	err      error
}

func (msg overviewMsg) arrive(h *host) tea.Cmd { return msg.screen.set(h, msg) }

func newOverview(l *widget.Look, nodes *listScreen, started time.Time) *overviewScreen {
	return &overviewScreen{page: overview.New(l), nodes: nodes, started: started}
}

func (s *overviewScreen) title() string { return views.Overview.String() }

// showsMap reports whether nodes are a map here.
func (s *overviewScreen) showsMap() bool { return s.shown.nodes }

func (*overviewScreen) hasCauses() bool { return true }

func (s *overviewScreen) resize(h *host, width, height int) {
	s.height = height
	room := h.paneSize(views.Overview, width, height)
	if room.under {
		room.width = 0
		h.message = fmt.Sprintf("a pane needs %d columns on this page", paneBeside)
	}
	s.page.Resize(width, height, room.width)
}

func (s *overviewScreen) refresh(h *host) tea.Cmd {
	if h.live.Picture() == nil || s.loading {
		return nil
	}
	by, order := s.nodes.groups()
	in := s.summary(h)
	made := madeOf{h.live.Picture(), in.Causes, in.Problem, in.Changes.String(), h.namespace, h.live.Happened().Version(), s.nodes.chart != nil || s.page.WantsNodes() && !s.noMap, by, order, strings.Join(in.Room, "; ")}
	if s.shown == made {
		return nil
	}
	s.loading = true
	ctx, catalog := h.ctx, h.catalog
	msg := overviewMsg{screen: s, survey: s.survey, made: made}
	if s.shown.picture != made.picture {
		msg.survey = nil
	}
	return func() tea.Msg {
		start := time.Now()
		if msg.survey == nil {
			msg.survey, msg.err = made.picture.Inventory.Survey(ctx, made.picture.Pools)
		}
		if made.nodes && msg.err == nil {
			var list widget.Content
			if list, msg.err = catalog.Of(ctx, made.picture, nil, views.Nodes); list != nil {
				in.Nodes = views.NodesOf(list, nil)
			}
		}
		if msg.err == nil {
			msg.overview = msg.survey.Overview(inventory.Known{Namespace: made.namespace, Reason: func(*corev1.Pod) api.StuckReason { return api.StuckReason{} }})
			msg.model = in.Model(msg.overview)
		}
		msg.took = time.Since(start)
		return msg
	}
}

func (s *overviewScreen) set(h *host, msg overviewMsg) tea.Cmd {
	s.loading = false
	causes := h.live.Worked(msg.took, h.seen())
	s.shown, s.problem = msg.made, msg.err
	if msg.err != nil {
		s.survey = nil
	} else {
		if s.survey != msg.survey {
			s.history.Remember(h.now(), msg.overview, msg.survey.Waiting())
			s.at = msg.made.picture.Cluster.Snapshot.Now()
		}
		s.survey = msg.survey
		s.page.Set(msg.model)
	}
	if h.top() != screen(s) {
		s.letGo()
		return causes
	}
	return tea.Batch(causes, s.refresh(h), s.nodes.chart.count(h))
}

// letGo forgets the picture that the page is of, which is not shown.
func (s *overviewScreen) letGo() { s.survey, s.shown = nil, madeOf{} }

func (s *overviewScreen) view(h *host) string {
	switch {
	case s.problem != nil:
		return filled(h.look.Say(widget.Bad, h.oneLine(s.problem.Error())), s.height)
	case s.at.IsZero():
		return filled(oneMoment(h), s.height)
	default:
		return s.page.View()
	}
}

func (s *overviewScreen) actions(h *host) []action {
	k := &h.keys
	move := func(by int) func() tea.Cmd { return just(func() { s.page.Move(by) }) }
	first, last := move(-noLimit), move(noLimit)
	actions := []action{
		{k.down, keysMove, move(1)},
		{k.up, keysMove, move(-1)},
		{k.top, keysMove, first},
		{k.end, keysMove, last},
		{k.pageUp, keysMove, first},
		{k.pageDown, keysMove, last},
		{k.enter, keysMove, func() tea.Cmd { return s.open(h) }},
		{k.copy, keysCloser, func() tea.Cmd { return copyStep(h, s.row()) }},
		{k.mapOr(s.showsMap(), hideMap), keysCloser, func() tea.Cmd { return s.toggleMap(h) }},
	}
	actions = append(actions, h.paneKeys(views.Overview, s.page.HasPane)...)
	if s.showsMap() {
		right := func(by int) func() tea.Cmd { return just(func() { s.page.Right(by) }) }
		actions = append(actions, action{k.left, keysMove, right(-1)}, action{k.right, keysMove, right(1)})
	}
	if s.nodes.chart != nil {
		actions = append(actions, action{k.group, keysFind, func() tea.Cmd { return s.nodes.chooseGroups(h) }})
		actions = append(actions, s.nodes.chart.orders(h)...)
	}
	return actions
}

// hideMap says what the key of the map does where that is shown.
const hideMap = "hide map"

// toggleMap shows the map, here and in place of the list of nodes, or neither.
func (s *overviewScreen) toggleMap(h *host) tea.Cmd {
	s.noMap = s.showsMap()
	var cmd tea.Cmd
	if s.noMap == (s.nodes.chart != nil) {
		cmd = s.nodes.toggleMap(h)
	}
	return tea.Batch(cmd, s.refresh(h))
}

// open shows the screen behind the selected row.
func (s *overviewScreen) open(h *host) tea.Cmd {
	if next, ok := s.page.Selected().(*views.Place); ok && next != nil {
		return h.push(screenAt(next))
	}
	h.message = "nothing to open here"
	return nil
}

func (s *overviewScreen) row() any { return s.page.Item() }

func (s *overviewScreen) wheel(_ *host, by int) { s.page.Move(by / 3) }

// click selects a row; a second click opens it.
func (s *overviewScreen) click(h *host, x, y int) tea.Cmd {
	if s.page.Click(x, y) {
		return s.open(h)
	}
	return nil
}

func (s *overviewScreen) bindings(h *host) []key.Binding {
	k := &h.keys
	keys := []key.Binding{k.enter, k.why, k.copy}
	if s.page.HasMap() {
		keys = append(keys, k.mapOr(true, hideMap), k.group)
	}
	if noChanges(h) == "" {
		keys = append(keys, k.change)
	}
	return append(keys, k.filter, k.find, k.goTo, k.namespace, k.freeze)
}

// remembered is how old the newest sample of the history may be.
const remembered = views.HistoryStep

// remember keeps the history going while another screen is shown.
func (s *overviewScreen) remember(h *host) tea.Cmd {
	if h.fixed || h.live.Picture() == nil || !s.at.IsZero() && h.live.Picture().Cluster.Snapshot.Now().Sub(s.at) < remembered {
		return nil
	}
	return s.refresh(h)
}

// summary takes what a model is made of as it is now.
func (s *overviewScreen) summary(h *host) *views.Summary {
	by, order := s.nodes.groups()
	p := h.live.Picture()
	known, problem := h.live.Causes(h.namespace)
	return &views.Summary{
		Look: &h.look, Cluster: p.Cluster, Inventory: p.Inventory, Fixed: h.fixed, Started: s.started, Causes: known, Problem: problem, Changes: h.live.Changes(h.namespace),
		Stale: strings.TrimPrefix(causesAge(h, known), ", "),
		Hours: s.history.Hours(h.now()), Events: h.live.Happened().Events(), By: by, Order: order, Room: s.nodes.chart.texts(),
	}
}

// filled puts empty lines below a line until the screen is full.
func filled(line string, height int) string {
	return line + strings.Repeat("\n", max(height-1, 0))
}
