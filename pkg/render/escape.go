// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
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
