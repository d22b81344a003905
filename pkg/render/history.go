// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

const (
	// historyLines limits the events of a history, historyFirst how many of the first ones are
	// shown if there are more. With Wide, all are.
	historyLines = 16
	historyFirst = 3
	// shownTakers limits the claims that are named one by one if nothing else happens in between.
	shownTakers = 3
	// dayAndTime is the form of times in a range of several days.
	dayAndTime = "Jan 2 15:04"
	// timeWidth is the widest column of times.
	timeWidth = 2*len("Sep 15 15:04") + 1
)

// History draws how an answer changed: how it is now and how long the target has waited, and then
// the events, with their times in a zone. With Wide, all events are shown, each claim that got
// devices has a line, and each answer its sentence.
func History(w io.Writer, h *api.History, zone *time.Location, opts Options) error {
	p := NewPage(opts)
	d := &historyDrawing{History: h, clock: newClock(h, zone)}
	said, m := d.head()
	p.Text(0, m, m.Sign()+" "+said)
	if h.Now.Summary != "" {
		p.Text(2, Plain, h.Now.Summary)
	}
	p.Text(2, Faint, d.rangeText(zone))
	events := d.events(opts.Wide)
	if more := len(events) - historyLines; more > 0 && !opts.Wide {
		rest := []Cell{{Text: "…", Mark: Faint}, {Text: english.Count(more, "more event") + ": -o wide", Mark: Faint}}
		events = slices.Concat(events[:historyFirst], [][]Cell{rest}, events[len(events)-historyLines+historyFirst:])
	}
	p.Blank()
	p.Rows(2, events, timeWidth)
	return p.Print(w)
}

// HistoryLine is an event of a history in words.
type HistoryLine struct{ Time, Text string }

// HistoryLines returns how the answer is now, and the events with their times in a zone.
func HistoryLines(h *api.History, zone *time.Location) (said string, m Mark, lines []HistoryLine) {
	d := &historyDrawing{History: h, clock: newClock(h, zone)}
	said, m = d.head()
	for _, row := range d.events(false) {
		lines = append(lines, HistoryLine{row[0].Text, row[1].Text})
	}
	return said, m, lines
}

// clock says when something was, as exactly as a range of times needs it.
type clock struct {
	zone *time.Location
	form string
	// day is the day of the end of the range.
	day string
}

func newClock(h *api.History, zone *time.Location) clock {
	c := clock{zone: zone, form: "15:04", day: h.To.In(zone).Format(time.DateOnly)}
	switch {
	case h.From.In(zone).Format(time.DateOnly) != c.day:
		c.form = dayAndTime
	case h.To.Sub(h.From.Time) < time.Hour:
		c.form = time.TimeOnly
	}
	return c
}

func (c clock) at(t metav1.Time) string { return t.In(c.zone).Format(c.form) }

// since says when something before the end was, with the day if it was another one.
func (c clock) since(t metav1.Time) string {
	if t.In(c.zone).Format(time.DateOnly) != c.day {
		return t.In(c.zone).Format(dayAndTime)
	}
	return c.at(t)
}

// between says when an event was.
func (c clock) between(after *metav1.Time, t metav1.Time) string {
	if after == nil || c.at(*after) == c.at(t) {
		return c.at(t)
	}
	to := c.at(t)
	if day := t.In(c.zone).Format(time.DateOnly); c.form == dayAndTime && day == after.In(c.zone).Format(time.DateOnly) {
		to = t.In(c.zone).Format("15:04")
	}
	return c.at(*after) + "–" + to
}

// historyDrawing draws one history.
type historyDrawing struct {
	*api.History
	clock clock
}

// head says what the answer is now, and how long the target has waited.
func (d *historyDrawing) head() (string, Mark) {
	target := d.Object.Kind + " " + d.Object.QualifiedName()
	said, m := target+" "+verdictText(d.Now.Verdict), VerdictMark(d.Now.Verdict)
	switch {
	case d.Now.Verdict == "":
		said, m = target+" is gone", Unsure
	case d.Now.Node != "":
		said = target + " is scheduled to " + d.Now.Node
	}
	switch {
	case d.Waits && d.WaitingSince != nil && !d.To.Before(d.WaitingSince):
		said += "; pending since " + d.clock.since(*d.WaitingSince) + " (" + Age(int64(d.To.Sub(d.WaitingSince.Time)/time.Second)) + ")"
	case d.SecondsWaited > 0:
		said += "; pending for " + Age(d.SecondsWaited) + " before"
	}
	return said, m
}

func verdictText(v api.Verdict) string {
	switch v {
	case api.Fits:
		return "fits"
	case api.DoesNotFit:
		return "does not fit"
	case api.Allocated:
		return "is allocated"
	case api.Blocked:
		return "is blocked"
	case api.Error:
		return "cannot be decided by the allocator"
	case api.Undetermined:
	}
	return "cannot be determined"
}

// VerdictMark marks a verdict.
func VerdictMark(v api.Verdict) Mark {
	switch v {
	case api.Fits, api.Allocated:
		return Good
	case api.DoesNotFit, api.Blocked, api.Error:
		return Bad
	case api.Undetermined:
	}
	return Unsure
}

func (d *historyDrawing) rangeText(zone *time.Location) string {
	from, to := d.From.In(zone), d.To.In(zone)
	return from.Format(time.DateTime) + " to " + to.Format(time.DateTime+" MST") + " (" + Age(int64(to.Sub(from)/time.Second)) + ")"
}

// events returns a row for each event. An event says what made the difference or, where that is
// not known, the sentence of the answer; with wide, both.
func (d *historyDrawing) events(wide bool) [][]Cell {
	var rows [][]Cell
	for i := 0; i < len(d.Entries); i++ {
		e := &d.Entries[i]
		if e.Event == api.HistoryTaken {
			n := d.run(i)
			rows = append(rows, d.takenRows(d.Entries[i:i+n], wide)...)
			i += n - 1
			continue
		}
		text, m, summary := d.event(i), Plain, ""
		if e.Answer != nil && (wide || e.Answer.Verdict != api.Fits && e.Answer.Summary != d.Now.Summary) {
			summary = strings.TrimSuffix(e.Answer.Summary, ".")
		}
		switch undo := d.undo(i); {
		case undo != "":
			text += ": " + undo
		case summary != "":
			text, summary = text+": "+summary, ""
		}
		if e.Event == api.HistoryMissed {
			m = Unsure
		}
		if e.Count > 1 {
			text += " (" + strconv.Itoa(e.Count) + " times, last at " + d.clock.at(*e.Last) + ")"
		}
		rows = append(rows, []Cell{{Text: d.clock.between(e.After, e.Time)}, {Text: text, Mark: m}})
		if wide && summary != "" {
			rows = append(rows, []Cell{{}, {Text: summary, Mark: Faint}})
		}
	}
	return rows
}

// event says what happened.
func (d *historyDrawing) event(i int) string {
	e := &d.Entries[i]
	switch e.Event {
	case api.HistoryExisted:
		return verdictText(e.Answer.Verdict)
	case api.HistoryCreated:
		return "created; " + verdictText(e.Answer.Verdict)
	case api.HistoryScheduled:
		return "scheduled to " + e.Answer.Node
	case api.HistoryDeleted:
		return "deleted"
	case api.HistoryMissed:
		return "not known: " + e.Note
	case api.HistoryTaken, api.HistoryChanged:
	}
	was, is := e.Was.Verdict, e.Answer.Verdict
	switch {
	case was == is:
		return verdictText(is) + " for another reason"
	case is == api.Fits:
		return "fits now"
	case is == api.DoesNotFit && outcomeOf(was) == api.Fits:
		return "fits no longer"
	default:
		return verdictText(is)
	}
}

// undo names the changes that changed the verdict. Claims that the event before names are not
// described again.
func (d *historyDrawing) undo(i int) string {
	e := &d.Entries[i]
	if e.Event != api.HistoryChanged || e.Was.Verdict == api.Undetermined || e.Answer.Verdict == api.Undetermined {
		return ""
	}
	changed := api.ChangedAnswer{Object: d.Object, Was: *e.Was, Is: *e.Answer, Undo: slices.Clone(e.Undo), Note: e.Note}
	for k := range changed.Undo {
		for _, o := range changed.Undo[k].Objects {
			if i > 0 && d.Entries[i-1].Time.Equal(&e.Time) && slices.ContainsFunc(d.Entries[i-1].Taken, func(t api.TakenDevices) bool { return t.Claim == o.Object }) {
				changed.Undo[k].Message = "claim " + o.Object.QualifiedName() + " made the difference"
			}
		}
	}
	return undoText(&changed)
}

// run counts the entries from an index on that have devices that were taken.
func (d *historyDrawing) run(from int) int {
	n := slices.IndexFunc(d.Entries[from:], func(e api.HistoryEntry) bool { return e.Event != api.HistoryTaken })
	if n < 0 {
		return len(d.Entries) - from
	}
	return n
}

// takenRows returns a row for each claim that got devices, or a row for all if there are many.
func (d *historyDrawing) takenRows(entries []api.HistoryEntry, wide bool) [][]Cell {
	claims, devices := 0, 0
	reasons := map[api.TakenReason]int{}
	var names []string
	var rows [][]Cell
	for i := range entries {
		e := &entries[i]
		for k := range e.Taken {
			taken := &e.Taken[k]
			claims++
			devices += len(taken.Devices)
			reasons[taken.Reason]++
			if name := taken.Claim.QualifiedName(); !slices.Contains(names, name) {
				names = append(names, name)
			}
			rows = append(rows, []Cell{{Text: d.clock.between(e.After, e.Time)}, {Text: takenText(taken)}})
		}
	}
	if wide || claims <= shownTakers {
		return rows
	}
	text := english.Count(claims, "claim") + " got " + english.Count(devices, "device") + " that it could have used (" + english.Sample(names, shownTakers) + ")"
	var parts []string
	for _, r := range []struct {
		reason    api.TakenReason
		one, many string
	}{
		{api.TakenByPriority, "a pod of higher priority", "pods of higher priority"},
		{api.TakenByAge, "an older pod", "older pods"},
		{api.TakenByScheduler, "a pod that the scheduler served first", "pods that the scheduler served first"},
	} {
		if n := reasons[r.reason]; n > 0 {
			parts = append(parts, strconv.Itoa(n)+" for "+english.Plural(n, r.one, r.many))
		}
	}
	if len(parts) > 0 {
		text += ": " + english.JoinAnd(parts)
	}
	first, last := &entries[0], &entries[len(entries)-1]
	return [][]Cell{{{Text: d.clock.between(&first.Time, last.Time)}, {Text: text}}}
}

// takenText says which devices a claim got, and why its pod came first.
func takenText(t *api.TakenDevices) string {
	names := make([]string, 0, len(t.Devices))
	for _, device := range t.Devices {
		name := device.Device
		if device.Pool != t.Node {
			name = device.Pool + "/" + name
		}
		names = append(names, name)
	}
	text := "claim " + t.Claim.QualifiedName() + " got " + english.Sample(names, shownTakers)
	if t.Node != "" {
		text += " on " + t.Node
	}
	priorities := fmt.Sprintf("priority %d, this one %d", t.Priority, t.TargetPriority)
	switch {
	case t.Reason == api.TakenByPriority:
		return text + ": its pod has " + priorities
	case t.Reason == api.TakenByAge:
		return text + ": its pod was created earlier"
	case t.Reason == api.TakenByScheduler && t.Priority != t.TargetPriority:
		return text + ": the scheduler served its pod first, which has " + priorities
	case t.Reason == api.TakenByScheduler:
		return text + ": the scheduler served its pod first"
	default:
		return text
	}
}
