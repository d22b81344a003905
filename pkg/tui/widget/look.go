// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// Look is how things are drawn.
type Look struct {
	styles [level + Levels]lipgloss.Style
	// filled are the styles of blocks in the color of the background that text of the tone has;
	// nil for a tone without one.
	filled [level]*lipgloss.Style
	// Tab is the style of the name of the shown view, Header the style of column titles.
	Tab, Header lipgloss.Style
	Glyphs      Glyphs
	// recolor has the colors of texts that pkg/render drew.
	recolor *strings.Replacer
	// ascii is true where the locale has nothing else.
	ascii bool
}

// Glyphs are the signs that stand for devices, bars and marks.
type Glyphs struct {
	Free, Allocated, Shared, TaintedInUse, Blocked, Tainted, Unusable, Unhealthy string
	// Levels are the levels of a history, from nothing to full.
	Levels []string
	// Cursor stands before the selected row, Changed before a row that just changed.
	Cursor, Changed, Up, Down, More, Rule, Between string
	// Closed marks a node that takes no pods, Fine a good state.
	Closed, Fine string
}

// NewLook takes the locale from the environment: without UTF-8, everything is
// drawn with ASCII.
func NewLook(env func(string) string) Look {
	l := Look{Glyphs: asciiGlyphs(), ascii: !isUTF8(env)}
	l.SetTheme(NewTheme(ThemeDefault), false)
	if !l.ascii {
		l.Glyphs = unicodeGlyphs()
	}
	return l
}

// SetTheme changes the colors. few is true on a terminal with no more than 16.
func (l *Look) SetTheme(theme *Theme, few bool) {
	for i, name := range StyleNames() {
		style := theme.Styles[name]
		switch name {
		case styleTab:
			l.Tab = style.drawn()
		case styleTitles:
			l.Header = style.drawn()
		default:
			l.styles[Faint+Tone(i)], l.filled[Faint+Tone(i)] = style.drawn(), style.filled()
		}
	}
	scale := theme.Scale
	if few {
		scale = theme.Scale16
	}
	for step, color := range scale {
		l.styles[Level(step)] = Style{Color: color}.drawn()
	}
	bold := func(name string) string {
		style := theme.Styles[name]
		style.Bold = true
		return style.Opening()
	}
	l.recolor = strings.NewReplacer(
		"\x1b[1m", theme.Styles["strong"].Opening(), "\x1b[2m", theme.Styles["faint"].Opening(),
		"\x1b[1;32m", bold("good"), "\x1b[1;33m", bold("warning"), "\x1b[1;31m", bold("bad"),
	)
}

// Recolor gives a text that pkg/render drew the colors of the theme.
func (l *Look) Recolor(text string) string { return l.recolor.Replace(text) }

// isUTF8 reports whether the locale is UTF-8, by the order of precedence of POSIX. An
// environment that says nothing, as on Windows, is taken for UTF-8.
func isUTF8(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := env(name); value != "" {
			value = strings.ToLower(value)
			return strings.Contains(value, "utf-8") || strings.Contains(value, "utf8")
		}
	}
	return true
}

func unicodeGlyphs() Glyphs {
	return Glyphs{
		Free: "░", Allocated: "█", Shared: "▓", TaintedInUse: "▚", Blocked: "▒", Tainted: "!", Unusable: "?", Unhealthy: "✗",
		Levels: []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
		Cursor: "›", Changed: "•", Up: "▲", Down: "▼", More: "…", Rule: "─", Between: "│",
		Closed: "○", Fine: "●",
	}
}

func asciiGlyphs() Glyphs {
	return Glyphs{
		Free: ".", Allocated: "#", Shared: "+", TaintedInUse: "%", Blocked: "-", Tainted: "!", Unusable: "?", Unhealthy: "X",
		Levels: []string{"_", ".", ":", "-", "=", "+", "*", "#"},
		Cursor: ">", Changed: "*", Up: "^", Down: "v", More: "~", Rule: "-", Between: "|",
		Closed: "o", Fine: "*",
	}
}

// Say colors a text.
func (l *Look) Say(t Tone, text string) string {
	if t == Plain || text == "" {
		return text
	}
	if t >= level || l.filled[t] == nil {
		return l.styles[t].Render(text)
	}
	at := blocks.FindStringIndex(text)
	switch {
	case at == nil:
		return l.styles[t].Render(text)
	case at[0] > 0:
		return l.styles[t].Render(text[:at[0]]) + l.Say(t, text[at[0]:])
	default:
		return l.filled[t].Render(text[:at[1]]) + l.Say(t, text[at[1]:])
	}
}

const (
	mark, unmark = "\x1b[7m", "\x1b[27m"
	plain        = "\x1b[m"
)

// Select marks a row that is selected. It keeps the colors of its parts. A reversed block would fill its
// cell with the background, and one beside a reversed space could not be told from it without colors, so
// that bars and strips of devices are left as they are, with a space on each side.
func (l *Look) Select(text string) string {
	var marked strings.Builder
	for text != "" {
		at := strips.FindStringIndex(text)
		if at == nil {
			at = []int{len(text), len(text)}
		}
		// Each part of it ends what came before it, so that the mark begins again.
		marked.WriteString(mark + strings.ReplaceAll(text[:at[0]], plain, plain+mark) + unmark + text[at[0]:at[1]])
		text = text[at[1]:]
	}
	return marked.String() + plain
}

// blocks are runs of the characters that bars, strips and histories are drawn with. strips are such runs
// with the signs between them, in any colors.
var (
	blocks = regexp.MustCompile(`[\x{2580}-\x{259f}]+`)
	strips = regexp.MustCompile(` ?(?:\x1b\[[\d;]*m)*[\x{2580}-\x{259f}](?:(?:\x1b\[[\d;]*m)*(?: │ | )?(?:\x1b\[[\d;]*m)*[\x{2580}-\x{259f}!?✗])*(?:\x1b\[[\d;]*m)* ?`)
)

// OfState returns how devices in a state are drawn.
func (l *Look) OfState(state api.DeviceState) (glyph string, t Tone) {
	switch state {
	case api.DeviceStateFree:
		return l.Glyphs.Free, Good
	case api.DeviceStateAllocated:
		return l.Glyphs.Allocated, Busy
	case api.DeviceStateShared:
		return l.Glyphs.Shared, Busy
	case api.DeviceStateBlocked:
		return l.Glyphs.Blocked, Faint
	case api.DeviceStateTainted:
		return l.Glyphs.Tainted, Warning
	default:
		return l.Glyphs.Unusable, Bad
	}
}

// PaintStrip colors the signs of devices.
func (l *Look) PaintStrip(text string) string {
	tones := map[string]Tone{}
	for _, sign := range l.Signs() {
		tones[sign.Glyph] = sign.Tone
	}
	var painted, run strings.Builder
	last := Plain
	flush := func() {
		painted.WriteString(l.Say(last, run.String()))
		run.Reset()
	}
	for _, r := range text {
		if t := tones[string(r)]; t != last {
			flush()
			last = t
		}
		run.WriteRune(r)
	}
	flush()
	return painted.String()
}

// Sign stands for a device.
type Sign struct {
	Glyph, Means string
	Tone         Tone
}

// Signs returns all of them.
func (l *Look) Signs() []Sign {
	return []Sign{
		{l.Glyphs.Free, "free", Good},
		{l.Glyphs.Allocated, "used", Busy},
		{l.Glyphs.Shared, "shared", Busy},
		{l.Glyphs.TaintedInUse, "used+tainted", Bad},
		{l.Glyphs.Blocked, "blocked", Faint},
		{l.Glyphs.Tainted, "tainted", Warning},
		{l.Glyphs.Unusable, "unusable", Bad},
		{l.Glyphs.Unhealthy, "unhealthy", Bad},
	}
}

// Legend explains the signs, in no more than 80 columns.
func (l *Look) Legend() string {
	parts := make([]string, 0, len(l.Signs()))
	for _, sign := range l.Signs() {
		parts = append(parts, l.Say(sign.Tone, sign.Glyph)+" "+sign.Means)
	}
	return strings.Join(parts, " ")
}

// Fit makes a text fit for the terminal: where the locale has nothing but ASCII, so has the
// text. Columns stay where they are. What has no likeness in ASCII becomes a question mark.
func (l *Look) Fit(text string) string {
	if !l.ascii {
		return text
	}
	at := firstBeyondASCII(text)
	if at < 0 {
		return text
	}
	fitted := []byte(text[:at])
	for _, r := range text[at:] {
		if r < utf8.RuneSelf {
			fitted = append(fitted, byte(r))
			continue
		}
		sign, known := asciiSigns(r)
		width := ansi.StringWidth(string(r))
		if !known {
			sign = strings.Repeat("?", width)
		}
		// A wider sign takes a blank before it, if more than one is there.
		for more := len(sign) - width; more > 0 && strings.HasSuffix(string(fitted[max(len(fitted)-2, 0):]), "  "); more-- {
			fitted = fitted[:len(fitted)-1]
		}
		fitted = append(fitted, sign...)
	}
	return string(fitted)
}

func firstBeyondASCII(text string) int {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return i
		}
	}
	return -1
}

// asciiSigns returns what stands for signs in texts that others make.
func asciiSigns(r rune) (sign string, known bool) {
	switch r {
	case '…':
		return asciiGlyphs().More, true
	case '≤':
		return "<=", true
	case '≥':
		return ">=", true
	case '✗':
		return asciiGlyphs().Unhealthy, true
	case '✓':
		return "v", true
	case '•':
		return "*", true
	case '×':
		return "x", true
	case '‘', '’':
		return "'", true
	case '“', '”', '„':
		return `"`, true
	case '–', '—', '─':
		return "-", true
	case '│', '├':
		return "|", true
	case '└':
		return "`", true
	default:
		return "", false
	}
}
