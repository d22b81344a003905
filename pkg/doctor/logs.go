// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// LogChecks are the codes of the checks with findings about pods of which the log
// says more.
func LogChecks() []string { return []string{"DRA1103", "DRA1104"} }

// Log is the log of a container, of the run before the present one if Previous is set.
type Log struct {
	Container string
	Previous  bool
}

// Path says in evidence which log it is.
func (l Log) Path() string {
	path := "log[container=" + l.Container + "]"
	if l.Previous {
		path += ", previous run"
	}
	return path
}

// Logs lists the logs of a pod that may say what is wrong with it, those that tell
// most first: of containers that do not work before others, and of one that was
// started again the run that ended.
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
