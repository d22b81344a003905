// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/save"
)

// everything has one object of each kind.
func everything(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("../testdata/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func mustLoad(t testing.TB, text string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Load(t.Context(), []string{"-"}, snapshot.Options{Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func saved(t testing.TB, s *snapshot.Snapshot) string {
	t.Helper()
	var text bytes.Buffer
	if err := save.Snapshot(&text, s, save.JSON); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// requireEqual compares what two snapshots are saved as.
func requireEqual(t testing.TB, want, got *snapshot.Snapshot) {
	t.Helper()
	if diff := cmp.Diff(strings.Split(saved(t, want), "\n"), strings.Split(saved(t, got), "\n")); diff != "" {
		t.Errorf("snapshots differ (-want +got):\n%s", diff)
	}
}
