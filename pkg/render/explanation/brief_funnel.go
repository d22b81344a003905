// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

const (
	// shortBar is the width of the longest bar on a narrow terminal, longBar on a wide one.
	shortBar, longBar = 10, 20
	// leastFunnel is how many lines a funnel has at least.
	leastFunnel = 4
)

// funnelBlock draws the funnels of as many requests as fit into so many lines, under an
// empty line. It prefers requests without enough devices.
func funnelBlock(p *page, e *api.Explanation, room int) block {
	var requests []*api.RequestExplanation
	for i := range e.Claims {
		for j := range e.Claims[i].Requests {
			requests = append(requests, &e.Claims[i].Requests[j])
		}
	}
	draw := func(most, spare int) block {
		return p.block(func(p *page) {
			if len(requests) > 0 {
				p.Buf.WriteByte('\n')
			}
			for _, r := range requests {
				spare -= writeBriefFunnel(p, r, most, spare)
			}
		})
	}
	if b := draw(room, 0); b.lines <= room {
		return draw(room, room-b.lines)
	}
	if lacking := slices.DeleteFunc(slices.Clone(requests), enough); len(lacking) > 0 {
		requests = lacking
	}
	all := len(requests)
	for ; len(requests) > 0; requests = requests[:len(requests)-1] {
		each := (room - 1 - min(all-len(requests), 1)) / len(requests)
		if each < leastFunnel {
			continue
		}
		b := draw(each-2, 0)
		if left := all - len(requests); left > 0 {
			rest := p.block(func(p *page) {
				p.Text(briefLabel+render.ColumnGap, render.Faint, "and "+english.Count(left, "more request"))
			})
			b.text, b.lines = append(b.text, rest.text...), b.lines+rest.lines
		}
		return b
	}
	return block{}
}

// writeBriefFunnel draws the way from the devices of the class to the available ones: at
// most so many rejections, a line each. With lines to spare, texts get a second one; it
// returns how many.
func writeBriefFunnel(p *page, r *api.RequestExplanation, most, spare int) (second int) {
	title, first, bars := briefFunnel(p, r, most)
	p.TableRow(0, render.Cell{Text: strconv.Itoa(first), Width: briefLabel, Right: true}, render.Cell{Text: title, Mark: render.Strong, Lines: 2})
	if first == 0 {
		return 0
	}
	label := render.Widest(labelWidth, english.Texts(bars, funnelRow.labelOf)...)
	left := p.Table - briefLabel - label - 3*render.ColumnGap
	longest := func(b *funnelRow) int {
		return render.Widest(p.Table, strings.Fields(b.textAtPlace())...) + len(" …")
	}
	long := min(max(p.Table/8, shortBar), longBar)
	for i := range bars {
		// The bars leave room for the longest word.
		long = max(min(long, left-longest(&bars[i])), shortBar/2)
	}
	for i := range bars {
		b := &bars[i]
		drawn := render.DrawnBar(b.count, first, long)
		// A word that is still too long starts further left, if the bar lets it.
		width, lines := max(min(long, left-longest(b)), render.Widest(long, drawn), 1), 1
		bar := []render.Cell{{Text: drawn, Width: width, Mark: b.mark}}
		if p.Opts.NoBars {
			width, bar = 0, nil
		}
		if second < spare && render.Widest(p.Table, b.textAtPlace()) > left-width {
			lines = 2
			second++
		}
		before := []render.Cell{{Text: strconv.Itoa(b.count), Width: briefLabel, Right: true, Mark: b.mark}, {Text: b.label, Width: label}}
		p.TableRow(0, slices.Concat(before, bar, []render.Cell{{Text: b.within(left-width, lines), Lines: lines}})...)
	}
	return second
}

// briefFunnel returns the title of a funnel, the number of devices that it begins with, and a row
// for each check and for the devices that are left. Without devices there are no rows.
func briefFunnel(p *page, r *api.RequestExplanation, most int) (title string, first int, bars []funnelRow) {
	opening, rows := funnelRows(p, r)
	title = english.Plural(opening.count, "device", "devices") + " of class " + r.DeviceClass + ", " + neededBy(r)
	if opening.count == 0 && opening.text != "" && r.Pools > 0 {
		title = neededBy(r) + ": " + opening.text
	}
	if opening.count == 0 {
		return title, 0, nil
	}
	available := funnelRow{count: r.Eligible, label: "available", text: whereAvailable(r), mark: availableMark(r)}
	return title, opening.count, append(rejectionBars(rows, most), available)
}

// Funnel is the way from the devices of a class to the available ones.
type Funnel struct {
	// Title names the class and what the request needs, Total counts the devices.
	Title string
	Total int
	// Bars has the checks that reject devices, and last the devices that are available.
	Bars []FunnelBar
}

// FunnelBar counts the devices that a check rejects, and says why.
type FunnelBar struct {
	Count       int
	Label, Text string
	Mark        render.Mark
}

// FunnelOf returns the funnel of a request with at most so many rejections.
func FunnelOf(r *api.RequestExplanation, most int) *Funnel {
	title, total, rows := briefFunnel(newPage(render.Options{}), r, most)
	f := &Funnel{Title: title, Total: total}
	for i := range rows {
		f.Bars = append(f.Bars, FunnelBar{Count: rows[i].count, Label: rows[i].label, Text: rows[i].textAtPlace(), Mark: rows[i].mark})
	}
	return f
}

// neededBy says what a request needs.
func neededBy(r *api.RequestExplanation) string {
	who := "request " + r.Name
	if r.ExtendedResource != "" {
		who = "extended resource " + r.ExtendedResource
		if r.Container != "" {
			who += " of container " + r.Container
		}
	}
	if r.Needs == 0 {
		return who + " needs all that match"
	}
	return fmt.Sprintf("%s needs %d", who, r.Needs)
}

// rejectionBars returns a bar for each check, those that reject few devices as one if there
// are too many.
func rejectionBars(rows []funnelRow, most int) []funnelRow {
	least := 0
	if len(rows) > most {
		counts := make([]int, 0, len(rows))
		for i := range rows {
			counts = append(counts, rows[i].count)
		}
		slices.Sort(counts)
		least = counts[len(rows)-max(most-1, 0)-1] + 1
	}
	var bars []funnelRow
	others := funnelRow{label: "other checks", mark: render.Bad}
	var names []string
	for _, row := range rows {
		if row.count < least {
			others.count += row.count
			names = append(names, fmt.Sprintf("%s %d", row.label, row.count))
			continue
		}
		row.text = withoutDomains(row.text, row.rejection.Evidence)
		if h := row.rejection.Holders; h != nil {
			row.list = holdersTexts(h)
			row.text = strings.Join(row.list, ", ")
		}
		bars = append(bars, row)
	}
	if others.count > 0 {
		others.list, others.text = names, strings.Join(names, ", ")
		bars = append(bars, others)
	}
	return bars
}

// withoutDomains names the taints of a text, which evidence shows, without their domains.
func withoutDomains(text string, evidence []api.Evidence) string {
	for i := range evidence {
		if taint := evidence[i].Found; strings.Contains(evidence[i].Path, ".taint") {
			text = strings.ReplaceAll(text, taint, render.ShortName(taint))
		}
	}
	return text
}

// within returns the text in at most so many lines. Where it is longer, names are left out in its
// middle: the place at the end, which counts nodes, stays, and the items of a list that are left out
// are counted.
func (r funnelRow) within(room, lines int) string {
	fits := func(text string) bool { return render.LinesOf(text, room) <= lines }
	if fits(r.textAtPlace()) {
		return r.textAtPlace()
	}
	words, items := strings.Fields(r.text), r.list
	for n := min(len(items)-1, lines*room); n > 0; n-- {
		r.text = english.Sample(items, n)
		if fits(r.textAtPlace()) {
			return r.textAtPlace()
		}
	}
	for n := min(len(words)-1, lines*room); n > 0 && !fits(r.textAtPlace()); n-- {
		if _, err := strconv.Atoi(words[n-1]); err == nil && n > 1 {
			// A number without its noun would mislead.
			continue
		}
		r.text = strings.TrimRight(strings.Join(words[:n], " "), ",;") + " …"
	}
	return r.textAtPlace()
}

// holdersTexts says by whom devices are used: "research 10", "serving 8".
func holdersTexts(h *api.Holders) []string {
	if h.Claim.Kind != "" {
		return []string{"to claim " + h.Claim.QualifiedName()}
	}
	var texts []string
	for _, n := range h.Namespaces {
		texts = append(texts, fmt.Sprintf("%s %d", n.Namespace, n.Devices))
	}
	return texts
}

// whereAvailable says on which nodes devices are available.
func whereAvailable(r *api.RequestExplanation) string {
	switch {
	case r.Eligible == 0:
		return ""
	case r.EligibleNodes == 0:
		return "but no node can reach them"
	case r.EligibleNodes == 1:
		return "on " + r.BestNode
	default:
		return fmt.Sprintf("on %d nodes, at most %d on one (%s)", r.EligibleNodes, r.MostOnOneNode, r.BestNode)
	}
}
