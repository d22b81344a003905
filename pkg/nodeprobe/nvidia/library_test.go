// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nvidia

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// checkOf finds a check by its name.
func checkOf(f *Findings, name string) *node.Check {
	for i := range f.Checks {
		if f.Checks[i].Name == name {
			return &f.Checks[i]
		}
	}
	return nil
}

// TestNoLibrary covers a given path that is not NVML, on a machine without a GPU and in
// builds with and without NVML.
func TestNoLibrary(t *testing.T) {
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	libc := ""
	for _, pattern := range []string{"/lib/*-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6", "/lib/libc.so*"} {
		if found, _ := filepath.Glob(pattern); libc == "" && len(found) > 0 {
			libc = found[0]
		}
	}
	write := func(content []byte) func(string) error {
		return func(path string) error { return os.WriteFile(path, content, 0o600) }
	}
	for name, test := range map[string]struct {
		make func(path string) error
		want string
	}{
		"no file":         {func(string) error { return nil }, "there is no such file"},
		"a link to none":  {func(path string) error { return os.Symlink("none", path) }, "there is no such file"},
		"below a file":    {func(path string) error { return os.Symlink("/sys/file/x", path) }, "not a directory"},
		"a loop of links": {func(path string) error { return os.Symlink(filepath.Base(path), path) }, "too many levels"},
		"a directory":     {func(path string) error { return os.Mkdir(path, 0o700) }, "is not a regular file"},
		"a pipe":          {func(path string) error { return syscall.Mkfifo(path, 0o600) }, "is not a regular file"},
		"an empty file":   {write(nil), "is not a shared library"},
		"text":            {write([]byte("INPUT(libnvidia-ml.so)\n")), "is not a shared library"},
		"half of one":     {write(program[:1000]), "is not a shared library"},
		"a program":       {write(program), "it is not"},
		"another library": {func(path string) error {
			data, err := os.ReadFile(libc)
			if err != nil {
				return err
			}
			return os.WriteFile(path, data, 0o600)
		}, "is not NVML: it has no nvmlInitWithFlags"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "another library" && libc == "" {
				t.Skip("there is no C library here")
			}
			host := node.NewHost(t.TempDir(), "", nil)
			if err := os.MkdirAll(filepath.Join(host.Root, "sys/bus"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(host.Root, "sys/file"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := test.make(filepath.Join(host.Root, "libnvidia-ml.so.1")); err != nil {
				t.Fatal(err)
			}
			f, err := Look(t.Context(), host, Options{Library: "/libnvidia-ml.so.1"})
			if err != nil {
				t.Fatal(err)
			}
			c := checkOf(f, "gpus/nvml")
			if c == nil || c.State != node.Problem || c.Path != "/libnvidia-ml.so.1" || !strings.Contains(c.Message, test.want) || strings.Contains(c.Message, host.Root) {
				t.Errorf("got %+v, want a problem with %q", f.Checks, test.want)
			}
		})
	}
}
