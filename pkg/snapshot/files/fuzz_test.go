// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/internal/testsnapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// FuzzLoad feeds arbitrary bytes. Whatever does not load must say where.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		testsnapshot.Everything(), claimYAML, classJSON, classJSON + classJSON, "---\n" + claimYAML + "---\n" + classJSON,
		`{"apiVersion":"v1","kind":"List","items":[` + classJSON + `]}`,
		"apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\nkind: List\n",
		"a: &a [*a]", "{a: b}", "%YAML 1.1\n---\n", "\x1f\x8b", "\xff\xfe{\x00}\x00", "[]", `{"items":[`, "- |\n a",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := files.Within(t.Context(), bytes.NewReader(data), 1<<20, 1<<20, 256<<20, 1<<16, 10)
		var input *files.InputError
		if err != nil && !errors.As(err, &input) {
			t.Fatalf("not an InputError: %v", err)
		}
	})
}
