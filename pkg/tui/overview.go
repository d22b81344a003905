// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/look"
)

// overviewScreen is the first page: how much is used, what is stuck and why,
// what is breaking.
type overviewScreen struct {
	width, height int
	// unlimited lines are not cut at the width.
	unlimited bool
	// classes are those of the picture in from.
	classes []api.Class
	taints  []api.Taint
	blocked []lifecycle.BlockedPod
	from    *picture
	loading bool
	// cursor counts the lines that can be opened, first is the uppermost line
	// that is shown.
	cursor, first int
	problem       error
}

// overviewMsg has what the overview needs besides the picture.
type overviewMsg struct {
	from    *picture
	classes []api.Class
	taints  []api.Taint
	blocked []lifecycle.BlockedPod
	took    time.Duration
	err     error
}

func (s *overviewScreen) title() string { return viewOverview.String() }

func (*overviewScreen) showsReasons() bool { return true }

func (*overviewScreen) showsFindings() bool { return true }

func (s *overviewScreen) resize(width, height int) { s.width, s.height = width, height }

func (s *overviewScreen) refresh(m *Model) tea.Cmd {
	if m.picture == nil || s.from == m.picture || s.loading {
		return nil
	}
	s.loading = true
	ctx, p := m.ctx, m.picture
	return func() tea.Msg {
		start := time.Now()
		msg := overviewMsg{from: p}
		msg.classes, msg.err = p.inventory.Classes(ctx)
		msg.taints = p.inventory.Taints()
		msg.blocked = lifecycle.NewStages(p.alloc.Facts, p.snap).BlockedPods()
		msg.took = time.Since(start)
		return msg
	}
}

func (s *overviewScreen) set(m *Model, msg overviewMsg) tea.Cmd {
	s.loading = false
	s.from, s.classes, s.taints, s.blocked, s.problem = msg.from, msg.classes, msg.taints, msg.blocked, msg.err
	for i := range s.classes {
		m.history.add(m.now(), "class "+s.classes[i].Name, used(&s.classes[i].DeviceCounts))
	}
	return s.refresh(m)
}

// noneYet is [Model.noneOf] for what is worked out after the picture: until then
// nothing is known.
func (s *overviewScreen) noneYet(m *Model, text string, resources ...string) string {
	if s.from == nil {
		return m.look.Glyphs.More
	}
	return m.noneOf(text, resources...)
}

func (s *overviewScreen) drivers(m *Model, width int) block {
	b := block{title: "Drivers", none: m.noneOf("no devices", snapshot.ResourceSlices), rest: listOfAll(viewPools)}
	var list []use
	for _, d := range m.picture.drivers() {
		c := &d.devices
		text := fmt.Sprintf("%s/%d free", render.AtMost(c.Free, c.FreeIsUpperBound), c.Total) + placeable(c)
		for _, extra := range []struct {
			n    int
			what string
			tone look.Tone
		}{{c.TaintedInUse, "used+tainted", look.Bad}, {c.Tainted, "tainted", look.Warning}, {c.Unhealthy, "unhealthy", look.Bad}, {c.Unusable, "unusable", look.Bad}} {
			if extra.n > 0 {
				text += m.look.Say(extra.tone, fmt.Sprintf(" %d %s", extra.n, extra.what))
			}
		}
		list = append(list, use{d.name, "driver " + d.name, *c, text, func() screen {
			return newList(viewPools, scope{of: "driver " + d.name, matcher: always(func(item any) bool {
				pool, ok := item.(*api.Pool)
				return ok && pool.Driver == d.name
			})})
		}})
	}
	b.lines = m.usage(list, width)
	return b
}

func (s *overviewScreen) byClass(m *Model, width int) block {
	b := block{title: "Classes", none: s.noneYet(m, "no DeviceClasses", snapshot.ResourceClasses), rest: listOfAll(viewClasses)}
	var list []use
	for i := range s.classes {
		c := &s.classes[i]
		free := render.AtMost(c.Free, c.FreeIsUpperBound)
		if c.DevicesAreLowerBounds {
			free = "?"
		}
		text := fmt.Sprintf("%s/%s free", free, render.AtLeast(c.Devices, c.DevicesAreLowerBounds)) + placeable(&c.DeviceCounts)
		if waiting := c.Claims - c.Allocated; waiting > 0 && m.namespace == "" {
			text += m.look.Say(look.Warning, fmt.Sprintf(" %d pending", waiting))
		}
		if c.Failing > 0 {
			text += m.look.Say(look.Bad, fmt.Sprintf(" fails on %d", c.Failing))
		}
		list = append(list, use{c.Name, "class " + c.Name, c.DeviceCounts, text, func() screen { return newList(viewPools, ofClass(c.Name)) }})
	}
	b.lines = m.usage(list, width)
	return b
}

// placeable is how many of the free devices a pod without tolerations can get,
// unless it is all of them: others are on nodes that are cordoned, dedicated or full.
func placeable(c *api.DeviceCounts) string {
	if c.Placeable >= c.Free {
		return ""
	}
	return fmt.Sprintf(" (%s placeable)", render.AtMost(c.Placeable, c.FreeIsUpperBound))
}

// use is how much of something is used: a line with a bar and a history.
type use struct {
	name string
	// series is its history.
	series string
	counts api.DeviceCounts
	text   string
	open   func() screen
}

const (
	minBar, maxBar = 6, 20
	historyWidth   = historyLength
	// minName is what a long name is cut to where there is no room.
	minName = 16
)

// usage lines up names, bars, histories and texts. Bars, and then names, get narrower
// for what stands behind them; a history is only drawn where there is room.
func (m *Model) usage(list []use, width int) []blockLine {
	names, texts := 0, 0
	for i := range list {
		names = max(names, ansi.StringWidth(render.Escape(list[i].name)))
		texts = max(texts, ansi.StringWidth(list[i].text))
	}
	const indent, gap = 2, 2
	room := width - indent - texts - gap - gap
	names = min(names, max(room-minBar, minName))
	bar := min(max(room-names, minBar), maxBar)
	withHistory := !m.opts.Fixed && room-names-bar >= historyWidth+gap
	lines := make([]blockLine, 0, len(list))
	for i := range list {
		u := &list[i]
		line := look.Padded(ansi.Truncate(render.Escape(u.name), names, m.look.Glyphs.More), names) + "  " + m.look.Bar(u.counts, bar) + "  "
		if withHistory {
			line += m.look.Say(look.Faint, m.history.line(&m.look, u.series, historyWidth)) + "  "
		}
		lines = append(lines, blockLine{text: line + u.text, open: u.open})
	}
	return lines
}

func (s *overviewScreen) broken(m *Model) block {
	b := block{title: "Pools with problems", none: m.noneOf("none", snapshot.ResourceSlices), rest: listOfAll(viewPools)}
	for _, pool := range m.picture.pools {
		if pool.State == api.PoolStateUsable || pool.State == api.PoolStateEmpty {
			continue
		}
		b.lines = append(b.lines, blockLine{
			text: fmt.Sprintf("%s  %s: %s", render.Escape(pool.Driver+"/"+pool.Name), m.look.Say(look.Bad, string(pool.State)), render.Escape(pool.Reason)),
			open: func() screen { return open(&pool) },
		})
	}
	return b
}

// pending counts the claims without devices, and the pods that wait though no claim
// of theirs is pending, by the reason that was found.
func (s *overviewScreen) pending(m *Model) block {
	b := block{title: "Pending claims", none: m.noClaims(), rest: listOfAll(viewPending)}
	var claims, pods, unused []target
	for _, claim := range m.picture.snap.Claims {
		switch of := claimTarget(claim.Namespace, claim.Name); {
		case !isPending(claim) || m.namespace != "" && claim.Namespace != m.namespace:
		case m.picture.inventory.WaitsForPod(claim):
			unused = append(unused, of)
		default:
			claims = append(claims, of)
		}
	}
	for _, pod := range m.picture.waiting {
		if m.namespace == "" || pod.Namespace == m.namespace {
			pods = append(pods, podTarget(pod))
		}
	}
	if m.picture.snap.Gap(snapshot.ResourceClaims) != nil && len(claims)+len(unused) == 0 {
		b.lines = append(b.lines, blockLine{text: m.noClaims()})
	} else if len(claims)+len(pods)+len(unused) > 0 {
		b.title = fmt.Sprintf("Pending claims: %d", len(claims))
	}
	if len(pods) > 0 {
		b.title += fmt.Sprintf(", waiting pods without one: %d", len(pods))
	}
	if len(unused) > 0 {
		b.title += fmt.Sprintf(", claims without a pod: %d", len(unused))
	}
	b.lines = slices.Concat(b.lines,
		s.byReason(m, claims, func(code, name string) screen { return newList(viewPending, withCode(code, name)) }),
		s.byReason(m, pods, func(code, name string) screen { return newList(viewPods, waitingWithCode(code, name)) }),
		m.unused(unused))
	return b
}

// unused counts the pending claims that no pod uses: nothing waits for them.
func (m *Model) unused(claims []target) []blockLine {
	if len(claims) == 0 {
		return nil
	}
	name := string(api.FlagWaitingForPod)
	text := fmt.Sprintf("%s/%s: %s", claims[0].namespace, claims[0].name, inventory.NoPodUsesIt)
	return []blockLine{{
		text: fmt.Sprintf("%4d  %s  %s", len(claims), m.look.Say(look.Faint, name), m.look.Say(look.Faint, render.Escape(text))),
		open: func() screen { return newList(viewPending, withoutPod(name)) },
	}}
}

// byReason counts claims or pods by the reason that was found, with an example for
// each.
func (s *overviewScreen) byReason(m *Model, list []target, open func(code, name string) screen) []blockLine {
	type group struct {
		count   int
		example string
	}
	groups := map[string]*group{}
	for _, of := range list {
		found := m.reasons.get(of)
		if groups[found.code] == nil {
			groups[found.code] = &group{example: fmt.Sprintf("%s/%s: %s", of.namespace, of.name, found.summary)}
		}
		groups[found.code].count++
	}
	var lines []blockLine
	for _, code := range slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		return cmp.Or(cmp.Compare(groups[b].count, groups[a].count), cmp.Compare(a, b))
	}) {
		g := groups[code]
		name, example := code, g.example
		if code == "" {
			name, example = "not explained yet", ""
		}
		lines = append(lines, blockLine{
			text: fmt.Sprintf("%4d  %s  %s", g.count, m.look.Say(look.Warning, name), m.look.Say(look.Faint, render.Escape(example))),
			open: func() screen { return open(code, name) },
		})
	}
	return lines
}

// withoutPod has the pending claims that no pod uses.
func withoutPod(name string) scope {
	return scope{of: name, matcher: func(context.Context, *picture) (func(any) bool, error) {
		return func(item any) bool {
			claim, ok := item.(*api.Claim)
			return ok && isUnused(claim)
		}, nil
	}}
}

// isUnused reports whether a claim waits for nothing but a pod.
func isUnused(claim *api.Claim) bool {
	return slices.ContainsFunc(claim.Flags, func(flag api.ClaimFlag) bool { return flag.Name == api.FlagWaitingForPod })
}

// withCode has the pending claims of pods with a reason code, or without any reason.
func withCode(code, name string) scope {
	return scope{of: name, matcher: func(_ context.Context, p *picture) (func(any) bool, error) {
		return func(item any) bool {
			claim, ok := item.(*api.Claim)
			if !ok || isUnused(claim) {
				return false
			}
			return p.reasons.get(claimTarget(claim.Namespace, claim.Name)).code == code
		}, nil
	}}
}

// waitingWithCode has the pods that no pending claim stands for, with a reason code,
// or without any reason.
func waitingWithCode(code, name string) scope {
	return scope{of: name, matcher: func(_ context.Context, p *picture) (func(any) bool, error) {
		return func(item any) bool {
			pod, ok := item.(*inventory.Pod)
			return ok && p.waits(pod.Pod) && p.reasons.get(podTarget(pod.Pod)).code == code
		}, nil
	}}
}

// listOfAll is a view as it is opened from elsewhere.
func listOfAll(id viewID) func() screen {
	return func() screen { return newList(id, scope{}) }
}

func (s *overviewScreen) evictions(m *Model) block {
	b := block{title: "Taints", none: s.noneYet(m, "none", snapshot.ResourceSlices, snapshot.ResourceTaintRules), rest: listOfAll(viewTaints)}
	now := m.picture.snap.Now()
	for i := range s.taints {
		t := &s.taints[i]
		text := fmt.Sprintf("%s  %s", render.Escape(inventory.TaintText(t)), devices(len(t.Devices)))
		if left, due := inventory.EvictionDue(t, now); due {
			evicted := 0
			for _, pod := range t.Pods {
				if pod.Evicted {
					evicted++
				}
			}
			when := "now"
			if left > 0 {
				when = "in " + duration.HumanDuration(left)
			}
			text += m.look.Say(look.Bad, fmt.Sprintf("  evicts %d of %d pods, the next %s", evicted, len(t.Pods), when))
		}
		b.lines = append(b.lines, blockLine{text: text, open: func() screen { return open(t) }})
	}
	return b
}

func (s *overviewScreen) changes(m *Model) block {
	b := block{title: "Changes", none: "none since " + m.started.Format("15:04:05")}
	for _, c := range slices.Backward(m.changes) {
		b.lines = append(b.lines, blockLine{text: m.look.Say(look.Faint, c.at.Format("15:04:05")) + "  " + m.look.Say(c.tone, render.Escape(c.text))})
	}
	return b
}

// twoColumns is from which width on blocks stand beside each other.
const twoColumns = 150

func (s *overviewScreen) view(m *Model) string {
	lines, at := s.draw(m)
	// The cursor is always seen, and what stands above the first line with it.
	if line := slices.Index(at, s.cursor); line >= 0 {
		s.first = min(s.first, line)
		if s.cursor == 0 {
			s.first = 0
		}
		s.first = max(s.first, line-s.height+1)
	}
	s.first = max(min(s.first, len(lines)-s.height), 0)
	lines = lines[min(s.first, len(lines)):]
	for len(lines) < s.height {
		lines = append(lines, "")
	}
	return strings.Join(lines[:s.height], "\n")
}

// draw writes the blocks, and tells which of the lines can be opened: at has
// their numbers, and -1 for others. In two columns it is about the left one, with
// the right one behind.
func (s *overviewScreen) draw(m *Model) (lines []string, at []int) {
	if m.picture == nil {
		return []string{"One moment"}, []int{-1}
	}
	if s.problem != nil {
		return []string{m.look.Say(look.Bad, m.line(s.problem.Error()))}, []int{-1}
	}
	columns, width := s.layout(m)
	next := 0
	if len(columns) == 1 {
		return s.column(m, columns[0], width, &next)
	}
	first, firstAt := s.column(m, columns[0], width, &next)
	second, secondAt := s.column(m, columns[1], width, &next)
	for i := range max(len(first), len(second)) {
		one, two, number := "", "", -1
		if i < len(first) {
			one, number = first[i], firstAt[i]
		}
		if i < len(second) {
			two = second[i]
			if secondAt[i] == s.cursor {
				number = secondAt[i]
			}
		}
		lines = append(lines, look.Padded(one, width)+" "+m.look.Say(look.Faint, m.look.Glyphs.Between)+" "+two)
		at = append(at, number)
	}
	return lines, at
}

// layout chooses what is shown: one or two columns of blocks, each with as many
// lines as there is room for.
func (s *overviewScreen) layout(m *Model) (columns [][]block, width int) {
	width = s.width
	if width >= twoColumns {
		width = (width - 3) / 2
	}
	used := []block{s.drivers(m, width), s.byClass(m, width), s.broken(m)}
	stuck := []block{s.findings(m), s.pending(m)}
	if blocked := blockedPods(m, s.blocked); len(blocked.lines) > 0 {
		stuck = append(stuck, blocked)
	}
	stuck = append(stuck, s.evictions(m))
	if !m.opts.Fixed {
		stuck = append(stuck, s.changes(m))
	}
	if s.width >= twoColumns {
		columns = [][]block{used, stuck}
	} else {
		columns = [][]block{append([]block{used[0], used[1], stuck[0], stuck[1], used[2]}, stuck[2:]...)}
	}
	for _, column := range columns {
		fit(column, s.height)
	}
	return columns, width
}

// fit cuts blocks that are too long for the height. Each keeps its share.
func fit(blocks []block, height int) {
	shares := make([]int, len(blocks))
	left := height
	for i := range shares {
		shares[i] = min(len(blocks[i].lines), 1)
		left -= 2
	}
	for given := true; left > 0 && given; {
		given = false
		for i := range blocks {
			if left > 0 && shares[i] < len(blocks[i].lines) {
				shares[i]++
				left--
				given = true
			}
		}
	}
	for i := range blocks {
		if b := &blocks[i]; shares[i] < len(b.lines) {
			// The last line tells how many are missing.
			shown := max(shares[i]-1, 0)
			b.more = len(b.lines) - shown
			b.lines = b.lines[:shown]
		}
	}
}

// column draws blocks under each other, apart from each other if there is room.
// next counts the lines that can be opened.
func (s *overviewScreen) column(m *Model, blocks []block, width int, next *int) (lines []string, at []int) {
	needed := len(blocks) - 1
	for i := range blocks {
		needed += 1 + max(len(blocks[i].lines)+min(blocks[i].more, 1), 1)
	}
	add := func(text string, opens bool) {
		number := -1
		if opens {
			if number = *next; number == s.cursor {
				text = m.look.Select(look.Padded(ansi.Truncate(m.look.Glyphs.Cursor+text[1:], width, m.look.Glyphs.More), width))
			}
			*next++
		}
		if !s.unlimited {
			text = ansi.Truncate(text, width, m.look.Glyphs.More)
		}
		lines, at = append(lines, text), append(at, number)
	}
	for i, b := range blocks {
		if i > 0 && needed <= s.height {
			add("", false)
		}
		add(m.look.Header.Render(b.title), false)
		for _, line := range b.lines {
			add("  "+line.text, line.open != nil)
		}
		switch {
		case b.more > 0:
			add(m.look.Say(look.Faint, fmt.Sprintf("  and %d more", b.more)), b.rest != nil)
		case len(b.lines) == 0:
			add(m.look.Say(look.Faint, "  "+b.none), false)
		}
	}
	return lines, at
}

// opened lists what can be opened, in the order of the cursor.
func (s *overviewScreen) opened(m *Model) []func() screen {
	if m.picture == nil {
		return nil
	}
	var all []func() screen
	columns, _ := s.layout(m)
	for _, column := range columns {
		for _, b := range column {
			for _, line := range b.lines {
				if line.open != nil {
					all = append(all, line.open)
				}
			}
			if b.more > 0 && b.rest != nil {
				all = append(all, b.rest)
			}
		}
	}
	return all
}

func (s *overviewScreen) actions(m *Model) []action {
	k := &m.keys
	move := func(by int) func() tea.Cmd { return just(func() { s.move(m, by) }) }
	first, last := move(-noLimit), move(noLimit)
	return []action{
		{k.down, keysMove, move(1)},
		{k.up, keysMove, move(-1)},
		{k.top, keysMove, first},
		{k.end, keysMove, last},
		{k.pageUp, keysMove, first},
		{k.pageDown, keysMove, last},
		{k.enter, keysMove, func() tea.Cmd {
			if all := s.opened(m); s.cursor < len(all) {
				return m.push(all[s.cursor]())
			}
			m.message = "nothing to open here"
			return nil
		}},
	}
}

func (s *overviewScreen) wheel(m *Model, by int) { s.move(m, by/3) }

// move moves the cursor by so many lines that can be opened.
func (s *overviewScreen) move(m *Model, by int) {
	s.cursor = min(max(s.cursor+by, 0), max(len(s.opened(m))-1, 0))
}

// click selects a line; a second click opens it.
func (s *overviewScreen) click(m *Model, x, y int) tea.Cmd {
	all := s.opened(m)
	columns, width := s.layout(m)
	next := 0
	for i, column := range columns {
		_, at := s.column(m, column, width, &next)
		if x < i*(width+3) || x >= i*(width+3)+width || s.first+y >= len(at) {
			continue
		}
		switch number := at[s.first+y]; {
		case number < 0 || number >= len(all):
		case number == s.cursor:
			return m.push(all[number]())
		default:
			s.cursor = number
		}
	}
	return nil
}

func (s *overviewScreen) bindings(m *Model) []key.Binding {
	return []key.Binding{m.keys.up, m.keys.down, m.keys.enter, m.keys.next}
}
