// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/redact"
)

// LogChecks returns the codes of the checks whose findings name pods with more details in
// their logs.
func LogChecks() []string { return []string{"DRA1103", "DRA1104"} }

// Log identifies the log of a container, of its previous run if Previous is set.
type Log struct {
	Container string
	Previous  bool
}

// Path identifies the log in evidence.
func (l Log) Path() string {
	path := "log[container=" + l.Container + "]"
	if l.Previous {
		path += ", previous run"
	}
	return path
}

// Logs lists the logs of a pod that may show an error, the most useful first: failing
// containers before others, and of a restarted container the run that ended.
func Logs(pod *corev1.Pod) []Log {
	var broken, others []Log
	for _, list := range []struct {
		specs    []corev1.Container
		statuses []corev1.ContainerStatus
	}{{pod.Spec.InitContainers, pod.Status.InitContainerStatuses}, {pod.Spec.Containers, pod.Status.ContainerStatuses}} {
		for i := range list.specs {
			name := list.specs[i].Name
			at := slices.IndexFunc(list.statuses, func(s corev1.ContainerStatus) bool { return s.Name == name })
			switch {
			case at < 0 || list.statuses[at].Ready:
				others = append(others, Log{Container: name})
			default:
				broken = append(broken, Log{Container: name})
			}
			if at >= 0 && list.statuses[at].RestartCount > 0 {
				broken = append(broken, Log{Container: name, Previous: true})
			}
		}
	}
	return append(broken, others...)
}

// LogLines returns the last lines of a log that may show a driver's error, without what
// looks like a secret.
func LogLines(log string) []string {
	var lines []string
	secrets := newSecrets()
	inKey := false
	for line := range strings.Lines(log) {
		// The lines of a key follow each other.
		ends := strings.Contains(line, "-----END")
		if inKey {
			inKey = !ends
			continue
		}
		inKey = strings.Contains(line, "-----BEGIN") && !ends
		lower := strings.ToLower(line)
		if slices.ContainsFunc([]string{"error", "fail", "fatal", "panic", "invalid", "denied", "forbidden", "resourceslice"}, func(word string) bool { return strings.Contains(lower, word) }) {
			lines = append(lines, secrets.cut(strings.TrimRight(line, "\r\n")))
		}
	}
	return lines[max(0, len(lines)-maxLogLines):]
}

const (
	// maxLogLines limits how many lines of a log a finding has, maxLogLine the length of
	// each.
	maxLogLines = 5
	maxLogLine  = 300
	// secretLength is the length from which on a word may be a key or a token.
	secretLength = 32
	// hidden stands for a secret.
	hidden = "[redacted]"
)

// secrets finds secrets in a line.
type secrets struct {
	key, login, phrase, value, following, long *regexp.Regexp
	// inSnapshot reports whether a redacted snapshot hides a word.
	inSnapshot func(word string) bool
}

func newSecrets() secrets {
	const (
		// before matches quotes, and the sign of an assignment.
		before = `[\\"'\]]*\s*(?:=>|:=|[=:])\s*`
		quoted = `\\+".*?\\+"|"(?:[^"\\]|\\.)*"?|'[^']*'?`
		names  = `tokens?|secrets?|authorization|bearer|cookie|session(?:id)?|credentials?|(?:api|access|private|signing|encryption)[-_.]?key`
	)
	return secrets{
		key:   regexp.MustCompile(`-----BEGIN.*`),
		login: regexp.MustCompile(`://\S*@`),
		// A phrase may have blanks.
		phrase:     regexp.MustCompile(`(?i)([\w.-]*(?:passw|passphrase|pwd)[\w.-]*` + before + `)(?:` + quoted + `|.+)`),
		value:      regexp.MustCompile(`(?i)([\w.-]*(?:` + names + `)[\w.-]*` + before + `)(?:` + quoted + `|(?:bearer|basic|digest|negotiate|token)\s+\S+|[^\s&,;}]+)`),
		following:  regexp.MustCompile(`(?i)(\b(?:bearer|basic|token|password)|--?[\w-]*(?:token|passw\w*|secret|key))\s+[^\s=:]\S*`),
		inSnapshot: redact.Secrets(),
		long:       regexp.MustCompile(fmt.Sprintf(`[0-9A-Za-z+/_-]{%d,}={0,2}`, secretLength)),
	}
}

// cut hides possible keys, passwords and tokens in a line: words after the name of one,
// logins in URLs, long words of letters and digits, and words that a redacted snapshot does
// not show either.
func (s *secrets) cut(line string) string {
	line = s.key.ReplaceAllString(line, hidden)
	line = s.login.ReplaceAllString(line, "://"+hidden+"@")
	line = s.phrase.ReplaceAllString(line, "${1}"+hidden)
	line = s.value.ReplaceAllString(line, "${1}"+hidden)
	line = s.following.ReplaceAllString(line, "${1} "+hidden)
	words := strings.Fields(line)
	for i, word := range words {
		word = s.long.ReplaceAllString(word, hidden)
		if s.inSnapshot(word) {
			word = hidden
		}
		words[i] = word
	}
	line = strings.Join(words, " ")
	if len(line) > maxLogLine {
		line = strings.ToValidUTF8(line[:maxLogLine], "") + "…"
	}
	return line
}
