// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	// hostileSize is the size of the files, a little below what SECURITY.md has
	// a promise about, and hostilePeak is the promise.
	hostileSize = 60 << 20
	hostilePeak = 2048
)

// hostileFile is made to take far more memory than its size.
type hostileFile struct {
	name  string
	write func(w io.Writer) error
	// args are those of a verb that works with what there is a lot of.
	args []string
	// said is part of the error, or of the output if there is none.
	said string
}

// repeated writes texts with numbers until the file is large enough.
func repeated(before, format, after string) func(io.Writer) error {
	return func(w io.Writer) error {
		size, err := io.WriteString(w, before)
		for i := 0; err == nil && size < hostileSize; i++ {
			var n int
			n, err = fmt.Fprintf(w, format, i)
			size += n
		}
		if err == nil {
			_, err = io.WriteString(w, after)
		}
		return err
	}
}

func text(parts ...string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(parts, ""))
		return err
	}
}

// compressed writes a gzip file with so many copies of a text.
func compressed(content []byte, copies int) func(io.Writer) error {
	return func(w io.Writer) error {
		var member bytes.Buffer
		stream := gzip.NewWriter(&member)
		if _, err := stream.Write(content); err != nil {
			return err
		}
		if err := stream.Close(); err != nil {
			return err
		}
		for range copies {
			if _, err := w.Write(member.Bytes()); err != nil {
				return err
			}
		}
		return nil
	}
}

func twiceCompressed(w io.Writer) error {
	var inner bytes.Buffer
	if err := compressed(bytes.Repeat([]byte{'\n'}, 32<<20), 500)(&inner); err != nil {
		return err
	}
	return compressed(inner.Bytes(), 1)(w)
}

// sparse writes an archive with a file that is one large hole.
func sparse(w io.Writer) error {
	const size = 1<<31 - 512
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	if err := archive.WriteHeader(&tar.Header{Name: "a.yaml", Typeflag: tar.TypeReg, Mode: 0o600, Size: 512 + 512, Format: tar.FormatPAX, PAXRecords: map[string]string{
		"TAR.sparse.major": "1", "TAR.sparse.minor": "0", "TAR.sparse.name": "a.yaml", "TAR.sparse.realsize": fmt.Sprint(size),
	}}); err != nil {
		return err
	}
	block := make([]byte, 1024)
	copy(block, fmt.Sprintf("1\n%d\n512\n", size-512))
	if _, err := archive.Write(block); err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return err
	}
	// The library reads these records, but does not write them.
	_, err := w.Write(bytes.ReplaceAll(content.Bytes(), []byte("TAR.sparse."), []byte("GNU.sparse.")))
	return err
}

func utf16Text(w io.Writer) error {
	if _, err := w.Write([]byte{0xff, 0xfe}); err != nil {
		return err
	}
	_, err := w.Write(bytes.Repeat([]byte{'a', 0x4e}, hostileSize/2))
	return err
}

func hostileFiles() []hostileFile {
	const slice = `{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"s%d"},"spec":{"driver":"d","nodeName":"n","pool":{"name":"p%[1]d","resourceSliceCount":1},"devices":[`
	var devices strings.Builder
	for i := range 128 {
		fmt.Fprintf(&devices, `,{"name":"d%d"}`, i)
	}
	const class = `{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"c"},"spec":`
	return []hostileFile{
		{"bomb.yaml.gz", compressed(make([]byte, 32<<20), 500), []string{"slices"}, "more than 512 MiB of text in compressed form"},
		{"twice.yaml.gz", twiceCompressed, []string{"slices"}, "compressed twice"},
		{"sparse.tar", sparse, []string{"slices"}, "it is cut off, or has a file with holes"},
		{"utf16.yaml", utf16Text, []string{"slices"}, "an object has at most 8 MiB"},
		{"text.yaml", repeated("a: ", "%d", ""), []string{"slices"}, "an object has at most 8 MiB"},
		{"values.yaml", text("a: [", strings.Repeat("a,", 4<<20-10), "a]"), []string{"slices"}, "without apiVersion and kind"},
		{"keys.json", repeated(class+`{"a":{`, `"a%d":1,`, `"a":1}}}`), []string{"slices"}, "an object has at most 8 MiB"},
		{"items.json", text(strings.Repeat(" ", 100), `{"apiVersion":"v1","items":[`, strings.Repeat("1,", hostileSize/2), `1],"kind":"List"}`), []string{"slices"}, "expected an object, found '1'"},
		{"items.yaml", repeated("kind: List\nitems:\n", "- %d\n", ""), []string{"slices"}, ""},
		{"documents.json", text(strings.Repeat("{\"kind\":\"a\"}\n", 1_000_000)), []string{"snapshot"}, ""},
		{"documents.yaml", text(strings.Repeat("---\nkind: a\n", 200_000)), []string{"snapshot"}, ""},
		{"pods.json", repeated(`{"apiVersion":"v1","kind":"PodList","items":[`, `{"metadata":{"name":"a%d"}},`, `{"metadata":{"name":"a"}}]}`), []string{"why", "-A"}, "MiB of memory"},
		{"devices.json", repeated("", slice+devices.String()[1:]+"]}}\n", ""), []string{"devices"}, "MiB of memory"},
		{"containers.json", repeated("", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a%d"},"spec":{"containers":[`+strings.Repeat("{},", 50000)+"{}]}}\n", ""), []string{"why", "-A"}, ""},
		{"deep.json", text(class, strings.Repeat("[", hostileSize)), []string{"slices"}, "the text ends in the middle"},
		{"deep-parameters.json", text(class, `{"config":[{"opaque":{"driver":"d","parameters":`, strings.Repeat(`{"a":`, 1<<20), "1", strings.Repeat("}", 1<<20), "}}]}}"), []string{"slices"}, ""},
		{"deep.yaml", text("a: ", strings.Repeat("[", 7<<20)), []string{"slices"}, "exceeded max depth"},
		{"aliases.yaml", text("a: &a ", strings.Repeat("x", 1<<20), "\nb: [", strings.Repeat("*a,", 1<<20), "*a]"), []string{"slices"}, "aliases expand"},
	}
}

// TestMemoryOfHostileFiles holds the built program against what SECURITY.md
// promises about files of less than 64 MiB.
func TestMemoryOfHostileFiles(t *testing.T) {
	program, peak := goBuild(t, "../cmd/kubectl-dra"), goBuild(t, "./peak")
	for _, file := range hostileFiles() {
		t.Run(file.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), file.name)
			created, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			buffered := bufio.NewWriterSize(created, 1<<20)
			for _, do := range []func() error{func() error { return file.write(buffered) }, buffered.Flush, created.Close} {
				if err := do(); err != nil {
					t.Fatal(err)
				}
			}
			if info, err := os.Stat(path); err != nil || info.Size() > 64<<20 {
				t.Fatalf("%v, %v", info.Size(), err)
			}
			u, out := measure(t, peak, program, append(file.args, "--snapshot", path)...)
			said := string(out[:min(len(out), 1000)])
			if u.PeakMiB > hostilePeak {
				t.Errorf("took %.0f MiB, and said %s", u.PeakMiB, said)
			}
			if u.Exit == 4 || !strings.Contains(said, file.said) {
				t.Errorf("exit code %v, and said %s", u.Exit, said)
			}
			t.Logf("%.0f MiB, %.1f s, exit code %v: %.200s", u.PeakMiB, u.Seconds, u.Exit, said)
		})
	}
}
