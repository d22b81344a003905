// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestPage opens the report of the example cluster, and uses it as a reader does.
func TestPage(t *testing.T) {
	browser, program := started(t), built(t)
	file := written(t, program, "../../examples/cluster", "--with-snapshot")
	for name, test := range map[string]func(t *testing.T, browser *running, file string){
		"alone": alone, "tables": tables, "waiting": waiting, "nodes": nodes, "keyboard": keyboard, "accessibility": accessibility,
	} {
		t.Run(name, func(t *testing.T) { test(t, browser, file) })
	}
	t.Run("served", func(t *testing.T) { served(t, browser, program) })
	t.Run("hostile", func(t *testing.T) { hostile(t, browser, program) })
}

// alone opens the page, which loads nothing and uses no style or script but its own.
func alone(t *testing.T, browser *running, file string) {
	page := opened(t, browser, file)
	page.quiet()
	if !valueOf[bool](page, `getComputedStyle(document.querySelector("article")).borderTopStyle === "solid" && !document.querySelector(".tools").hidden`) {
		t.Error("the style or the script was not used")
	}
	for name, text := range map[string]string{
		"an image":   `<img alt="" src="https://example.com/i.png">`,
		"a script":   `<script>window.evil = 1</script>`,
		"a handler":  `<p onclick="window.evil = 1" id="evil">p</p><script>document.getElementById("evil").click()</script>`,
		"a style":    `<p style="color: red">p</p>`,
		"a stranger": `<iframe title="f" src="https://example.com"></iframe>`,
	} {
		page := opened(t, browser, changed(t, file, func(page string) string { return strings.Replace(page, "<main", text+"<main", 1) }))
		if len(page.found()) == 0 {
			t.Errorf("%s in the page is not refused", name)
		}
	}
}

// column returns the texts of a column of a table.
func column(page *tab, table string, number int) []string {
	page.Helper()
	return valueOf[[]string](page, `[...document.querySelectorAll("`+table+` tbody tr")].map(row => row.children[`+strconv.Itoa(number)+`].textContent)`)
}

// sorting returns how the columns of a table say that they are sorted.
func sorting(page *tab, table string) string {
	page.Helper()
	return valueOf[string](page, `[...document.querySelectorAll("`+table+` thead th")].map(th => th.getAttribute("aria-sort") || "-").join(" ")`)
}

// tables sorts a table by text and by number.
func tables(t *testing.T, browser *running, file string) {
	page := opened(t, browser, file)
	click := func(number int) {
		page.do(chromedp.Click("#queue th:nth-child(" + strconv.Itoa(number+1) + ") button"))
	}
	pods := column(page, "#queue", 2)
	slices.Sort(pods)
	click(2)
	if got := column(page, "#queue", 2); !slices.Equal(got, pods) || len(pods) < 3 {
		t.Errorf("sorted by pod: %q", got)
	}
	if got := sorting(page, "#queue"); got != "- - ascending - -" {
		t.Errorf("sorted by pod, the headings say %s", got)
	}
	click(2)
	slices.Reverse(pods)
	if got := column(page, "#queue", 2); !slices.Equal(got, pods) {
		t.Errorf("sorted by pod, the last first: %q", got)
	}
	click(0)
	if got := strings.Join(column(page, "#queue", 0), " "); got != "1 2 3 4 5 6 7 8 9 10" {
		t.Errorf("sorted by position: %s", got)
	}
	if got := sorting(page, "#queue"); got != "ascending - - - -" {
		t.Errorf("sorted by position, the headings say %s", got)
	}
	page.do(chromedp.Click("#usage th:nth-child(2) button"))
	if got := strings.Join(column(page, "#usage", 2), " "); got != "2 7 12 12 18" {
		t.Errorf("sorted by bar: %s", got)
	}
	page.quiet()
}

// shown is a text of a page, and whether it is shown.
type shown struct {
	Text  string
	Shown bool
}

// waiting filters the answers.
func waiting(t *testing.T, browser *running, file string) {
	page := opened(t, browser, file)
	answers := func() []shown {
		return valueOf[[]shown](page, `[...document.querySelectorAll("#answers article")].map(a => ({Text: a.textContent.toLowerCase(), Shown: a.checkVisibility()}))`)
	}
	said := func() string { return valueOf[string](page, `document.querySelector("#waiting output").textContent`) }
	for text, least := range map[string]int{"Storage/Replicate": 1, "cordoned": 2, "no such text": 0} {
		page.do(chromedp.SendKeys("#waiting input", text))
		count := 0
		for _, a := range answers() {
			if matches := strings.Contains(a.Text, strings.ToLower(text)); matches != a.Shown {
				t.Errorf("filter %q: an answer that matches %t is shown %t: %.60q", text, matches, a.Shown, a.Text)
			}
			if a.Shown {
				count++
			}
		}
		if got, want := said(), strconv.Itoa(count)+" shown"; got != want || count < least || count == len(answers()) {
			t.Errorf("filter %q: %q is said, expected %q", text, got, want)
		}
		page.do(chromedp.SendKeys("#waiting input", strings.Repeat(kb.Backspace, len(text))))
	}
	if slices.ContainsFunc(answers(), func(a shown) bool { return !a.Shown }) || said() != "" {
		t.Errorf("without a filter, not every answer is shown, or %q is said", said())
	}
	page.quiet()
}

// nodes groups, chooses, sorts, filters and sizes the squares of the map.
func nodes(t *testing.T, browser *running, file string) {
	page := opened(t, browser, file)
	set := func(id, value string) {
		page.script(`{ const e = document.getElementById("` + id + `"); e.value = "` + value + `"; e.dispatchEvent(new Event("input")) }`)
	}
	squares := func() []string {
		return valueOf[[]string](page, `[...document.querySelectorAll("#map i")].map(i => i.title.split(":")[0])`)
	}
	groups := func() []string {
		return valueOf[[]string](page, `[...document.querySelectorAll("#map h3")].map(h => h.textContent)`)
	}
	check := func(what string, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, expected %q", what, got, want)
		}
	}
	racks := []string{"r1: 3 nodes, 18 of 30 in use, 1 with trouble", "r2: 3 nodes, 19 of 22 in use, 1 with trouble", "r3: 5 nodes, 12 of 48 in use, 3 with trouble"}
	check("groups at first", groups(), racks)
	if rows := valueOf[int](page, `document.querySelectorAll("#list tr").length`); rows != 0 {
		t.Errorf("the table has %d rows before it is wanted", rows)
	}
	set("order", "used")
	check("groups by use", groups(), racks)
	set("order", "name")
	set("by", "-1")
	all := []string{"gpu-01", "gpu-02", "gpu-03", "gpu-04", "gpu-05", "gpu-06", "gpu-07", "gpu-08", "gpu-09", "mig-01", "mig-02"}
	check("groups of nothing", groups(), []string{})
	check("squares by name", squares(), all)
	set("order", "free")
	if got := squares(); got[0] != "gpu-03" && got[0] != "gpu-08" {
		t.Errorf("squares by free devices: %q", got)
	}
	set("order", "used")
	check("squares by use", squares()[:3], []string{"gpu-01", "gpu-05", "gpu-06"})
	set("order", "name")
	set("of", "nic.example.com")
	check("squares with network interfaces", squares(), []string{"gpu-01", "gpu-02", "gpu-03", "gpu-04", "gpu-05", "gpu-06"})
	set("match", "R2")
	check("squares of rack r2", squares(), []string{"gpu-04", "gpu-05", "gpu-06"})
	if got := valueOf[string](page, `document.getElementById("matched").textContent`); got != "3 shown" {
		t.Errorf("%q is said, expected 3 shown", got)
	}
	wide := func() float64 { return valueOf[float64](page, `document.querySelector("#map i").offsetWidth`) }
	before := wide()
	set("size", "40")
	if after := wide(); after != 40 || before == after {
		t.Errorf("squares are %v wide, and were %v", after, before)
	}
	page.do(chromedp.Click("#map i"))
	if !valueOf[bool](page, `(r => r.height > 0 && r.top >= 0 && r.bottom <= innerHeight)([...document.querySelectorAll("#list tbody tr")].find(r => r.textContent.startsWith("gpu-04")).getBoundingClientRect())`) {
		t.Error("a click on a node does not show its row")
	}
	page.quiet()
}

// keyboard goes through the page with Tab, and sorts with Enter and Space.
func keyboard(t *testing.T, browser *running, file string) {
	page := opened(t, browser, file)
	page.do(chromedp.KeyEvent(kb.Tab))
	if !valueOf[bool](page, `(e => e.className === "skip" && e.getBoundingClientRect().left >= 0)(document.activeElement)`) {
		t.Error("the first Tab does not show the link to the content")
	}
	page.do(chromedp.KeyEvent(kb.Enter))
	if got := valueOf[string](page, "location.hash"); got != "#main" {
		t.Errorf("the link to the content goes to %q", got)
	}
	page.script(`scrollTo(0, 0); document.activeElement.blur(); getSelection().removeAllRanges(); history.replaceState(null, "", "#")`)
	const controls = `[...document.querySelectorAll("main :is(a, button, input, select, summary)")].filter(e => e.checkVisibility())`
	want := valueOf[int](page, controls+".length")
	seen := 0
	for range 2 * want {
		page.do(chromedp.KeyEvent(kb.Tab))
		if outline := valueOf[string](page, `(e => { e.reached = true; return e === document.body ? "solid" : getComputedStyle(e).outlineStyle })(document.activeElement)`); outline != "solid" {
			t.Fatalf("%s has the focus, and an outline that is %s", valueOf[string](page, "document.activeElement.outerHTML.slice(0, 80)"), outline)
		}
		if seen = valueOf[int](page, controls+".filter(e => e.reached).length"); seen == want {
			break
		}
	}
	if seen != want || want < 30 {
		t.Errorf("Tab reaches %d of %d controls, not %q", seen, want, valueOf[[]string](page, controls+".filter(e => !e.reached).map(e => e.outerHTML.slice(0, 80))"))
	}
	for key, want := range map[string]string{kb.Enter: "- - ascending - -", " ": "- - - ascending -"} {
		number := strconv.Itoa(1 + slices.Index(strings.Fields(want), "ascending"))
		page.do(chromedp.Focus("#queue th:nth-child("+number+") button"), chromedp.KeyEvent(key))
		if got := sorting(page, "#queue"); got != want {
			t.Errorf("after %q on a heading, the headings say %s", key, got)
		}
	}
	page.quiet()
}
