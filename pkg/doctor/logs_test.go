// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestLogLines takes lines that say what is wrong, without secrets.
func TestLogLines(t *testing.T) {
	log := "I started\n" + strings.Repeat("E error one\n", 9) +
		"E failed: token=abcdef123 rest\r\nE error Authorization: Bearer abc.def\nE invalid key " + strings.Repeat("a1B2", 12) + "\nE error " + strings.Repeat("word ", 200) + "\n"
	lines := LogLines(log)
	want := []string{"E error one", "E failed: token=[redacted] rest", "E error Authorization: [redacted] [redacted]", "E invalid key [redacted]"}
	if len(lines) != maxLogLines || !slices.Equal(lines[:4], want) || len(lines[4]) > maxLogLine+len("…") {
		t.Errorf("%q", lines)
	}
}

// TestLogs chooses the logs that tell most first.
func TestLogs(t *testing.T) {
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "init"}}, Containers: []corev1.Container{{Name: "good"}, {Name: "bad"}}},
		Status: corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "init", Ready: true}},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: "good", Ready: true}, {Name: "bad", RestartCount: 3}},
		},
	}
	want := []Log{{"bad", false}, {"bad", true}, {"init", false}, {"good", false}}
	if got := Logs(pod); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
