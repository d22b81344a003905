// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package drawing

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// Style has the rules of CSS for the classes in a drawing, and its colors, light and dark.
//
//go:embed style.css
var Style string

const (
	// width is the width of a drawing, in pixels at its natural size, and slim its width on a
	// phone. column is the width of a character, line the height of a line of text.
	width  = 760
	slim   = 330
	column = 7.9
	line   = 18
	// edge is the empty border around a drawing in a file of its own.
	edge = 16
)

// Drawing is a picture, and what it says in words.
type Drawing struct {
	title  string
	words  []string
	body   strings.Builder
	width  float64
	height float64
	// narrow is the same drawing for a phone, if it has a layout of its own there.
	narrow *Drawing
}

func newDrawing(title string) *Drawing { return &Drawing{title: title, width: width} }

// drawn draws at the natural width, and once more for a phone.
func drawn(title string, draw func(d *Drawing)) *Drawing {
	d := newDrawing(title)
	d.narrow = &Drawing{title: title, width: slim}
	draw(d)
	draw(d.narrow)
	return d
}

// Title returns what the drawing shows, in a few words.
func (d *Drawing) Title() string { return d.title }

// SVG returns the drawing for a page of HTML that has [Style]. A drawing with a layout for a phone
// comes with it, before the other; the page shows one of them.
func (d *Drawing) SVG() string {
	if d.narrow != nil {
		return d.narrow.element("drawing narrow") + d.element("drawing")
	}
	return d.element("drawing")
}

func (d *Drawing) element(class string) string {
	label := render.Escape(strings.Join(append([]string{d.title}, d.words...), "; "))
	return fmt.Sprintf(`<svg class="%s" role="img" viewBox="0 0 %s %s" width="%s" height="%s" aria-label="%s">%s</svg>`,
		class, number(d.width), number(d.height), number(d.width), number(d.height), html.EscapeString(label), d.body.String())
}

// Write writes the drawing as an SVG file.
func (d *Drawing) Write(w io.Writer) error {
	wide, high := width+2*edge, d.height+2*edge
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="%d %d %d %s" width="%d" height="%s" role="img">
<title>%s</title>
<desc>%s</desc>
<style>%s</style>
<rect class="paper" x="%d" y="%d" width="%d" height="%s"/>
%s
</svg>
`, -edge, -edge, wide, number(high), wide, number(high), escaped(d.title), escaped(strings.Join(d.words, "; ")), Style, -edge, -edge, wide, number(high), d.body.String())
	if err != nil {
		return fmt.Errorf("write the drawing: %w", err)
	}
	return nil
}

// Stack puts drawings below each other.
func Stack(title string, drawings ...*Drawing) *Drawing {
	all := newDrawing(title)
	for _, d := range drawings {
		if d == nil || d.height == 0 {
			continue
		}
		if all.height > 0 {
			all.height += line
		}
		fmt.Fprintf(&all.body, `<g transform="translate(0 %s)">%s</g>`, number(all.height), d.body.String())
		all.height += d.height
		if d.title != "" && d.title != title {
			all.words = append(all.words, d.title)
		}
		all.words = append(all.words, d.words...)
	}
	return all
}

// text writes one line of text with its baseline in the middle of a line that begins at y.
func (d *Drawing) text(x, y float64, class, anchor, s string) {
	if s == "" {
		return
	}
	if anchor != "" {
		anchor = ` text-anchor="` + anchor + `"`
	}
	fmt.Fprintf(&d.body, `<text class="%s" x="%s" y="%s"%s>%s</text>`, class, number(x), number(y+line*0.72), anchor, escaped(s))
}

// paragraph writes text of as many lines as it needs between x and the right edge, and returns
// their number.
func (d *Drawing) paragraph(x, y float64, class, s string) int {
	lines := wrapped(s, d.width-x)
	for i, text := range lines {
		d.text(x, y+float64(i)*line, class, "", text)
	}
	return len(lines)
}

func (d *Drawing) rect(x, y, w, h float64, class string) {
	if w > 0 {
		fmt.Fprintf(&d.body, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`, class, number(x), number(y), number(w), number(h))
	}
}

func (d *Drawing) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&d.body, `<path class="%s" d="M%s %sL%s %s"/>`, class, number(x1), number(y1), number(x2), number(y2))
}

// arrow draws a line that ends with a head.
func (d *Drawing) arrow(x1, y1, x2, y2 float64, class string) {
	middle := (x1 + x2) / 2
	fmt.Fprintf(&d.body, `<path class="%s" d="M%s %sC%s %s %s %s %s %s"/>`, class, number(x1), number(y1), number(middle), number(y1), number(middle), number(y2), number(x2-6), number(y2))
	fmt.Fprintf(&d.body, `<path class="%s head" d="M%s %sl-8 -4v8z"/>`, class, number(x2), number(y2))
}

// say adds words for readers who do not see the drawing.
func (d *Drawing) say(format string, args ...any) {
	d.words = append(d.words, fmt.Sprintf(format, args...))
}

// heading writes the title in bold on top.
func (d *Drawing) heading(text string) {
	d.height += float64(d.paragraph(0, d.height, "strong", text))*line + 4
}

// wrapped returns text in lines of at most so many pixels, with control characters escaped.
func wrapped(s string, room float64) []string {
	return strings.Split(ansi.Wrap(render.Escape(s), max(int(room/column), 10), ""), "\n")
}

// cut returns text in at most so many pixels: its middle is left out.
func cut(s string, room float64) string {
	s = render.Escape(s)
	most := int(room / column)
	if n := ansi.StringWidth(s); n > most {
		head := most / 2
		return ansi.Truncate(s, head, "") + "…" + ansi.TruncateLeft(s, n-(most-head-1), "")
	}
	return s
}

func escaped(s string) string { return html.EscapeString(render.Escape(s)) }

// number writes a length with at most one decimal place.
func number(f float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
}

// class returns the class of CSS for a mark.
func class(m render.Mark) string {
	switch m {
	case render.Good:
		return "good"
	case render.Bad:
		return "bad"
	case render.Unsure:
		return "unsure"
	case render.Faint:
		return "faint"
	case render.Strong:
		return "strong"
	default:
		return "plain"
	}
}

// Bar returns a bar for a part of a whole, as wide as there is room for.
func Bar(part, whole int, m render.Mark) string {
	share := 0.0
	if whole > 0 {
		share = min(max(float64(part)*100/float64(whole), 0), 100)
	}
	return fmt.Sprintf(`<svg class="bar" aria-hidden="true" viewBox="0 0 100 10" preserveAspectRatio="none"><rect class="track" width="100" height="10"/><rect class="%s" width="%s" height="10"/></svg>`, class(m)+" fill", number(share))
}
