// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// hostileTexts returns what takes the place of texts of the example cluster, as JSON has it. A file
// with such names is refused; this is where a cluster may have any text. What is in a selector has
// no quotes: they would end its text.
func hostileTexts() map[string]string {
	const run = `onerror=window.pwned=1;alert(1) src=x`
	return map[string]string{
		`Atlas-80`:           `<img ` + run + `>`,
		`Cirrus-40`:          `</style></title><svg onload=window.pwned=1>`,
		`"r1"`:               `"constructor"`,
		`gpu.8x`:             `__proto__`,
		`gpu.2x`:             jsonText(`a|b 1/1|"><script>window.pwned=1</script>`),
		`cpu.64`:             `javascript:window.pwned=1`,
		`gpu.4x`:             jsonText(`' onfocus='window.pwned=1' autofocus tabindex='0`),
		`maintenance`:        jsonText(`&lt;img ` + run + `&gt;&#60;&quot;`),
		`"down"`:             `"` + jsonText("</script><script>window.pwned=1</script><!--") + `"`,
		`"firmware"`:         `"` + jsonText("{{.}}\x1b[31m\x1b]0;title\a\x00\r\t\u009b31m\U000e0041") + `"`,
		`"uncorrectable"`:    `"` + jsonText("\u202e-\u2066\u200e01\u2028\ufeff\u00ad\ufffe") + `"`,
		`0/14 nodes`:         jsonText("\n\n<script>\nwindow.pwned=1\n</script>"),
		`pci0000:17`:         jsonText("`${window.pwned=1}`"),
		`kubelet is posting`: jsonText(`<iframe srcdoc="<script>parent.pwned=1</script>">`),
	}
}

// jsonText returns a text as JSON has it between quotes.
func jsonText(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text[1 : len(text)-1])
}

// hostile opens the report of a cluster whose texts are HTML, script and control characters: it has
// the elements and attributes that it has with harmless texts.
func hostile(t *testing.T, browser *running, program string) {
	saved := filepath.Join(t.TempDir(), "cluster.json")
	ran(t, program, "snapshot", "--snapshot", "../../examples/cluster", "-o", saved)
	text, err := os.ReadFile(saved)
	if err != nil {
		t.Fatal(err)
	}
	special := regexp.MustCompile(`[^A-Za-z0-9]`)
	with := func(name string, change func(string) string) string {
		words := hostileTexts()
		pairs := []string{}
		for _, word := range slices.Sorted(maps.Keys(words)) {
			if !strings.Contains(string(text), word) {
				t.Errorf("the example cluster has no %s", word)
			}
			hostile := words[word]
			if quoted := strings.TrimPrefix(hostile, `"`); quoted != hostile {
				pairs = append(pairs, word, `"`+change(strings.TrimSuffix(quoted, `"`))+`"`)
				continue
			}
			pairs = append(pairs, word, change(hostile))
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
		return written(t, program, path)
	}
	file := with("<img src=x onerror=alert(1)>\u202e.json", func(s string) string { return s })
	page := opened(t, browser, file)
	harmless := opened(t, browser, with("harmless.json", func(s string) string { return "x" + special.ReplaceAllString(s, "x") }))
	// Everything is used, so that the script sees each text.
	use := `document.querySelectorAll("details").forEach(d => { d.open = true });
		document.querySelectorAll("th button").forEach(b => b.click());
		document.querySelectorAll("#map i").forEach(i => { i.dispatchEvent(new MouseEvent("mouseover", {bubbles: true})); i.click() });
		document.querySelectorAll("select").forEach(s => [...s.options].forEach(o => { s.value = o.value; s.dispatchEvent(new Event("input")) }));
		document.querySelectorAll("a").forEach(a => { if (a.protocol !== "file:") { throw new Error(a.href) } })`
	// Lines of drawings are not counted: a longer text takes more of them.
	const kinds = `[...document.querySelectorAll("*")].reduce((all, e) => {
		const kind = e.tagName + "[" + e.getAttributeNames().sort().join(" ") + "]";
		all[kind] = e.tagName === "text" ? 1 : (all[kind] || 0) + 1;
		return all }, {})`
	for range 2 {
		// The table of nodes is made when it is opened.
		page.script(use)
		harmless.script(use)
	}
	got, want := valueOf[map[string]int](page, kinds), valueOf[map[string]int](harmless, kinds)
	for kind := range maps.Keys(want) {
		got[kind] += 0
	}
	for kind, count := range got {
		if count != want[kind] {
			t.Errorf("the page has %d of %s, and %d with harmless texts", count, kind, want[kind])
		}
	}
	if len(want) < 50 {
		t.Errorf("the page has only %d kinds of elements", len(want))
	}
	if !valueOf[bool](page, `!("pwned" in window) && document.body.textContent.includes("<img onerror=")`) {
		t.Error("a text was run, or is not on the page")
	}
	page.quiet()
	harmless.quiet()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range string(raw) {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("the page has %q: %q", r, raw[max(0, i-40):i+1])
		}
	}
}
