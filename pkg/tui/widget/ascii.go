// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

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
