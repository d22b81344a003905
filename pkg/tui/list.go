// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// listScreen is a list that can be filtered, sorted and opened.
type listScreen struct {
	id    views.ID
	table widget.Table
	// wanted is the arrangement to show, shown the current one.
	wanted, shown views.Arrangement
	// arranging is true while rows are worked out, stale if they have to be
	// again.
	arranging, stale bool
	// from is the picture that is shown; nil if the rows have to be worked out again.
	from *live.Picture
	// problem says why the rows are not the wanted ones, note has further remarks about
	// them.
	problem error
	note    string
	height  int
	pane    pane
	// still is the last view of a list whose rows are worked out again.
	still string
	// chart is the map of nodes; nil where they are strips.
	chart *nodeMap
}

// arrangedMsg has the rows of a list.
type arrangedMsg struct {
	list *listScreen
	how  views.Arrangement
	from *live.Picture
	// content is nil if it could not be made.
	content widget.Content
	rows    []int
	note    string
	took    time.Duration
	err     error
}

func (msg arrangedMsg) arrive(h *host) tea.Cmd { return msg.list.set(h, msg) }

func newList(id views.ID, within views.Scope) *listScreen {
	return &listScreen{id: id, wanted: views.Arrangement{Scope: within, SortBy: -1}}
}

// screenAt returns the screen of a place.
func screenAt(p *views.Place) screen {
	if p.Text != nil {
		return newPage(p.Text)
	}
	list := newList(p.View, p.Scope)
	if p.Map != nil {
		list.chart = &nodeMap{table: &list.table, by: p.Map.By, order: p.Map.Order}
	}
	return list
}

func (s *listScreen) title() string {
	if s.wanted.Scope.Of != "" {
		return fmt.Sprintf("%s of %s", s.id, s.wanted.Scope.Of)
	}
	return s.id.String()
}

// hasCauses reports whether a list has causes: all do, since the line of the views counts them.
func (*listScreen) hasCauses() bool { return true }

// ofCauses reports whether the rows are made of causes.
func ofCauses(id views.ID) bool {
	return id == views.Pending || id == views.Causes || id == views.Findings
}

func (s *listScreen) resize(h *host, width, height int) {
	s.height = height
	width, height = s.pane.resize(h.paneSize(s.id, width, height), width, height)
	s.table.Resize(width, max(height-1, 1))
}

// refresh works the rows out again, if they are not those that are wanted. One
// at a time: what is asked meanwhile is done afterwards.
func (s *listScreen) refresh(h *host) tea.Cmd {
	s.wanted.Namespace = h.namespace
	if ofCauses(s.id) {
		s.wanted.Causes = h.causes()
	}
	if h.live.Picture() == nil || s.from == h.live.Picture() && s.shown.Same(s.wanted) {
		return nil
	}
	if s.arranging {
		s.stale = true
		return nil
	}
	s.arranging, s.stale = true, false
	ctx, p, how, id, catalog := h.ctx, h.live.Picture(), s.wanted, s.id, h.catalog
	return func() tea.Msg {
		start := time.Now()
		msg := arrangedMsg{list: s, how: how, from: p}
		if msg.content, msg.err = catalog.Of(ctx, p, how.Causes, id); msg.err == nil {
			msg.rows, msg.note, msg.err = how.Apply(ctx, p, msg.content)
		}
		msg.took = time.Since(start)
		return msg
	}
}

// set takes the rows. If they could not be worked out, those that are shown
// stay.
func (s *listScreen) set(h *host, msg arrangedMsg) tea.Cmd {
	s.arranging = false
	causes := h.live.Worked(msg.took, h.seen())
	s.problem, s.note = msg.err, msg.note
	if msg.err == nil {
		again := s.shown.Same(msg.how)
		if shown, _ := s.table.Shown(); shown != nil && (s.shown.SortBy != msg.how.SortBy || s.shown.Descending != msg.how.Descending) {
			s.table.Home()
		}
		if again && s.from != msg.from {
			s.table.Mark(msg.content, msg.rows, h.now())
		}
		s.table.Set(msg.content, msg.rows, again)
	}
	s.from, s.shown = msg.from, msg.how
	s.chart.draw(&h.look, s.from)
	if s.stale || !msg.how.Same(s.wanted) {
		return tea.Batch(causes, s.refresh(h))
	}
	return tea.Batch(causes, s.chart.count(h))
}

// manyRows is from how many rows on a list is not kept in memory while another view is shown.
const manyRows = 2000

// letGo forgets the picture that the list is of, which is not shown: the rows are worked out
// again when it is shown. Those of a long list are forgotten, too, but for what they look like
// and which one is selected.
func (s *listScreen) letGo(h *host) {
	t := &s.table
	s.from, s.pane.from = nil, nil
	s.chart.letGo()
	if shown, _ := t.Shown(); shown == nil || shown.Rows() < manyRows {
		return
	}
	s.still = t.View(&h.look, s.shown.SortBy, s.shown.Descending, h.now())
	t.LetGo()
	if h.live.Picture() != nil {
		h.live.Picture().Forget(s.id.String())
	}
}

func (s *listScreen) actions(h *host) []action {
	k, t := &h.keys, &s.table
	move := func(by func() int) func() tea.Cmd { return just(func() { t.Move(by()) }) }
	actions := []action{
		{k.down, keysMove, move(func() int { return 1 })},
		{k.up, keysMove, move(func() int { return -1 })},
		{k.pageDown, keysMove, move(t.Lines)},
		{k.pageUp, keysMove, move(func() int { return -t.Lines() })},
		{k.top, keysMove, move(func() int { return -t.Count() })},
		{k.end, keysMove, move(func() int { return t.Count() })},
		{k.left, keysMove, just(func() { t.Scroll(-1) })},
		{k.right, keysMove, just(func() { t.Scroll(1) })},
		{k.sort, keysFind, func() tea.Cmd { return s.chooseOrder(h) }},
		{k.sortNext, keysFind, func() tea.Cmd { return s.sort(h, s.wanted.SortBy+1) }},
		{k.sortPrev, keysFind, func() tea.Cmd { return s.sort(h, s.wanted.SortBy-1) }},
		{k.reverse, keysFind, func() tea.Cmd {
			s.wanted.Descending = !s.wanted.Descending
			return s.refresh(h)
		}},
	}
	if s.chart != nil {
		actions = s.chart.actions(h)
	}
	actions = append(actions, action{k.enter, keysMove, func() tea.Cmd { return s.open(h) }})
	actions = append(actions, h.paneKeys(s.id, func() bool { return s.pane.shows(&s.table) })...)
	if s.wanted.Filter != "" {
		// The help has the key once.
		unfilter := k.back
		unfilter.SetHelp("", "")
		actions = append(actions, action{unfilter, keysMove, func() tea.Cmd {
			s.wanted.Filter = ""
			return s.refresh(h)
		}})
	}
	switch s.id {
	case views.Nodes:
		actions = append(actions, action{k.mapOr(s.showsMap(), "list"), keysCloser, func() tea.Cmd { return s.toggleMap(h) }}, action{k.group, keysFind, func() tea.Cmd { return s.chooseGroups(h) }})
	case views.Pending, views.Causes:
		actions = append(actions, action{k.copy, keysCloser, func() tea.Cmd { return copyStep(h, s.row()) }})
	default:
	}
	return actions
}

// sort sorts by a column, numbers from the largest down. It goes round: behind the last column is the
// order of the content.
func (s *listScreen) sort(h *host, by int) tea.Cmd {
	shown, _ := s.table.Shown()
	if shown == nil {
		return nil
	}
	columns := len(shown.Columns())
	switch {
	case by >= columns:
		by = -1
	case by < -1:
		by = columns - 1
	}
	// Of numbers, the largest are wanted.
	s.wanted.SortBy, s.wanted.Descending = by, by >= 0 && shown.Numeric(by)
	return s.refresh(h)
}

// chooseOrder asks for the column to sort by.
func (s *listScreen) chooseOrder(h *host) tea.Cmd {
	shown, _ := s.table.Shown()
	if shown == nil {
		return nil
	}
	const own = "the order of the list"
	columns := shown.Columns()
	return choose(h, "sort by", func() []widget.Found {
		items := make([]widget.Found, 0, len(columns)+1)
		for _, column := range columns {
			items = append(items, widget.Found{Name: column})
		}
		return append(items, widget.Found{Name: own})
	}, func(item widget.Found) tea.Cmd { return s.sort(h, slices.Index(columns, item.Name)) })
}

// describe writes about the row that is selected, where there is a pane for it.
func (s *listScreen) describe(h *host) tea.Cmd {
	shown := s.table.Whole
	if s.chart != nil {
		shown = func() map[int]bool { return nil }
	}
	return s.pane.describe(h, &s.table, shown, s.from, s.shown.Causes)
}

// groups returns the grouping and the order of the map of nodes.
func (s *listScreen) groups() (inventory.Grouping, inventory.Order) {
	if s.chart == nil {
		return inventory.Grouping{}, inventory.ByName
	}
	return s.chart.by, s.chart.order
}

// mapFrom is the number of nodes with devices from which on they are a map at first.
const mapFrom = 100

// mapMany shows nodes as a map if a picture has many of them with devices.
func (s *listScreen) mapMany(p *live.Picture) {
	nodes := map[string]bool{}
	for _, slice := range p.Cluster.Snapshot.Slices {
		if name := slice.Spec.NodeName; name != nil {
			nodes[*name] = true
		}
	}
	if len(nodes) >= mapFrom && s.chart == nil {
		s.chart = &nodeMap{table: &s.table}
	}
}

// showsMap reports whether nodes are a map here.
func (s *listScreen) showsMap() bool { return s.chart != nil }

// toggleMap shows nodes as a map, or as strips again.
func (s *listScreen) toggleMap(h *host) tea.Cmd {
	if s.chart != nil {
		s.chart = nil
		return nil
	}
	return s.openMap(h, inventory.Grouping{})
}

// openMap shows nodes as a map, in groups.
func (s *listScreen) openMap(h *host, by inventory.Grouping) tea.Cmd {
	if s.chart == nil {
		s.chart = &nodeMap{table: &s.table}
	}
	s.chart.by = by
	s.chart.draw(&h.look, s.from)
	return tea.Batch(s.chart.count(h), h.top().refresh(h))
}

// chooseGroups asks what the nodes of a group have in common.
func (s *listScreen) chooseGroups(h *host) tea.Cmd {
	if h.live.Picture() == nil {
		return nil
	}
	groupings := inventory.Groupings(h.live.Picture().Cluster.Snapshot.Nodes)
	return choose(h, "group by", func() []widget.Found {
		items := make([]widget.Found, 0, len(groupings))
		for _, by := range groupings {
			items = append(items, widget.Found{Kind: by.Kind(), Name: by.String()})
		}
		return items
	}, func(item widget.Found) tea.Cmd {
		at := slices.IndexFunc(groupings, func(by inventory.Grouping) bool { return by.Kind() == item.Kind && by.String() == item.Name })
		return s.openMap(h, groupings[at])
	})
}

// askForFilter filters as it is typed. Where it is left, the list is as before, and so is what was
// shown: left goes there, nil is for the list itself.
func (s *listScreen) askForFilter(h *host, prompt string, left func() tea.Cmd) {
	before, row := s.wanted.Filter, s.table.SelectedKey()
	filter := func(text string) tea.Cmd {
		s.wanted.Filter = text
		return s.refresh(h)
	}
	h.line.Open(&widget.Question{
		Prompt: prompt + ": ", Value: before, Help: views.FilterHelp, Typed: filter, Answered: filter,
		Left: func() tea.Cmd {
			s.table.Keep(row)
			if left == nil {
				return filter(before)
			}
			return tea.Batch(filter(before), left())
		},
	})
}

func (s *listScreen) row() any { return s.table.Selected() }

// open shows the screen behind the selected row.
func (s *listScreen) open(h *host) tea.Cmd {
	if next := views.PlaceBehind(s.table.Selected()); next != nil {
		return h.push(screenAt(next))
	}
	h.message = "nothing to open in this row"
	return nil
}

// click selects a row, or sorts by a column. A second click opens the row, or
// turns the order round.
func (s *listScreen) click(h *host, x, y int) tea.Cmd {
	if s.chart != nil {
		if s.chart.click(x, y) {
			return s.open(h)
		}
		return nil
	}
	if y == 0 {
		column, ok := s.table.TitleAt(x)
		if !ok {
			return nil
		}
		if column == s.wanted.SortBy {
			s.wanted.Descending = !s.wanted.Descending
			return s.refresh(h)
		}
		return s.sort(h, column)
	}
	if s.table.Click(y) {
		return s.open(h)
	}
	return nil
}

func (s *listScreen) wheel(_ *host, by int) {
	if s.chart != nil {
		s.chart.move(0, by/3)
		return
	}
	s.table.Move(by)
}

func (s *listScreen) view(h *host) string {
	if s.chart != nil {
		return s.pane.besides(&h.look, &s.table, s.chart.view(h), true) + "\n" + s.afterFilter(h, s.chart.foot(h))
	}
	s.table.Unfold(s.unfolds())
	list := s.table.View(&h.look, s.shown.SortBy, s.shown.Descending, h.now())
	if shown, _ := s.table.Shown(); shown == nil {
		if _, below, several := strings.Cut(list, "\n"); several {
			list = "  " + oneMoment(h) + "\n" + below
		}
		if strings.Count(s.still, "\n") == strings.Count(list, "\n") {
			list = s.still
		}
	} else if titles, below, several := strings.Cut(list, "\n"); several && s.table.Count() == 0 && s.shown.Filter != "" {
		_, below, _ = strings.Cut(below, "\n")
		list = titles + "\n" + h.look.Say(widget.Faint, h.oneLine("  no row matches "+s.shown.Filter)) + "\n" + below
	}
	list = s.withRemark(h, list)
	return s.pane.besides(&h.look, &s.table, list, false) + "\n" + s.afterFilter(h, s.foot(h))
}

// withRemark writes the remark about the selected row, or what signs mean, below the list, where that
// has more lines for it than the last one.
func (s *listScreen) withRemark(h *host, list string) string {
	lines := s.remarkLines(h)
	if s.legendApart(h) {
		lines = append(lines, h.look.Legend())
	}
	all := strings.Split(list, "\n")
	return strings.Join(append(all[:len(all)-len(lines)], lines...), "\n")
}

// remarkLines returns the remark about the selected row, after its sentence if that is cut there. There
// are none if a pane has it or the list leaves no lines for all of it.
func (s *listScreen) remarkLines(h *host) []string {
	remark := s.table.Remark()
	if remark == "" || s.pane.shows(&s.table) {
		return nil
	}
	_, height := s.table.Size()
	room := height - s.table.Count() - 2
	lines := strings.Split(ansi.Wrap(render.Escape(remark), h.width, ""), "\n")
	lines[0] = h.look.Actor(lines[0])
	if cut := s.cutSentence(); cut != "" {
		all := strings.Split(ansi.Wrap(cut, h.width, ""), "\n")
		for i := range all {
			all[i] = h.look.Say(widget.Faint, all[i])
		}
		if all = append(all, lines...); len(all) <= room {
			return all
		}
	}
	if len(lines) > room {
		return nil
	}
	return lines
}

// legendApart reports whether the legend of strips is the last line of the list, which no row needs:
// beside the counts there is too little room for it.
func (s *listScreen) legendApart(h *host) bool {
	_, height := s.table.Size()
	legend := ansi.StringWidth(h.look.Legend())
	return s.id == views.Nodes && s.table.Count()+1 < height && !s.pane.shows(&s.table) && legend <= h.width && h.width < legend+legendBeside
}

// legendBeside is the room that counts need to be in one line with the legend of strips.
const legendBeside = 20

// cutSentence returns the sentence of the selected row in lists that have one, if there is too little
// room for it in the row.
func (s *listScreen) cutSentence() string {
	content, _ := s.table.Shown()
	column := sentenceColumn(s.id, &s.table)
	if content != nil && s.id == views.Pending {
		column = slices.Index(content.Columns(), "Reason")
	}
	row, selected := s.table.SelectedRow()
	if !selected || column < 0 || s.table.Whole()[column] {
		return ""
	}
	return content.Cell(row, column)
}

// sentenceColumn returns the column with the sentences of lists that have them; a negative one for none.
func sentenceColumn(id views.ID, table *widget.Table) int {
	content, _ := table.Shown()
	if content == nil || id != views.Causes && id != views.Findings {
		return -1
	}
	return slices.IndexFunc(content.Columns(), func(title string) bool { return title == "Cause" || title == "Message" })
}

// unfolds returns the column whose texts go on in free lines below their rows; a negative one for none,
// as where these lines are for the remark about the selected row, or for the pane.
func (s *listScreen) unfolds() int {
	if !s.pane.shows(&s.table) || s.pane.under && s.pane.height == 0 {
		return -1
	}
	return sentenceColumn(s.id, &s.table)
}

// oneMoment stands where something is being worked out.
func oneMoment(h *host) string { return h.look.Say(widget.Faint, "One moment"+h.look.Glyphs.More) }

// afterFilter writes the filter before the numbers of rows: a user who comes back to the list has to see
// the filter.
func (s *listScreen) afterFilter(h *host, foot string) string {
	if s.shown.Filter == "" {
		return foot
	}
	filter := h.look.Say(widget.Strong, "filter "+render.Escape(s.shown.Filter))
	return ansi.Truncate(filter+"   "+foot, h.width, h.look.Glyphs.More)
}

// foot says how many rows there are, in which order, and of when.
func (s *listScreen) foot(h *host) string {
	if s.problem != nil {
		return h.look.Say(widget.Bad, h.oneLine(s.problem.Error()))
	}
	shown, rows := s.table.Shown()
	if shown == nil {
		return oneMoment(h)
	}
	if ofCauses(s.id) && s.id != views.Pending && s.shown.Causes == nil {
		if _, err := h.live.Causes(h.namespace); err != nil {
			return h.look.Say(widget.Bad, h.oneLine(err.Error()))
		}
		return h.look.Say(widget.Faint, h.oneLine(fmt.Sprintf("%s %s: being found", h.look.Glyphs.More, s.id)))
	}
	of := s.id.String()
	if s.id == views.Teams || s.id == views.Pending || s.id == views.Nodes {
		// A team has a row for each class, pods of one owner have one together, and devices for several
		// nodes have one.
		of = "rows"
	}
	text := english.Thousands(len(rows)) + " " + of
	if all := shown.Rows(); all != len(rows) {
		text = fmt.Sprintf("%s of %s %s", english.Thousands(len(rows)), english.Thousands(all), of)
	}
	if len(rows) > 0 {
		text = english.Thousands(s.table.SelectedAt()+1) + "/" + text
	}
	if s.id == views.Pending {
		text += ", " + english.Count(views.PodsIn(shown, rows), "pod")
	}
	if s.shown.Namespace != "" && s.id.Namespaced() {
		text += ", namespace " + s.shown.Namespace
	}
	if columns := shown.Columns(); s.shown.SortBy >= 0 && s.shown.SortBy < len(columns) {
		text += ", by " + columns[s.shown.SortBy]
	}
	if s.note != "" {
		text += "; " + s.note
	}
	if ofCauses(s.id) {
		text += causesAge(h, s.shown.Causes)
		if changes := h.live.Changes(h.namespace); changes != nil && s.id == views.Causes {
			text += "; " + changes.String()
		}
	}
	if s.id == views.Nodes {
		counts := text + ", " + views.NodesText(views.NodesOf(shown, rows), 0)
		if s.legendApart(h) {
			if render.Escape(counts) != h.oneLine(counts) {
				counts = text
			}
			return h.look.Say(widget.Faint, h.oneLine(counts))
		}
		// The signs are worth more than what nodes have.
		legend := h.look.Legend()
		for _, counts := range []string{counts, text} {
			if ansi.StringWidth(counts)+3+ansi.StringWidth(legend) <= h.width {
				return h.look.Say(widget.Faint, render.Escape(counts)+"   ") + legend
			}
		}
		return h.look.Say(widget.Faint, h.oneLine(text+"; "+h.keys.help.Help().Key+" explains the symbols"))
	}
	if remark := s.table.Remark(); remark != "" && !s.pane.shows(&s.table) && len(s.remarkLines(h)) == 0 {
		return h.look.Say(widget.Faint, h.oneLine(text+"   "+remark))
	}
	parts := []string{h.look.Say(widget.Faint, h.oneLine(text))}
	if s.id == views.Causes {
		parts = append(parts, views.Severities(&h.look, s.shown.Causes)...)
	}
	foot := strings.Join(parts, "   ")
	if keys := h.keys.right.Keys(); s.table.HasMore() {
		hint := "   " + h.look.Say(widget.Faint, keys[len(keys)-1]+" shows more columns")
		if ansi.StringWidth(foot+hint) <= h.width {
			foot += hint
		}
	}
	return ansi.Truncate(foot, h.width, h.look.Glyphs.More)
}

// causesAge says of when causes are, where the cluster has changed since.
func causesAge(h *host, known *live.Causes) string {
	if known == nil || known.Current(h.live.Picture()) {
		return ""
	}
	return ", as of " + known.At.Format(time.TimeOnly)
}

func (s *listScreen) bindings(h *host) []key.Binding {
	k := &h.keys
	keys := []key.Binding{k.enter}
	if s.shown.Filter != "" {
		all := k.back
		all.SetHelp(all.Help().Key, "all rows")
		keys = append(keys, all)
	}
	switch s.id {
	case views.Devices, views.Claims, views.Pending, views.Causes, views.Findings, views.Pods:
		keys = append(keys, k.why)
	default:
	}
	switch s.id {
	case views.Nodes:
		keys = append(keys, k.mapOr(s.showsMap(), "list"), k.group)
	case views.Pending, views.Causes:
		keys = append(keys, k.copy)
	default:
	}
	if noChanges(h) == "" {
		keys = append(keys, k.change)
	}
	if s.chart != nil {
		// The map has orders of its own.
		keys = append(keys, k.sort)
	}
	keys = append(keys, k.filter, k.find, k.goTo)
	if s.chart == nil {
		keys = append(keys, k.sort)
	}
	return append(keys, k.yaml, k.tree)
}
