// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzLoad feeds arbitrary bytes. Whatever does not load must say where.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		everything, claimYAML, classJSON, classJSON + classJSON, "---\n" + claimYAML + "---\n" + classJSON,
		`{"apiVersion":"v1","kind":"List","items":[` + classJSON + `]}`,
		"apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\nkind: List\n",
		"a: &a [*a]", "{a: b}", "%YAML 1.1\n---\n", "\x1f\x8b", "\xff\xfe{\x00}\x00", "[]", `{"items":[`, "- |\n a",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		small := limits{bytes: 1 << 20, unpacked: 1 << 20, memory: 256 << 20, keep: 1 << 16, entries: 10}
		_, err := load(t.Context(), []string{"-"}, Options{Stdin: bytes.NewReader(data)}, asCluster, small)
		var input *InputError
		if err != nil && !errors.As(err, &input) {
			t.Fatalf("not an InputError: %v", err)
		}
	})
}
