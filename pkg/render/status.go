// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

const (
	// statusLines and statusClasses limit the lines of a status and the classes in it, so that it
	// fits a terminal of 24 lines.
	statusLines   = 23
	statusClasses = 4
	// barWidth is the width of the bar of a class, narrowBar the width where lines are short.
	barWidth  = 16
	narrowBar = 10
	shortLine = 100
)

// Status draws a status on one screen: the capacity of classes, the causes with the worst first,
// and the events that are due. With Wide, all of it is shown, and with Commands the commands of
// next steps.
func Status(w io.Writer, s *api.Status, opts Options) error {
	p := NewPage(opts)
	p.Text(0, Strong, StatusTotal(s))
	p.Blank()
	writeCapacity(p, s.Capacity)
	below := statusBelow(s, opts)
	writeCauses(p, s.Causes, causesOptions{lines: max(statusLines, opts.Height-1) - below.Lines()})
	p.Blank()
	p.Buf.Write(below.Buf.Bytes())
	return p.Print(w)
}

// statusBelow draws what stands below the causes.
func statusBelow(s *api.Status, opts Options) *Page {
	p := NewPage(opts)
	for i := range s.Upcoming {
		p.Text(0, Plain, "About to happen: "+s.Upcoming[i].Message)
	}
	if opts.Wide {
		for _, text := range s.NotChecked {
			p.Text(0, Faint, "Not checked: "+text)
		}
		for _, text := range s.Assumptions {
			p.Text(0, Faint, text)
		}
		return p
	}
	if n := len(s.NotChecked); n > 0 {
		p.Text(0, Faint, "Not checked: "+s.NotChecked[0]+moreText(n-1))
	}
	if n := len(s.Assumptions); n > 0 {
		p.Text(0, Faint, fmt.Sprintf("%s not verified: -o wide", english.Count(n, "assumption")))
	}
	return p
}

// StatusTotal says in one line how pods are.
func StatusTotal(s *api.Status) string {
	var parts []string
	if n := s.Pods.Waiting; n > 0 {
		text := english.Count(n, "pod") + " " + english.Plural(n, "waits", "wait") + " for devices"
		if s.Pods.LongestSeconds > 0 {
			text += ", the first for " + Age(s.Pods.LongestSeconds)
		}
		parts = append(parts, text)
		if m := s.Pods.Starting; m > 0 {
			parts = append(parts, fmt.Sprintf("%d of them %s now", m, english.Plural(m, "fits", "fit")))
		}
	}
	if n := s.Pods.Blocked; n > 0 {
		parts = append(parts, english.Count(n, "pod")+" "+english.Plural(n, "has", "have")+" devices and "+english.Plural(n, "does", "do")+" not work")
	}
	if len(parts) == 0 {
		parts = append(parts, "no pod waits for devices")
	}
	where := ""
	if s.Namespace != "" {
		where = "Namespace " + s.Namespace + ": "
	}
	if len(s.Causes) == 0 && len(s.NotChecked) == 0 {
		parts = append(parts, "nothing is wrong")
	}
	return english.Sentence(where + strings.Join(parts, "; "))
}

func moreText(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%d more: -o wide)", n)
}

// writeCapacity draws a bar for each class: classes that pods wait for first, then the fullest.
func writeCapacity(p *Page, capacity []api.ClassCapacity) {
	list := make([]*api.ClassCapacity, 0, len(capacity))
	for i := range capacity {
		list = append(list, &capacity[i])
	}
	share := func(c *api.ClassCapacity) float64 {
		if c.Share == nil {
			return 0
		}
		return *c.Share
	}
	slices.SortStableFunc(list, func(a, b *api.ClassCapacity) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(share(b), share(a)))
	})
	shown := list
	if !p.Opts.Wide {
		shown = list[:min(len(list), statusClasses)]
	}
	name, width := 0, barWidth
	if p.Width < shortLine {
		width = narrowBar
	}
	for _, c := range shown {
		name = max(name, len(cmp.Or(c.Class, c.Driver)))
	}
	for _, c := range shown {
		d := &c.Devices
		used, text := d.Allocated+d.Shared, CapacityText(c)
		bar := Cell{Text: DrawnBar(used, d.Total, width), Width: width, Mark: Faint}
		bar.Text += strings.Repeat("·", width-ansi.StringWidth(bar.Text))
		cells := []Cell{{Text: cmp.Or(c.Class, c.Driver), Width: name}, bar, {Text: text}}
		if p.Opts.NoBars {
			cells = slices.Delete(cells, 1, 2)
		}
		p.Row(2, cells...)
		if p.Opts.Wide {
			for _, text := range IdleTexts(c) {
				p.Text(4, Plain, text)
			}
		}
	}
	if n := len(list) - len(shown); n > 0 {
		p.Text(2, Faint, fmt.Sprintf("%d more: kubectl dra classes", n))
	}
}

// CapacityText counts the devices of a class that are in use, the claims that can be placed, and
// the pods that wait.
func CapacityText(c *api.ClassCapacity) string {
	d := &c.Devices
	text := fmt.Sprintf("%d of %d", d.Allocated+d.Shared, d.Total)
	if c.Placeable != nil {
		text += fmt.Sprintf(", %s placeable", PlaceableText(c))
	}
	if c.Waiting > 0 {
		text += fmt.Sprintf(", %d %s", c.Waiting, english.Plural(c.Waiting, "waits", "wait"))
	}
	return text
}

// PlaceableText writes how many claims for one device of a class can be placed, which has to be
// counted.
func PlaceableText(c *api.ClassCapacity) string {
	return Bounded(c.Placeable.AtLeast, PlaceableBound(c.Placeable, c.Devices.FreeIsUpperBound, c.DevicesAreLowerBounds))
}

// IdleTexts says where the devices of a class that claims can get are, and why claims do not get
// the others that no claim has. There are no texts where that was not counted.
func IdleTexts(c *api.ClassCapacity) []string {
	if c.Placeable == nil {
		return nil
	}
	var texts []string
	d := &c.Devices
	where := make([]string, 0, len(c.PlaceableNodes))
	for i, on := range c.PlaceableNodes {
		of := strconv.Itoa(on.Nodes)
		switch {
		case on.Nodes == 1:
			of = on.First
		case i == 0:
			of = fmt.Sprintf("%s and %d more", on.First, on.Nodes-1)
		}
		text := fmt.Sprintf("%s %s %d", of, english.Plural(on.Nodes, "takes", "take"), on.Placeable)
		where = append(where, text)
	}
	if len(where) > 0 {
		texts = append(texts, "placeable: "+strings.Join(where, ", "))
	}
	var why []string
	for _, part := range []struct {
		count int
		text  string
	}{
		{d.Blocked, "blocked by partitions in use"},
		{d.Tainted, "tainted"},
		{d.Unusable, "ignored by the allocator (kubectl dra pools)"},
		{d.Free - d.Available, "on nodes that are cordoned, tainted or not ready"},
		{d.Available - c.Placeable.AtLeast, "free but not beside the others"},
	} {
		if part.count > 0 {
			why = append(why, fmt.Sprintf("%d %s", part.count, part.text))
		}
	}
	if len(why) > 0 && len(d.Bounds) == 0 {
		texts = append(texts, "not placeable: "+strings.Join(why, ", "))
	}
	return texts
}

// BarWidth is the number of characters between the brackets of a bar.
const BarWidth = 10

// Bar draws a used part: "[####------]". Every part above zero is visible, used or free.
func Bar(percent int) string {
	full := percent * BarWidth / 100
	switch {
	case percent <= 0:
		full = 0
	case percent >= 100:
		full = BarWidth
	default:
		full = max(full, 1)
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", BarWidth-full) + "]"
}

// DrawnBar draws a part of a whole in eighths of a cell. Every part above zero is visible.
func DrawnBar(part, whole, width int) string {
	if part <= 0 || whole <= 0 {
		return ""
	}
	eighths := max(part*width*8/whole, 1)
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text
}
