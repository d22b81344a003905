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
	"net/http"
	"net/http/httptest"
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
	// args are the arguments of a verb that works with the many objects.
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

// TestMemoryOfInputWithoutEnd holds the built program against what SECURITY.md promises
// about input and servers that never come to an end.
func TestMemoryOfInputWithoutEnd(t *testing.T) {
	program, peak := goBuild(t, "../cmd/kubectl-dra"), goBuild(t, "./peak")
	t.Setenv("KUBECONFIG", "/dev/null")
	t.Setenv("KUBECACHEDIR", t.TempDir())
	check := func(t *testing.T, want string, command string, args ...string) {
		t.Helper()
		u, out := measure(t, peak, command, args...)
		said := string(out[:min(len(out), 1000)])
		if u.PeakMiB > 512 || u.Seconds > 20 || !strings.Contains(said, want) {
			t.Errorf("took %.0f MiB and %.1f s, and said %s", u.PeakMiB, u.Seconds, said)
		}
		t.Logf("%.0f MiB, %.1f s, exit code %v: %.300s", u.PeakMiB, u.Seconds, u.Exit, said)
	}
	for name, test := range map[string]struct{ shell, want string }{
		"text":       {"yes 'kind: a' | %s slices --snapshot -", "read standard input: it has more than 256 MiB of text"},
		"compressed": {"yes 'kind: a' | gzip -1 | %s why -f -", "read standard input: it has more than 256 MiB of text"},
		"zeros":      {"%s lint -f - </dev/zero", "read standard input: expected YAML"},
		"device":     {"%s why -f /dev/zero", "read /dev/zero: expected YAML"},
	} {
		t.Run(name, func(t *testing.T) { check(t, test.want, "/bin/sh", "-c", fmt.Sprintf(test.shell, program)) })
	}

	endless := func(before, text string) http.HandlerFunc {
		many := strings.Repeat(text, 64<<10/len(text))
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, err := io.WriteString(w, before)
			for err == nil {
				_, err = io.WriteString(w, many)
			}
		}
	}
	chunk := strings.Repeat(`{"metadata":{"name":"a"}},`, 500)
	number := 0
	for name, test := range map[string]struct {
		path   string
		answer http.HandlerFunc
		want   string
	}{
		"version":   {"/version", endless(`{"gitVersion":"`, "v1"), "its answer does not end: it has more than 16 MiB"},
		"discovery": {"/apis/resource.k8s.io/v1", endless(`{"resources":[`, `{"name":"a"},`), "its answer does not end: it has more than 16 MiB"},
		"lists":     {"", endless(`{"items":[`, `{"metadata":{"name":"a"}},`), "its answer does not end: it has more than 128 MiB"},
		"chunks": {"/apis/resource.k8s.io/v1/resourceslices", func(w http.ResponseWriter, _ *http.Request) {
			number++
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"kind":"ResourceSliceList","apiVersion":"resource.k8s.io/v1","metadata":{"resourceVersion":"1","continue":"%d"},"items":[%s]}`, number, chunk[:len(chunk)-1])
		}, "a list of it does not end: it has more than 200000 objects"},
		"metrics": {"/metrics", endless("", "up 1\n"), ""},
		"retry": {"/version", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "999999")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, "it is not ready"},
		"silence": {"/version", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no answer within 15s"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case r.URL.Path == test.path:
					test.answer(w, r)
				case r.URL.Path == "/version":
					_, _ = io.WriteString(w, `{"major":"1","minor":"37","gitVersion":"v1.37.1"}`)
				case r.URL.Path == "/apis/resource.k8s.io/v1":
					_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"resource.k8s.io/v1","resources":[{"name":"resourceclaims"}]}`)
				case test.path == "" && r.URL.Query().Has("limit"):
					test.answer(w, r)
				case r.URL.Query().Has("limit"):
					_, _ = io.WriteString(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
				default:
					w.WriteHeader(http.StatusNotFound)
				}
			}))
			defer server.Close()
			check(t, test.want, program, "why", "-A", "--server", server.URL)
		})
	}
}
