// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

func saved(t testing.TB, s *snapshot.Snapshot) string {
	t.Helper()
	var text bytes.Buffer
	if err := files.Write(&text, s, files.JSON); err != nil {
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
