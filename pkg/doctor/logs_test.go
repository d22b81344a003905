// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestLogLines expects lines that show errors, without secrets.
func TestLogLines(t *testing.T) {
	log := "I started\n" + strings.Repeat("E error one\n", 9) +
		"E failed: token=abcdef123 rest\r\nE error Authorization: Bearer abc.def\nE invalid key " + strings.Repeat("a1B2", 12) + "\nE error " + strings.Repeat("word ", 200) + "\n"
	lines := LogLines(log)
	want := []string{"E error one", "E failed: token=[redacted] rest", "E error Authorization: [redacted]", "E invalid key [redacted]"}
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

// TestLogSecrets cuts what follows the name of a secret, wherever the first = or : of the line is.
func TestLogSecrets(t *testing.T) {
	for line, want := range map[string]string{
		`error: url=https://x.example/?token=HUSH1 failed`:                                              `error: [redacted] failed`,
		`{"msg":"login failed","password":"HUSH1 HUSH2","user":"bob"}`:                                  `{"msg":"login failed","password":[redacted],"user":"bob"}`,
		`{"error":"no","log":"{\\"password\\":\\"HUSH1 HUSH2\\",\\"a\\":1}"}`:                           `{"error":"no","log":"{\\"password\\":[redacted],\\"a\\":1}"}`,
		`error ts=1: level=info msg="x" client_secret=HUSH1 code=3`:                                     `error ts=1: level=info msg="x" client_secret=[redacted] code=3`,
		`fatal: DB_PASSWORD: HUSH1 HUSH2 HUSH3`:                                                         `fatal: DB_PASSWORD: [redacted]`,
		`error: cannot reach postgres://bob:HUSH1@db/x: refused`:                                        `error: cannot reach [redacted] refused`,
		`error header "Authorization": "Basic HUSH1=="`:                                                 `error header "Authorization": [redacted]`,
		`error: Authorization: Bearer HUSH1.HUSH2.HUSH3, retrying`:                                      `error: Authorization: [redacted] retrying`,
		`failed with bearer HUSH1`:                                                                      `failed with bearer [redacted]`,
		`error running tool --password HUSH1 --port 3`:                                                  `error running tool --password [redacted] --port 3`,
		`error running tool --api-key=HUSH1 --port 3`:                                                   `error running tool --api-key=[redacted] --port 3`,
		`error: key -----BEGIN PRIVATE KEY----- HUSH1`:                                                  `error: key [redacted]`,
		"error: bad key\n-----BEGIN RSA PRIVATE KEY-----\nerror HUSH1\n-----END RSA PRIVATE KEY-----\n": `error: bad key`,
		`error: AKIAIOSFODNN7EXAMPLE is not authorized`:                                                 `error: [redacted] is not authorized`,
		`invalid jwt eyJhbGciOi.eyJzdWIi.c2lnbmF0`:                                                      `invalid jwt [redacted]`,
		`error of GPU-99999999-2222-4333-8444-555555555555 (02:42:ac:11:00:02)`:                         `error of [redacted] [redacted]`,
		`error: dial tcp 10.77.1.1:443 or ip-10-77-1-1: refused`:                                        `error: dial tcp [redacted] or [redacted] refused`,
		`error: login to iqn.2003-01.example:disk failed`:                                               `error: login to [redacted] failed`,
		`error: secret "a" is forbidden: User "b" cannot get resource "secrets"`:                        `error: secret "a" is forbidden: User "b" cannot get resource "secrets"`,
		`failed to list *v1.ResourceSlice: the server could not find the resource`:                      `failed to list *v1.ResourceSlice: the server could not find the resource`,
	} {
		got := strings.Join(LogLines(line), "|")
		if got != want || strings.Contains(got, "HUSH") {
			t.Errorf("%s\nwant %s\ngot  %s", line, want, got)
		}
	}
}
