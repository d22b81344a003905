// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

func page(width, height int, m Model) *Page {
	l := widget.NewLook(func(string) string { return "" })
	p := New(&l)
	p.Resize(width, height, paneOf(width))
	p.Set(m)
	return p
}

// paneOf returns the width of the pane on pages of a width.
func paneOf(width int) int {
	if width < wide {
		return 0
	}
	return width * 2 / 5
}

// model returns a model with so many stuck pods, and a row or two of everything else.
func model(stuck int) Model {
	m := Model{
		Verdict: []Mark{{"✗", widget.Bad, "pool gpu-09 is incomplete"}, {"▲", widget.Warning, fmt.Sprintf("%d pods wait", stuck)}},
		Classes: Section[Class]{Rows: []Class{
			{Name: "gpu.example.com", Counts: api.DeviceCounts{Total: 8, Allocated: 6, Free: 2}, Used: "75 %", Free: "2", Placeable: "1", Waiting: 3, Open: "class gpu"},
			{Name: "nic.example.com", Counts: api.DeviceCounts{Total: 2, Free: 2}, Used: "0 %", Free: "2", Placeable: "2", Open: "class nic"},
		}, All: "all classes"},
		Causes: Section[Cause]{Rows: []Cause{{Key: "NodeCordoned", Number: "1", Age: "17h", Message: "1 node is cordoned: gpu-08", Who: "admin", Step: "admin: uncordon gpu-08", Affected: "8 devices", Open: "cause 1"}}, All: "all causes"},
		Stuck:  Section[Stuck]{All: "all that waits", None: "no pod waits for devices"},
		Pods:   stuck,
		Teams: Section[Team]{Rows: []Team{
			{Team: api.Team{Namespace: "research", Classes: []api.TeamClass{{Class: "gpu.example.com", Used: 6}}, Share: ptr.To(0.75), Waiting: 2}, Open: "team research"},
			{Team: api.Team{Namespace: "vision", Classes: []api.TeamClass{{Class: "gpu.example.com", Used: 2}}}, Open: "team vision"},
		}, All: "all teams"},
		Events: Section[Event]{None: "none since 09:30:00"},
		Names:  map[string]string{"gpu.example.com": "gpu"},
	}
	for i := range stuck {
		m.Stuck.Rows = append(m.Stuck.Rows, Stuck{
			Key: fmt.Sprint("pod-", i), Name: fmt.Sprint("research/pod-", i), Count: 1, Wait: fmt.Sprint(100-i, "m"), Asks: "4 gpu",
			Answer: "after others end: cause 1", Reason: "at most 3 on one node match", Summary: fmt.Sprintf("Request gpus needs 4 devices; at most %d on one node match.", i%4), Open: fmt.Sprint("pod ", i),
		})
	}
	return m
}

func text(p *Page) string { return ansi.Strip(p.View()) }

func selectedRow(t *testing.T, p *Page) string {
	t.Helper()
	for line := range strings.SplitSeq(text(p), "\n") {
		if _, row, found := strings.Cut(line, "›"); found {
			return row
		}
	}
	t.Fatalf("no row has the cursor:\n%s", text(p))
	return ""
}

// withoutCauses returns a model without causes.
func withoutCauses(m Model) Model {
	m.Causes.Rows = nil
	return m
}

// TestFirstRow selects the first cause: that is the reader's reason to come. Without one it selects
// the first pod that waits, and then the first class.
func TestFirstRow(t *testing.T) {
	if p := page(100, 30, model(3)); p.Selected() != "cause 1" {
		t.Errorf("%v is selected", p.Selected())
	}
	p := page(100, 30, withoutCauses(model(0)))
	if p.Selected() != "class gpu" {
		t.Errorf("without stuck pods, %v is selected", p.Selected())
	}
	p.Set(withoutCauses(model(2)))
	if got := p.Selected(); got != "pod 0" {
		t.Errorf("a pod got stuck, and %v is selected although nobody moved the cursor", got)
	}
	if p = page(100, 30, Model{}); p.Selected() != nil || p.Len() != 0 {
		t.Errorf("on an empty page, %v is selected", p.Selected())
	}
	p.Move(1)
}

// TestSelectionStays keeps the selection on its row while rows come and go above it, and
// moves it to the next one when the row is gone.
func TestSelectionStays(t *testing.T) {
	p := page(100, 40, model(5))
	p.Move(3)
	if got := p.Selected(); got != "pod 2" {
		t.Fatalf("%v is selected", got)
	}
	m := model(5)
	m.Stuck.Rows = m.Stuck.Rows[1:]
	p.Set(m)
	if got := p.Selected(); got != "pod 2" {
		t.Errorf("a row above is gone, and %v is selected", got)
	}
	m.Stuck.Rows = append(m.Stuck.Rows[:1:1], m.Stuck.Rows[2:]...)
	p.Set(m)
	if got := p.Selected(); got != "pod 3" {
		t.Errorf("the row is gone, and %v is selected", got)
	}
	p.Move(-100)
	if got := p.Selected(); got != "class gpu" {
		t.Errorf("the first row is %v", got)
	}
	p.Move(100)
	if got := p.Selected(); got != "team vision" {
		t.Errorf("the last row is %v", got)
	}
}

// TestSizes draws exactly as many lines as there are, none too wide, whatever the size is,
// and the cursor can be moved to every section and stays in sight.
func TestSizes(t *testing.T) {
	for _, size := range [][2]int{{200, 56}, {150, 40}, {120, 36}, {80, 20}, {60, 16}, {40, 10}, {30, 6}} {
		p := page(size[0], size[1], model(30))
		opened := map[any]bool{}
		for range 60 {
			p.Move(-1)
		}
		for range 60 {
			lines := strings.Split(text(p), "\n")
			if len(lines) != size[1] {
				t.Fatalf("at %v: %d lines", size, len(lines))
			}
			for _, line := range lines {
				if width := ansi.StringWidth(line); width > size[0] {
					t.Errorf("at %v, a line is %d wide: %q", size, width, line)
				}
			}
			selectedRow(t, p)
			opened[p.Selected()] = true
			p.Move(1)
		}
		for _, what := range []string{"class gpu", "cause 1", "pod 0", "team research"} {
			if !opened[what] {
				t.Errorf("at %v, the cursor never gets to %s", size, what)
			}
		}
	}
}

// TestRest stands for the rows that there is no room for: it says how many they are, and
// opens all of them.
func TestRest(t *testing.T) {
	p := page(100, 24, model(30))
	shown := strings.Count(text(p), "research/pod-")
	if want := fmt.Sprintf("…%d more", 30-shown); shown == 0 || !strings.Contains(text(p), want) {
		t.Errorf("%d of 30 are shown, and there is no %q:\n%s", shown, want, text(p))
	}
	p.Move(shown + 1)
	if got := p.Selected(); got != "all that waits" {
		t.Errorf("the line for the others opens %v", got)
	}
}

// TestClick selects the row under the mouse; the second click on it opens it.
func TestClick(t *testing.T) {
	p := page(100, 30, model(3))
	for y, line := range strings.Split(text(p), "\n") {
		before, _, found := strings.Cut(line, "vision")
		if !found {
			continue
		}
		x := ansi.StringWidth(before)
		if p.Click(x, y) || p.Selected() != "team vision" {
			t.Errorf("the first click opens, or selects %v", p.Selected())
		}
		if !p.Click(x, y) {
			t.Error("the second click does not open")
		}
	}
	was := p.Selected()
	if p.Click(3, 0) || p.Click(500, 500) || p.Selected() != was || was != "team vision" {
		t.Errorf("a click beside all rows selects %v, was %v", p.Selected(), was)
	}
}

// TestUnknown says that something is not known, and not that there is none.
func TestUnknown(t *testing.T) {
	m := model(1)
	m.Stuck.Rows[0].Answer, m.Stuck.Rows[0].Summary, m.Stuck.Rows[0].Wait = "", "", ""
	m.Causes = Section[Cause]{None: "not known: this user may not list resourceslices"}
	p := page(100, 30, m)
	if row := selectedRow(t, p); !strings.Contains(row, "…") || strings.Contains(row, "0s") {
		t.Errorf("no reason and no wait are known: %s", row)
	}
	for _, want := range []string{"not known: this user may not list", "vision", "?"} {
		if !strings.Contains(text(p), want) {
			t.Errorf("the page has no %q:\n%s", want, text(p))
		}
	}
	for line := range strings.SplitSeq(text(p), "\n") {
		if strings.Contains(line, " vision ") && !strings.Contains(line, "gpu ≥2") {
			t.Errorf("what vision uses is a bound: %s", line)
		}
	}
}

// TestHostile names are escaped wherever they are drawn.
func TestHostile(t *testing.T) {
	m := model(1)
	const evil = "a\x1b[31mb\x07"
	m.Classes.Rows[0].Name, m.Stuck.Rows[0].Name, m.Teams.Rows[0].Namespace, m.Causes.Rows[0].Message = evil, evil, evil, evil
	m.Stuck.Rows[0].Summary, m.Stuck.Rows[0].Answer, m.Causes.Rows[0].Step, m.Verdict[0].Text = evil, evil, evil, evil
	for _, width := range []int{80, 200} {
		p := page(width, 40, m)
		for range p.Len() {
			if view := p.View(); strings.Contains(view, evil) || strings.Contains(view, "\x07") {
				t.Fatalf("on %d columns, a name gets to the terminal as it is: %q", width, view)
			}
			p.Move(1)
		}
		if !strings.Contains(text(p), `\x1b[31mb\x07`) && !strings.Contains(text(p), `a\x1b[31m`) {
			t.Errorf("the name is not shown:\n%s", text(p))
		}
	}
}

// TestPane follows the cursor where there is room for it.
func TestPane(t *testing.T) {
	p := page(200, 40, model(3))
	p.Move(1)
	if !strings.Contains(text(p), "│research/pod-0") {
		t.Errorf("the pane is not about the selected pod:\n%s", text(p))
	}
	p.Move(-3)
	if !strings.Contains(text(p), "Class gpu.example.com") || !strings.Contains(text(p), "1 placeable; 3 pods wait") {
		t.Errorf("the pane is not about the selected class:\n%s", text(p))
	}
	p = page(100, 24, model(3))
	if view := text(p); !strings.HasSuffix(strings.TrimRight(view, " \n"), "\nadmin: uncordon gpu-08") || strings.Count(view, "1 node is cordoned: gpu-08") != 1 {
		t.Errorf("the row and the last line do not say all of the selected cause, once:\n%s", view)
	}
	m := model(20)
	m.Causes.Rows[0].Message = "1 node is cordoned" + strings.Repeat(", of which much can be said", 3) + ": gpu-08"
	p = page(100, 24, m)
	if below := strings.Join(strings.Split(text(p), "\n")[21:], " "); !strings.Contains(below, m.Causes.Rows[0].Message) || !strings.Contains(below, "admin: uncordon gpu-08") {
		t.Errorf("the last lines do not say all of the selected cause:\n%s", text(p))
	}
}

// TestPlain draws for pipes: no frames, no cursor, nothing cut, no row left out.
func TestPlain(t *testing.T) {
	l := widget.NewLook(func(string) string { return "" })
	printed := ansi.Strip(strings.Join(Plain(&l, model(40), 0), "\n"))
	if strings.ContainsAny(printed, "╭│›…") {
		t.Errorf("frames, a cursor, or something cut:\n%s", printed)
	}
	for i := range 40 {
		if !strings.Contains(printed, fmt.Sprintf("research/pod-%d ", i)) {
			t.Errorf("pod %d is left out", i)
		}
	}
	for _, want := range []string{"75 % used", "1 placeable", "after others end: cause 1\n", "  1  1 node is cordoned: gpu-08\n     8 devices\n     admin: uncordon gpu-08\n"} {
		if !strings.Contains(printed, want) {
			t.Errorf("no %q in:\n%s", want, printed)
		}
	}
}

// TestCountIsNotCut keeps how many pods a row stands for where there is too little room for
// their name.
func TestCountIsNotCut(t *testing.T) {
	l := widget.NewLook(func(string) string { return "" })
	for _, width := range []int{60, 80, 120, 200} {
		p := New(&l)
		p.Resize(width, 30, paneOf(width))
		p.Set(Model{Stuck: Section[Stuck]{Rows: []Stuck{{Key: "a", Name: "research/replicaset/a-name-that-is-so-long-that-it-takes-all-of-the-line-59558cb87b", Count: 12, Answer: "cause 1"}}}})
		if !strings.Contains(text(p), "…  12 pods  ") || !strings.Contains(text(p), "cause 1") {
			t.Errorf("the number of pods is cut at %d:\n%s", width, text(p))
		}
	}
}

// TestTitleBesideShortNames covers the title of the devices that teams use, however short
// their names are.
func TestTitleBesideShortNames(t *testing.T) {
	for _, name := range []string{"a", "team-a", "research"} {
		m := model(1)
		m.Teams.Rows = m.Teams.Rows[:1]
		m.Teams.Rows[0].Namespace = name
		if shown := text(page(120, 40, m)); !regexp.MustCompile(`(?m)^Teams +used `).MatchString(shown) {
			t.Errorf("no title of what %s uses:\n%s", name, shown)
		}
	}
}

// TestNarrowPage leaves out numbers that there is no room for, with their titles, rather than
// to cut them.
func TestNarrowPage(t *testing.T) {
	const titles = ",Capacity,Causes 1,Waiting 2,Teams,Events,used,free,placeable,wait,waiting,answer,pods,who,share,waits,idle,"
	for width := 30; width < 80; width++ {
		m := model(2)
		m.Classes.Rows[0].Free, m.Classes.Rows[0].Placeable = "10265", "9656"
		shown := text(page(width, 24, m))
		for line := range strings.SplitSeq(shown, "\n") {
			if strings.Contains(line, "gpu.exa") && strings.Contains(line, "█") && (!strings.Contains(line, "75 %") || strings.HasSuffix(line, "…") || strings.Contains(line, "102…")) {
				t.Errorf("at %d, a number is cut: %s", width, line)
			}
			if strings.HasPrefix(line, " research ") && strings.HasSuffix(line, "…") {
				t.Errorf("at %d, a team is cut: %s", width, line)
			}
			if strings.Contains(line, "……") {
				t.Errorf("at %d, something is cut twice: %s", width, line)
			}
			if line = strings.TrimRight(line, " "); !regexp.MustCompile("^[CWTE]").MatchString(line) {
				continue
			}
			for title := range strings.SplitSeq(line, "  ") {
				title = strings.TrimSpace(title)
				legend := strings.ContainsAny(title, "░█…")
				if title != "" && !legend && !strings.Contains(titles, ","+title+",") {
					t.Errorf("at %d, %q is no title: %s", width, title, line)
				}
			}
		}
	}
}

// TestPlainNumbers never cuts numbers, and an unknown reason has no code before it.
func TestPlainNumbers(t *testing.T) {
	l := widget.NewLook(func(string) string { return "" })
	m := model(1)
	m.Classes.Rows[0].Free, m.Classes.Rows[0].Placeable = "10265", "9656"
	m.Stuck.Rows[0].Answer, m.Stuck.Rows[0].Summary = "", ""
	printed := ansi.Strip(strings.Join(Plain(&l, m, 0), "\n"))
	for _, want := range []string{"10265 free", "9656 placeable", "4 gpu  …\n"} {
		if !strings.Contains(printed, want) {
			t.Errorf("no %q in:\n%s", want, printed)
		}
	}
}

// TestPageStays keeps a page as drawn while nothing happens, and draws it after all that changes it.
func TestPageStays(t *testing.T) {
	p := page(120, 40, model(5))
	before := p.View()
	if n := testing.AllocsPerRun(10, func() { p.View() }); n > 0 {
		t.Errorf("a page that did not change is drawn again, with %v allocations", n)
	}
	for name, change := range map[string]func(){
		"move": func() { p.Move(1) }, "click": func() { p.Click(4, 3) }, "size": func() { p.Resize(100, 40, paneOf(100)) }, "model": func() { p.Set(model(4)) },
	} {
		change()
		after := p.View()
		if after == before {
			t.Errorf("%s: the page stays as it was", name)
		}
		before = after
	}
}

// TestLongCauseIsWhole shows the end of a cause on a line of its own where there is room, and opens the
// cause from there.
func TestLongCauseIsWhole(t *testing.T) {
	m := model(1)
	m.Causes.Rows[0].Message = strings.Repeat("word ", 30) + "the end"
	m.Causes.Rows = append(m.Causes.Rows, Cause{Key: "other", Number: "2", Message: "another cause", Open: "cause 2"})
	p := page(120, 40, m)
	lines := strings.Split(text(p), "\n")
	end := slices.IndexFunc(lines, func(line string) bool { return strings.HasSuffix(strings.TrimSpace(line), "the end") })
	if end < 0 || !strings.Contains(lines[end+1], "another cause") || len(lines) != 40 {
		t.Fatalf("the end is cut:\n%s", text(p))
	}
	for line, want := range map[int]string{end - 1: "cause 1", end: "cause 1", end + 1: "cause 2"} {
		if p.Click(20, line); p.Selected() != want {
			t.Errorf("line %d opens %v, want %s", line, p.Selected(), want)
		}
	}
}

// TestEndedCauses counts causes that ended apart from those that there is no room for.
func TestEndedCauses(t *testing.T) {
	m := model(20)
	for i := range 8 {
		m.Causes.Rows = append(m.Causes.Rows, Cause{Key: fmt.Sprint("more ", i), Number: fmt.Sprint(i + 2), Message: "another cause", Open: "cause"})
	}
	for i := range 4 {
		m.Causes.Rows = append(m.Causes.Rows, Cause{Key: fmt.Sprint("over ", i), Age: "over", Message: "it ended", Open: "cause"})
	}
	if view := text(page(80, 24, m)); !strings.Contains(view, " more, 4 ended") {
		t.Errorf("causes that ended count as more:\n%s", view)
	}
}

// TestStepIsNotCut cuts the end of a long cause below the page rather than what to do about it.
func TestStepIsNotCut(t *testing.T) {
	m := model(20)
	m.Causes.Rows[0].Message, m.Causes.Rows[0].Step = strings.Repeat("word ", 80)+"the end", "you: request fewer devices"
	p := page(80, 24, m)
	lines := strings.Split(strings.TrimRight(text(p), "\n "), "\n")
	if last := lines[len(lines)-1]; last != m.Causes.Rows[0].Step {
		t.Errorf("the last line is %q:\n%s", last, text(p))
	}
	if before := lines[len(lines)-2]; !strings.HasPrefix(before, "word ") || !strings.HasSuffix(before, "…") {
		t.Errorf("the line before is %q", before)
	}
}
