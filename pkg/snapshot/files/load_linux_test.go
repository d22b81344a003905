// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// TestLoadPipeInDirectory fails without reading what might never end.
func TestLoadPipeInDirectory(t *testing.T) {
	for name, test := range map[string]struct {
		make func(path string) error
		want string
	}{
		"pipe":   {func(path string) error { return syscall.Mkfifo(path, 0o600) }, "expected a file, found a named pipe"},
		"socket": {func(path string) error { _, err := net.Listen("unix", path); return err }, "expected a file, found a socket"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.yaml")
			if err := test.make(path); err != nil {
				t.Skip(err)
			}
			_, err := files.Load(t.Context(), []string{filepath.Dir(path)}, files.Options{})
			var input *files.InputError
			if !errors.As(err, &input) || input.Path != path || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// forever reads as a text without end.
func forever(text string) io.Reader { return &endless{text: strings.Repeat(text, 1+1<<20/len(text))} }

type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}

// TestInputWithoutEnd expects a refusal of endless input, however it comes.
func TestInputWithoutEnd(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(bytes.Repeat([]byte("kind: a\n"), 1<<20))
	_ = z.Close()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	go func() {
		if to, err := os.OpenFile(pipe, os.O_WRONLY, 0); err == nil {
			_, _ = io.Copy(to, forever("kind: a\n"))
		}
	}()
	for name, test := range map[string]struct {
		path  string
		stdin string
		want  string
	}{
		"text":       {"-", "kind: a\n", "read standard input: it has more than 256 MiB of text"},
		"one line":   {"-", "a", "read standard input: it has more than 256 MiB of text"},
		"zeros":      {"-", "\x00", "read standard input: expected YAML, JSON, gzip or tar, found binary data"},
		"compressed": {"-", bomb.String(), "read standard input: it has more than 256 MiB of text"},
		"pipe":       {pipe, "x", "read " + pipe + ": it has more than 256 MiB of text"},
		"/dev/zero":  {"/dev/zero", "x", "read /dev/zero: expected YAML, JSON, gzip or tar, found binary data"},
	} {
		t.Run(name, func(t *testing.T) {
			for purpose, read := range map[string]func() error{
				"load": func() error {
					_, err := files.Load(t.Context(), []string{test.path}, files.Options{Stdin: forever(test.stdin)})
					return err
				},
				"texts": func() error {
					_, err := files.Texts(t.Context(), []string{test.path}, files.Options{Stdin: forever(test.stdin)})
					return err
				},
			} {
				if purpose == "texts" && name == "pipe" {
					continue
				}
				var input *files.InputError
				if err := read(); !errors.As(err, &input) || !strings.HasPrefix(err.Error(), test.want) {
					t.Errorf("%s: got %v", purpose, err)
				}
			}
		})
	}
}

// TestLinksOutOfDirectory reads the files in the named directory, and names the rest.
func TestLinksOutOfDirectory(t *testing.T) {
	const class = "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: %s}}"
	write := func(path, name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(class, "%s", name, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root := t.TempDir()
	dir := filepath.Join(root, "dir")
	write(filepath.Join(root, "secret.yaml"), "outside")
	write(filepath.Join(root, "dir-b", "secret.yaml"), "beside")
	write(filepath.Join(dir, "..data", "a.txt"), "inside")
	for name, to := range map[string]string{
		"a.yaml": "..data/a.txt", "b.yaml": "../secret.yaml", "c.yaml": filepath.Join(root, "secret.yaml"), "d.yaml": "/dev/zero",
		"e.yaml": "../dir-b/secret.yaml", "f.yaml": "b.yaml", "g.yaml": "/etc/shadow", "named": ".",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	// The directory itself may be a link: that is what was named.
	for _, named := range []string{dir, filepath.Join(dir, "named") + "/"} {
		var notes []string
		snap, err := files.Manifests(t.Context(), []string{named}, files.Options{LeftOut: func(note string) { notes = append(notes, note) }})
		if err != nil {
			t.Fatal(err)
		}
		if len(snap.Classes) != 1 || snap.Classes[0].Name != "inside" {
			t.Errorf("got %v", snap.Classes)
		}
		if len(notes) != 6 || !strings.Contains(notes[0], "b.yaml is not read: it is a link to "+filepath.Join(root, "secret.yaml")+", which is not in ") {
			t.Errorf("%s: got notes %q", named, notes)
		}
	}
}
