// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package english_test

import (
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

func TestSentence(t *testing.T) {
	for clause, want := range map[string]string{
		"":                           "",
		"the pod waits":              "The pod waits.",
		"gpu.example.com is gone":    "gpu.example.com is gone.",
		"ml/train waits":             "ml/train waits.",
		"ärger ist da":               "Ärger ist da.",
		"does it run? did you mean?": "Does it run? did you mean?",
	} {
		if got := english.Sentence(clause); got != want {
			t.Errorf("%q: got %q, want %q", clause, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"0 nodes": english.Count(0, "node"), "1 node": english.Count(1, "node"), "999 classes": english.Count(999, "class"), "1,000 entries": english.Count(1000, "entry"), "12,345,678 pods": english.Count(12345678, "pod"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
