// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// TestFormats reads a file of each format that there has been. These files are never written again.
func TestFormats(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "format*.rec"))
	if err != nil || len(paths) != Format {
		t.Fatalf("%d files, %v; expected one for each of %d formats", len(paths), err, Format)
	}
	for _, path := range paths {
		r := opened(t, path)
		from, _, err := r.Range(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for m, err := range r.From(t.Context(), from, files.Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			text.WriteString(saved(t, m.Snapshot))
			if m.Missed != nil {
				text.WriteString("missed since " + m.Missed.Since.UTC().String() + ": " + m.Missed.Reason + "\n")
			}
		}
		golden := strings.TrimSuffix(path, ".rec") + ".json"
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if string(want) != text.String() {
			t.Errorf("%s does not read as %s says", path, golden)
		}
	}
}

// compressed returns a frame with a text.
func compressed(t *testing.T, text string) []byte {
	t.Helper()
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(false))
	if err != nil {
		t.Fatal(err)
	}
	return encoder.EncodeAll([]byte(text), nil)
}

// TestNewerFormat refuses a file of a later format, and says why.
func TestNewerFormat(t *testing.T) {
	text := "\n" + `{"kind":"Recording","apiVersion":"dra.kubectl.dev/v1alpha1","format":2,"begins":"2026-09-01T09:00:00Z"}` + "\n"
	_, err := Bytes("new.rec", compressed(t, text))
	if err == nil || !strings.Contains(err.Error(), "read new.rec: it has format 2") || !strings.Contains(err.Error(), "a newer version of it wrote the file") {
		t.Error(err)
	}
}

// TestHostile reads files that nobody wrote with this program.
func TestHostile(t *testing.T) {
	head := "\n" + `{"kind":"Recording","apiVersion":"dra.kubectl.dev/v1alpha1","format":1,"begins":"2026-09-01T09:00:00Z"}` + "\n"
	for text, want := range map[string]string{
		"":                 "it ends before the first moment",
		"hello\n":          "expected a line of kind Recording, found \"hello\"",
		head:               "it ends before the first moment",
		head + "a\nb\nc\n": "it ends before the first moment",
		head + "{}\n]}\n{\"moment\":\"2026-09-01T09:00:00Z\",\"sum\":1}\n":                                                      "damaged",
		"\n" + `{"apiVersion":"dra.kubectl.dev/v1alpha1","kind":"Recording","format":1,"begins":"2026-09-01T09:00:00Z"}` + "\n": "begins with kind Recording",
		head + "{}\n]}\n{\"moment\":1}\n": "Time",
	} {
		r, err := Bytes("bad.rec", compressed(t, text))
		if err == nil {
			_, err = r.Last(t.Context(), files.Options{})
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "read bad.rec: ") {
			t.Errorf("%q: want %q, got %v", text, want, err)
		}
	}
}
