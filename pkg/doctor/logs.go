// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"
)

// LogChecks are the codes of the checks with findings about pods of which the log
// says more.
func LogChecks() []string { return []string{"DRA1103", "DRA1104"} }

// LogLines are the last lines of a log that may say what is wrong with a driver,
// without what looks like a secret.
func LogLines(log string) []string {
	var lines []string
	for line := range strings.Lines(log) {
		lower := strings.ToLower(line)
		if slices.ContainsFunc([]string{"error", "fail", "fatal", "panic", "invalid", "denied", "forbidden", "resourceslice"}, func(word string) bool { return strings.Contains(lower, word) }) {
			lines = append(lines, withoutSecrets(strings.TrimRight(line, "\r\n")))
		}
	}
	return lines[max(0, len(lines)-maxLogLines):]
}

const (
	// maxLogLines is how many lines of a log a finding has, maxLogLine how long one is.
	maxLogLines = 5
	maxLogLine  = 300
	// secretLength is how long a word is that may be a key or a token.
	secretLength = 32
)

// withoutSecrets takes out of a line what may be a key or a token: long words of
// letters and digits, and what follows the name of one.
func withoutSecrets(line string) string {
	const hidden = "[redacted]"
	names := []string{"token", "password", "passwd", "secret", "authorization", "bearer", "apikey", "api-key", "api_key"}
	words := strings.Fields(line)
	named := false
	for i, word := range words {
		name, _, assigned := strings.Cut(word, "=")
		if !assigned {
			name, _, assigned = strings.Cut(word, ":")
		}
		is := slices.ContainsFunc(names, func(n string) bool { return strings.Contains(strings.ToLower(name), n) })
		longest := ""
		for _, part := range strings.FieldsFunc(word, func(r rune) bool {
			return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '+' && r != '_'
		}) {
			if len(part) > len(longest) {
				longest = part
			}
		}
		hasValue := assigned && !strings.HasSuffix(word, ":") && !strings.HasSuffix(word, "=")
		switch {
		case named:
			words[i] = hidden
		case is && hasValue:
			words[i] = name + "=" + hidden
		case len(longest) >= secretLength:
			words[i] = strings.Replace(word, longest, hidden, 1)
		}
		// "Authorization: Bearer x" names it twice.
		named = is && !hasValue
	}
	line = strings.Join(words, " ")
	if len(line) > maxLogLine {
		line = strings.ToValidUTF8(line[:maxLogLine], "") + "…"
	}
	return line
}
