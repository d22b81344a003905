// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"errors"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// changeScreen shows what a change would do and asks whether to make it.
type changeScreen struct {
	*pageScreen
	change Change
	// plan is nil until it is worked out. doing is true once somebody said yes, err is
	// why there is no plan, or why the change was not made.
	plan  *Plan
	doing bool
	err   error
}

type (
	// plannedMsg has what a change would do.
	plannedMsg struct {
		screen *changeScreen
		plan   *Plan
		err    error
	}
	// madeMsg says what became of a change.
	madeMsg struct {
		screen *changeScreen
		done   string
		err    error
	}
)

func (msg plannedMsg) arrive(h *host) tea.Cmd { return msg.screen.planned(h, msg) }

func (msg madeMsg) arrive(h *host) tea.Cmd { return msg.screen.made(h, msg) }

// noChanges says why nothing can be changed, empty if something can.
func noChanges(h *host) string {
	switch {
	case h.fixed:
		return "a file cannot be changed"
	case h.changer == nil:
		return "nothing is changed without --allow-changes: start kubectl dra top with it"
	default:
		return ""
	}
}

// askForChange offers what can be done about the selected row.
func askForChange(h *host) tea.Cmd {
	if h.message = noChanges(h); h.message != "" {
		return nil
	}
	s, ok := h.top().(rows)
	if !ok {
		h.message = "no row is selected here: a change is about a row of the overview or of a list"
		return nil
	}
	if h.live.Picture() == nil {
		h.message = "nothing is known yet"
		return nil
	}
	item := s.row()
	var changes []Change
	objects, suffer := views.ItemsOf(h.live.Picture(), item)
	for _, of := range objects {
		changes = append(changes, changesOf(h.live.Picture(), of)...)
	}
	if len(changes) == 0 {
		for _, of := range suffer {
			changes = append(changes, changesOf(h.live.Picture(), of)...)
		}
	}
	switch len(changes) {
	case 0:
		h.message = noChangeOf(item)
		return nil
	case 1:
		return preview(h, changes[0])
	}
	return choose(h, "change", func() []widget.Found {
		items := make([]widget.Found, 0, len(changes))
		for _, change := range changes {
			items = append(items, widget.Found{Name: change.String()})
		}
		return items
	}, func(item widget.Found) tea.Cmd {
		return preview(h, changes[slices.IndexFunc(changes, func(c Change) bool { return c.String() == item.Name })])
	})
}

// changesOf returns the possible changes of an item.
func changesOf(p *live.Picture, item any) []Change {
	var changes []Change
	// untaint removes the rules with a taint on any device that is chosen.
	untaint := func(prefix string) {
		for _, taint := range p.Inventory.Taints() {
			if taint.Rule != "" && slices.ContainsFunc(taint.Devices, func(name string) bool { return name == prefix || strings.HasPrefix(name, prefix+"/") }) {
				changes = append(changes, Change{Kind: RemoveTaint, Name: taint.Rule})
			}
		}
	}
	switch x := item.(type) {
	case *api.Device:
		changes = append(changes, Change{Kind: AddTaint, Driver: x.Driver, Pool: x.Pool, Device: x.Name}, Change{Kind: AddTaint, Driver: x.Driver, Pool: x.Pool})
		untaint(inventory.DeviceName(x))
		for _, holder := range x.Holders {
			changes = append(changes, Change{Kind: DeleteClaim, Namespace: holder.Namespace, Name: holder.Claim})
		}
	case *api.Pool:
		changes = append(changes, Change{Kind: AddTaint, Driver: x.Driver, Pool: x.Name})
		untaint(inventory.PoolName(x))
	case *api.Taint:
		if x.Rule != "" {
			changes = append(changes, Change{Kind: RemoveTaint, Name: x.Rule})
		}
	case *inventory.Node:
		if x.Cordoned {
			changes = append(changes, Change{Kind: Uncordon, Name: x.Name})
		}
	case *api.Claim:
		changes = append(changes, Change{Kind: DeleteClaim, Namespace: x.Namespace, Name: x.Name})
	case *inventory.Pod:
		for _, pc := range p.Cluster.Claims.OfPod(x.Pod) {
			if pc.Claim != nil && p.Cluster.Snapshot.Claim(pc.Claim.Namespace, pc.Claim.Name) != nil {
				changes = append(changes, Change{Kind: DeleteClaim, Namespace: pc.Claim.Namespace, Name: pc.Claim.Name})
			}
		}
	}
	return changes
}

// noChangeOf says why nothing can be done about an item.
func noChangeOf(item any) string {
	switch x := item.(type) {
	case *api.Taint:
		return "the driver sets this taint in its slices: only the driver takes it away"
	case *inventory.Node:
		if x.Name == "" {
			return "no node in this row"
		}
		return "node " + x.Name + " is not cordoned"
	case *inventory.Pod:
		return "the pod has no claim"
	default:
		return "nothing to change in this row"
	}
}

// preview asks for a taint, if that is missing, and shows what a change would do.
func preview(h *host, change Change) tea.Cmd {
	if change.Kind == AddTaint && change.Taint == "" {
		askForTaint(h, change, "")
		return nil
	}
	s := &changeScreen{pageScreen: newPage(&views.Text{Name: change.String()}), change: change}
	cmd := h.push(s)
	ctx, changer, live := h.ctx, h.changer, h.live
	return tea.Batch(cmd, func() tea.Msg {
		// The picture may be older.
		plan, err := changer.Plan(ctx, live.Snapshot(), change)
		return plannedMsg{s, plan, err}
	})
}

// taintTexts returns the taints to propose: those in use, and their keys with other
// effects.
func taintTexts(p *live.Picture) []string {
	var texts []string
	for _, taint := range p.Inventory.Taints() {
		texts = append(texts, inventory.TaintText(&taint))
		for _, effect := range []string{"NoSchedule", "NoExecute", "None"} {
			texts = append(texts, taint.Key+":"+effect)
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// askForTaint asks for the taint of a change. What is no taint can be corrected.
func askForTaint(h *host, change Change, typed string) {
	h.line.Open(&widget.Question{
		Prompt: change.String() + " with: ", Value: typed, Proposed: taintTexts(h.live.Picture()),
		Help: "KEY[=VALUE]:EFFECT; NoSchedule keeps new pods away, NoExecute evicts those that run, None informs",
		Answered: func(text string) tea.Cmd {
			if text == "" {
				return nil
			}
			if err := h.changer.CheckTaint(text); err != nil {
				askForTaint(h, change, text)
				h.message = err.Error()
				return nil
			}
			change.Taint = text
			return preview(h, change)
		},
	})
}

// planned shows what a change would do.
func (s *changeScreen) planned(h *host, msg plannedMsg) tea.Cmd {
	s.plan, s.err = msg.plan, msg.err
	if h.top() == screen(s) {
		// A message that it is not known yet is out of date.
		h.message = ""
	}
	return s.refresh(h)
}

// made says what became of a change. What failed stays on the screen, with what would
// have been done.
func (s *changeScreen) made(h *host, msg madeMsg) tea.Cmd {
	s.doing, s.err = false, msg.err
	var stale *StaleError
	if errors.As(msg.err, &stale) {
		// It is not for repeating.
		s.plan = nil
	}
	shown := h.top() == screen(s)
	switch {
	case shown && msg.err == nil:
		cmd := h.back()
		h.message = msg.done
		return cmd
	case shown:
		return s.refresh(h)
	case msg.err != nil:
		h.message = msg.err.Error()
	default:
		h.message = msg.done
	}
	return nil
}

// refresh draws the text again.
func (s *changeScreen) refresh(h *host) tea.Cmd {
	var lines []string
	width := s.pager.Width()
	if s.err != nil {
		for _, line := range strings.Split(ansi.Wrap(render.EscapeLines(s.err.Error()), width, ""), "\n") {
			lines = append(lines, h.look.Say(widget.Bad, line))
		}
		lines = append(lines, "")
	}
	if s.plan != nil {
		lines = append(lines, s.plan.Lines(&h.look, width)...)
	} else if s.err == nil {
		lines = []string{oneMoment(h)}
	}
	s.set(pageMsg{text: strings.Join(lines, "\n"), width: width})
	return nil
}

func (s *changeScreen) actions(h *host) []action {
	k := &h.keys
	return append(s.pageScreen.actions(h),
		action{k.yes, keysCloser, func() tea.Cmd { return s.confirmed(h) }},
		action{k.no, keysCloser, h.back},
		action{k.enter, keysCloser, h.back},
		action{k.copy, keysCloser, func() tea.Cmd {
			if s.plan == nil {
				return nil
			}
			return sendToClipboard(h, []string{s.plan.Command})
		}},
	)
}

// confirmed makes the change. It is made once.
func (s *changeScreen) confirmed(h *host) tea.Cmd {
	switch {
	case s.plan == nil && s.err == nil:
		h.message = "one moment: what it does is not known yet"
		return nil
	case s.plan == nil || s.doing:
		return nil
	}
	s.doing, s.err = true, nil
	ctx, plan := h.ctx, s.plan
	return tea.Batch(s.refresh(h), func() tea.Msg {
		done, err := plan.Do(ctx)
		return madeMsg{s, done, err}
	})
}

// view returns the whole question in its last line, with the text about it cut if there is
// no room, and whether there is more to read.
func (s *changeScreen) view(h *host) string {
	about, question := s.question()
	more := ""
	if last := s.pager.YOffset() + s.pager.Height(); last < s.pager.TotalLineCount() {
		more = "  " + english.Count(s.pager.TotalLineCount()-last, "more line")
	}
	about = ansi.Truncate(about, max(h.width-ansi.StringWidth(question+more), 0), h.look.Glyphs.More)
	return s.pager.View() + "\n" + h.look.Say(widget.Warning, about+question) + h.look.Say(widget.Faint, more)
}

// question returns the text about the change and the question, or why none is asked.
func (s *changeScreen) question() (about, question string) {
	about = english.Capitalized(render.Escape(s.change.String()))
	switch {
	case s.doing:
		return about, ": sent, no answer yet"
	case s.plan == nil && s.err == nil:
		return about, ": working out what it does"
	case s.plan == nil:
		return "", "nothing was changed; esc goes back"
	case s.err != nil:
		return about, "? It failed; again? [y/N]"
	default:
		return about, "? [y/N]"
	}
}

func (s *changeScreen) bindings(h *host) []key.Binding {
	keys := []key.Binding{h.keys.down, h.keys.copy}
	if s.plan != nil && !s.doing {
		keys = append([]key.Binding{h.keys.yes, h.keys.no}, keys...)
	}
	return keys
}
