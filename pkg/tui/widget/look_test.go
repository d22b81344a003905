// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

func env(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func unicode() *Look {
	l := NewLook(env(nil))
	return &l
}

func ascii() *Look {
	l := NewLook(env(map[string]string{"LC_ALL": "C"}))
	return &l
}

// TestLocale follows the order of the variables.
func TestLocale(t *testing.T) {
	for name, tt := range map[string]struct {
		values map[string]string
		ascii  bool
	}{
		"nothing is set":            {nil, false},
		"LANG":                      {map[string]string{"LANG": "en_US.UTF-8"}, false},
		"in lower case":             {map[string]string{"LANG": "en_US.utf8"}, false},
		"C":                         {map[string]string{"LANG": "C"}, true},
		"another encoding":          {map[string]string{"LANG": "de_DE.ISO-8859-1"}, true},
		"LC_CTYPE goes before LANG": {map[string]string{"LC_CTYPE": "C.UTF-8", "LANG": "C"}, false},
		"LC_ALL goes before both":   {map[string]string{"LC_ALL": "C", "LC_CTYPE": "C.UTF-8", "LANG": "C.UTF-8"}, true},
		"an empty one is not set":   {map[string]string{"LC_ALL": "", "LANG": "C"}, true},
	} {
		l := NewLook(env(tt.values))
		if got := l.Glyphs.More == "~"; got != tt.ascii {
			t.Errorf("%s: ASCII is %t, want %t", name, got, tt.ascii)
		}
	}
}

// TestFit leaves texts as they are where there is UTF-8, and keeps columns where they are
// where there is none.
func TestFit(t *testing.T) {
	for text, want := range map[string]string{
		"gpu-0…gpu-3":       "gpu-0~gpu-3",
		"a    ≤3  b":        "a   <=3  b",
		"≤3":                "<=3",
		"a ≥3":              "a >=3",
		"“x” is ‘y’":        `"x" is 'y'`,
		"Zürich":            "Z?rich",
		"東京":                "????",
		"\x1b[31m✗\x1b[m 1": "\x1b[31mX\x1b[m 1",
		"├── a":             "|-- a",
		"└── b":             "`-- b",
		"plain":             "plain",
	} {
		if got := ascii().Fit(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		if got := unicode().Fit(text); got != text {
			t.Errorf("%q becomes %q with UTF-8", text, got)
		}
	}
}

// TestSigns covers a sign for each state of a device that differs from all others, with and
// without UTF-8: colors only repeat it.
func TestSigns(t *testing.T) {
	for _, l := range []*Look{unicode(), ascii()} {
		means := map[string]string{}
		for _, sign := range l.Signs() {
			if other, taken := means[sign.Glyph]; taken {
				t.Errorf("%q is %s, and %s", sign.Glyph, sign.Means, other)
			}
			means[sign.Glyph] = sign.Means
			if width := ansi.StringWidth(sign.Glyph); width != 1 {
				t.Errorf("the sign %q of %s is %d wide", sign.Glyph, sign.Means, width)
			}
			if !strings.Contains(ansi.Strip(l.Legend()), sign.Glyph+" "+sign.Means) {
				t.Errorf("the legend has no %s: %s", sign.Means, ansi.Strip(l.Legend()))
			}
		}
		if width := ansi.StringWidth(l.Legend()); width > 80 {
			t.Errorf("the legend is %d wide", width)
		}
		strip := "a" + l.Glyphs.Free + l.Glyphs.TaintedInUse
		if painted := l.PaintStrip(strip); ansi.Strip(painted) != strip || painted == strip {
			t.Errorf("%q becomes %q", strip, painted)
		}
	}
}

// TestBar fills its width exactly, shows at least one sign of what there is, none of what
// there is not, and more of what there is more of.
func TestBar(t *testing.T) {
	l := unicode()
	if got := ansi.Strip(l.Bar(api.DeviceCounts{Total: 100, Allocated: 50, Free: 50}, 10)); got != "█████░░░░░" {
		t.Errorf("half of it is used: %q", got)
	}
	if got := ansi.Strip(l.Bar(api.DeviceCounts{Total: 4, Allocated: 2, TaintedInUse: 1, Tainted: 1, Free: 1}, 8)); got != "▚▚██!!░░" {
		t.Errorf("one of two in use is tainted: %q", got)
	}
	if got := l.Bar(api.DeviceCounts{}, 6); got != strings.Repeat(" ", 6) {
		t.Errorf("a bar of nothing: %q", got)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		c := api.DeviceCounts{Allocated: random.IntN(500), Shared: random.IntN(3), Blocked: random.IntN(20), Tainted: random.IntN(3), Unusable: random.IntN(3), Free: random.IntN(50)}
		c.Total = c.Allocated + c.Shared + c.Blocked + c.Tainted + c.Unusable + c.Free
		if c.Total == 0 {
			continue
		}
		width := 8 + random.IntN(60)
		bar := ansi.Strip(l.Bar(c, width))
		if got := ansi.StringWidth(bar); got != width {
			t.Fatalf("%+v is %d wide, want %d: %s", c, got, width, bar)
		}
		for glyph, n := range map[string]int{"█": c.Allocated, "▓": c.Shared, "▒": c.Blocked, "!": c.Tainted, "?": c.Unusable, "░": c.Free} {
			if shown := strings.Contains(bar, glyph); shown != (n > 0) {
				t.Fatalf("%+v: %d of %q, and the bar is %s", c, n, glyph, bar)
			}
		}
	}
}

// TestHistory draws the newest value on the right and leaves unknown ones blank.
func TestHistory(t *testing.T) {
	l := unicode()
	for _, tt := range []struct {
		shares []float64
		width  int
		want   string
	}{
		{[]float64{0, 0.5, 1}, 3, "▁▅█"},
		{[]float64{-1, -1, 0, 1}, 4, "  ▁█"},
		{[]float64{0, 0, 1, 1}, 2, "▁█"},
		{[]float64{-1, 1, 0, 0}, 2, "█▁"},
		{[]float64{1}, 3, "███"},
		{nil, 2, "  "},
	} {
		if got := l.History(tt.shares, tt.width); got != tt.want {
			t.Errorf("%v on %d: %q, want %q", tt.shares, tt.width, got, tt.want)
		}
	}
	for share, want := range map[float64]string{0: "░░░░", 0.01: "█░░░", 0.5: "██░░", 1: "████", 2: "████"} {
		if got := ansi.Strip(l.Share(share, 4)); got != want {
			t.Errorf("a share of %v: %q, want %q", share, got, want)
		}
	}
}

// TestHeading checks that a heading has its width, whatever its texts are, and keeps the last columns.
func TestHeading(t *testing.T) {
	l := unicode()
	for width, want := range map[int]string{
		40: "Causes 3  since 14:02: +2 c…  pods  who ",
		20: "Causes 3  pods  who ",
		12: "Causes 3    ",
	} {
		if got := ansi.Strip(l.Heading(width, "Causes 3", []string{"since 14:02: +2 causes, -1"}, "pods  who ")); strings.TrimRight(got, " ") != strings.TrimRight(want, " ") {
			t.Errorf("at %d, the heading is\n%q, want\n%q", width, got, want)
		}
	}
	for width := 1; width < 60; width++ {
		if got := ansi.StringWidth(l.Heading(width, "Causes 12", []string{"since 14:02: +2 causes"}, "pods  who ")); got != width {
			t.Errorf("at %d, a heading is %d wide", width, got)
		}
	}
}

// TestColumns stand beside each other as far as there is room.
func TestColumns(t *testing.T) {
	texts := [][]string{{"Move", "j down", "k up"}, {"Find", "f name"}, {"Quit"}}
	for width, want := range map[int]string{
		80: "Move     Find     Quit\nj down   f name\nk up",
		16: "Move     Find\nj down   f name\nk up\n         Quit",
		6:  "Move\nj down\nk up\n\nFind\nf name\n\nQuit",
	} {
		if got := strings.Join(Columns(texts, width), "\n"); got != want {
			t.Errorf("on %d columns:\n%s\nwant:\n%s", width, got, want)
		}
	}
}

// TestSelect keeps the colors of a row: where one of them ends, the mark goes on.
func TestSelect(t *testing.T) {
	l := unicode()
	row := "a " + l.Say(Bad, "b") + " c"
	selected := l.Select(row)
	if ansi.Strip(selected) != "a b c" {
		t.Errorf("the text is another one: %q", ansi.Strip(selected))
	}
	_, after, _ := strings.Cut(selected, "b")
	if !strings.HasPrefix(after, "\x1b[m\x1b[7m") || !strings.Contains(selected, "\x1b[91m") {
		t.Errorf("the color, or the mark behind it, is lost: %q", selected)
	}
	if got, want := l.Select("x "+l.Say(Busy, "██")+" y"), "\x1b[7mx\x1b[27m \x1b[36m██\x1b[m \x1b[7my\x1b[27m\x1b[m"; got != want {
		t.Errorf("a bar: %q, want %q", got, want)
	}
	strip := l.Say(Busy, "██") + l.Say(Warning, "!") + " │ " + l.Say(Busy, "▓")
	if got, want := l.Select("x  "+strip+"  y"), "\x1b[7mx \x1b[27m "+strip+" \x1b[7m y\x1b[27m\x1b[m"; got != want {
		t.Errorf("a strip: %q, want %q", got, want)
	}
}
