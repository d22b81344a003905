// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

// Package picture draws what a terminal shows, for the documents. It is imported
// by tests only, which compare the pictures with what the program prints.
package picture

import (
	"fmt"
	"html"
	"image/color"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// A picture has a background of its own, so that it looks the same on light and
// on dark pages. Sizes are in pixels.
const (
	fontSize   = 14
	cellWidth  = 8.4
	lineHeight = 18
	margin     = 16
)

// palette has the colors of a terminal.
type palette struct {
	background, foreground, frame string
	// named are the 16 that the terminal chooses.
	named [16]string
}

func dark() *palette {
	return &palette{"#0d1117", "#e6edf3", "#30363d", [16]string{
		"#484f58", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", "#b1bac4",
		"#6e7681", "#ffa198", "#a5f3ae", "#f2cc60", "#a5d6ff", "#e2c5ff", "#b3f0ff", "#ffffff",
	}}
}

func light() *palette {
	return &palette{"#ffffff", "#1f2328", "#d0d7de", [16]string{
		"#000000", "#b31d28", "#1a6f2c", "#8a5a00", "#0550c0", "#7a3cc2", "#0b6b74", "#6a737d",
		"#57606a", "#c93038", "#1f7d36", "#9a6700", "#1a66d6", "#8e50d8", "#127a85", "#8c959f",
	}}
}

// SVG draws a command, which may be empty, and below it a screen: lines with the
// escape sequences for colours and attributes. Characters keep their columns in
// every font of one width. The terminal has a dark background or, if onLight is true, a light one.
func SVG(command, screen string, onLight bool) string {
	colors := dark()
	if onLight {
		colors = light()
	}
	text := strings.TrimRight(screen, "\n")
	if command != "" {
		text = "$ " + command + "\n\n" + text
	}
	columns, rows := 0, 0
	for line := range strings.Lines(text) {
		columns = max(columns, ansi.StringWidth(line))
		rows++
	}
	cells := uv.NewScreenBuffer(columns, rows)
	uv.NewStyledString(text).Draw(cells, cells.Bounds())
	if command != "" {
		for i := range cells.Lines[0] {
			cells.Lines[0][i].Style.Attrs = uv.AttrBold
		}
	}
	width, height := 2*margin+float64(columns)*cellWidth, 2*margin+rows*lineHeight

	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace" font-size="%d">`+"\n",
		width, height, width, height, fontSize)
	fmt.Fprintf(&out, `<rect x="0.5" y="0.5" width="%.0f" height="%d" rx="8" fill="%s" stroke="%s"/>`+"\n", width-1, height-1, colors.background, colors.frame)
	for row, line := range cells.Lines {
		for _, run := range runsOf(line) {
			run.draw(&out, row, colors)
		}
	}
	out.WriteString("</svg>\n")
	return out.String()
}

// run is text of one style.
type run struct {
	column, width int
	text          string
	style         uv.Style
}

// runsOf splits a line where its style changes, and at gaps: text after a gap starts at its
// own column, however wide the glyphs before it are.
func runsOf(line uv.Line) []run {
	var runs []run
	gap := true
	for column, cell := range line {
		if cell.Width == 0 { // the second half of the one before
			continue
		}
		blank := cell.Content == "" || cell.Content == " "
		if last := len(runs) - 1; last >= 0 && runs[last].style == cell.Style && (!gap || marked(cell.Style)) {
			runs[last].text += cell.Content
			runs[last].width += cell.Width
		} else if !blank || marked(cell.Style) {
			runs = append(runs, run{column: column, width: cell.Width, text: cell.Content, style: cell.Style})
		}
		gap = blank && (gap || column+1 < len(line) && line[column+1].Content == " ")
	}
	return runs
}

// marked reports whether blanks of this style can be seen.
func marked(style uv.Style) bool { return style.Bg != nil || style.Attrs&uv.AttrReverse != 0 }

func (r run) draw(out *strings.Builder, row int, colors *palette) {
	fg, bg := colors.of(r.style.Fg, colors.foreground), colors.of(r.style.Bg, colors.background)
	if r.style.Attrs&uv.AttrReverse != 0 {
		fg, bg = bg, fg
	}
	x, top := margin+float64(r.column)*cellWidth, margin+row*lineHeight
	if bg != colors.background {
		fmt.Fprintf(out, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", x, top, float64(r.width)*cellWidth, lineHeight, bg)
	}
	text := strings.TrimRight(r.text, " ")
	if text == "" {
		return
	}
	length := float64(r.width-(len(r.text)-len(text))) * cellWidth
	var style string
	if r.style.Attrs&uv.AttrBold != 0 {
		style += ` font-weight="bold"`
	}
	if r.style.Attrs&uv.AttrFaint != 0 {
		style += ` opacity="0.7"`
	}
	fmt.Fprintf(out, `<text x="%.1f" y="%d" fill="%s" textLength="%.1f" lengthAdjust="spacingAndGlyphs" xml:space="preserve"%s>%s</text>`+"\n",
		x, top+fontSize, fg, length, style, html.EscapeString(text))
}

// of returns how a colour of the terminal looks in the picture.
func (p *palette) of(c color.Color, otherwise string) string {
	switch c := c.(type) {
	case nil:
		return otherwise
	case ansi.BasicColor:
		return p.named[c&15]
	default:
		r, g, b, _ := c.RGBA()
		return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
	}
}
