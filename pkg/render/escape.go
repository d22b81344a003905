// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes foreign text (a name, an attribute, a message) safe to print: everything
// that could move the cursor, or reorder or hide the text around it, is shown as in a Go
// string literal. That covers control characters and escape sequences, invisible and
// bidirectional formatting, every space but the plain one, and invalid UTF-8.
func Escape(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += size
	}
	return b.String()
}

// isPlain reports whether text needs no escaping, the usual case.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// EscapeLines is like [Escape], for text of several lines.
func EscapeLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Escape(lines[i])
	}
	return strings.Join(lines, "\n")
}

// EscapeJSON is like [Escape], for JSON: characters that a terminal would obey or not show
// are written as JSON writes control characters, so that the values stay the same.
// Characters beyond U+FFFF, of which none is obeyed, stay as they are: JSON writes them as
// two, which YAML readers do not understand.
func EscapeJSON(text []byte) []byte {
	escaped := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && text[end] < 0x7f {
			end++
		}
		escaped = append(escaped, text[i:end]...)
		if end == len(text) {
			break
		}
		r, size := utf8.DecodeRune(text[end:])
		i = end + size
		if unicode.IsPrint(r) || r > 0xffff {
			escaped = append(escaped, text[end:i]...)
		} else {
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		}
	}
	return escaped
}

// longestForeignLine limits the length of a line before it is written in pieces.
const longestForeignLine = 1 << 20

// Foreign makes the output of a program that runs elsewhere safe to print: it is [Escape]
// for a stream. Lines stay lines. With color, this program's own colors are let through.
// Close writes the rest of the last line; it does not close w.
func Foreign(w io.Writer, color bool) io.WriteCloser {
	f := &foreign{w: w}
	if color {
		f.colors = regexp.MustCompile("\x1b\\[((0|1|2|22|3[0-79])(;(0|1|2|22|3[0-79]))*)?m")
	}
	return f
}

type foreign struct {
	w      io.Writer
	colors *regexp.Regexp
	rest   []byte
}

// Write only fails if the underlying writer does.
func (f *foreign) Write(data []byte) (int, error) {
	f.rest = append(f.rest, data...)
	end := bytes.LastIndexByte(f.rest, '\n') + 1
	if end == 0 && len(f.rest) > longestForeignLine {
		end = len(f.rest)
	}
	if end == 0 {
		return len(data), nil
	}
	if err := f.flush(end); err != nil {
		return 0, err
	}
	return len(data), nil
}

// Close writes the last line.
func (f *foreign) Close() error { return f.flush(len(f.rest)) }

func (f *foreign) flush(end int) error {
	lines := strings.Split(string(f.rest[:end]), "\n")
	for i := range lines {
		lines[i] = f.line(lines[i])
	}
	f.rest = append(f.rest[:0], f.rest[end:]...)
	_, err := io.WriteString(f.w, strings.Join(lines, "\n"))
	return err
}

func (f *foreign) line(line string) string {
	if f.colors == nil {
		return Escape(line)
	}
	var b strings.Builder
	at := 0
	for _, span := range f.colors.FindAllStringIndex(line, -1) {
		b.WriteString(Escape(line[at:span[0]]))
		b.WriteString(line[span[0]:span[1]])
		at = span[1]
	}
	b.WriteString(Escape(line[at:]))
	return b.String()
}
