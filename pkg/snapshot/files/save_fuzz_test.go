// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"bytes"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/internal/testsnapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// FuzzSaveLoaded saves whatever can be loaded, in both formats. It loads again as
// it was.
func FuzzSaveLoaded(f *testing.F) {
	const class = `{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"gpu.example.com"},"spec":{"selectors":[{"cel":{"expression":"true"}}]}}`
	for _, seed := range []string{
		testsnapshot.Everything(), class, class + class, "---\n" + class + "\n---\n" + class, `{"apiVersion":"v1","kind":"List","items":[` + class + `]}`,
		"apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\nkind: List\n",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","annotations":{"x":"\u007f\u202e\ufffe"}}}`,
		"apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {allocatable: {cpu: 1e3, memory: \"0.5Gi\"}}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 1 << 20
		if len(data) > most {
			t.Skip("larger files take too long for many")
		}
		s, err := files.Load(t.Context(), []string{"-"}, files.Options{Stdin: bytes.NewReader(data)})
		if err != nil {
			t.Skip("not a snapshot")
		}
		for _, format := range []files.Format{files.JSON, files.YAML} {
			var saved bytes.Buffer
			if err := files.Write(&saved, s, format); err != nil {
				t.Fatalf("save: %v", err)
			}
			loaded, err := files.Load(t.Context(), []string{"-"}, files.Options{Stdin: &saved})
			if err != nil {
				t.Fatalf("load what was saved as %s: %v", format, err)
			}
			testsnapshot.Equal(t, s, loaded)
		}
	})
}
