// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package node

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// tree makes files, directories (with a slash at the end) and links
// ("name -> target") below a root.
func tree(t *testing.T, entries ...string) *Host {
	t.Helper()
	root := t.TempDir()
	for _, entry := range entries {
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		name, target, isLink := cutLink(entry)
		path := filepath.Join(root, name)
		must(os.MkdirAll(filepath.Dir(path), 0o755))
		switch {
		case isLink:
			must(os.Symlink(target, path))
		case name[len(name)-1] == '/':
			must(os.MkdirAll(path, 0o755))
		default:
			must(os.WriteFile(path, []byte(name), 0o600))
		}
	}
	return NewHost(root, "", nil)
}

func cutLink(entry string) (name, target string, ok bool) {
	for i := range entry {
		if len(entry) > i+4 && entry[i:i+4] == " -> " {
			return entry[:i], entry[i+4:], true
		}
	}
	return entry, "", false
}

func TestReadFile(t *testing.T) {
	host := tree(t, "run/cdi/spec.json", "var/run -> /run", "etc/escape -> /../../../../etc/hostname", "loop -> loop", "dir/")
	if data, err := host.ReadFile("/var/run/cdi/spec.json", 100); err != nil || string(data) != "run/cdi/spec.json" {
		t.Errorf("through an absolute link: %q, %v", data, err)
	}
	var large *TooLargeError
	if _, err := host.ReadFile("/run/cdi/spec.json", 3); !errors.As(err, &large) || large.Path != "/run/cdi/spec.json" {
		t.Errorf("a file that is too large: %v", err)
	}
	if _, err := host.ReadFile("/etc/escape", 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link out of the root must not lead out: %v", err)
	}
	if _, err := host.ReadFile("/loop", 100); err == nil {
		t.Error("a loop of links is read")
	}
	if _, err := host.ReadFile("/dir", 100); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a directory: %v", err)
	}
	pipe := filepath.Join(host.Root, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := host.ReadFile("/pipe", 100); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a pipe: %v", err)
	}
	if _, err := host.ReadFile("/gone", 100); err == nil || err.Error() != "stat /gone: no such file or directory" {
		t.Errorf("the error names the path of the node: %v", err)
	}
}

// TestReadFileIn covers links in a directory that somebody else than root may write to.
func TestReadFileIn(t *testing.T) {
	host := tree(t, "run/cdi/spec.json", "var/run -> /run", "etc/shadow", "run/cdi/near.json -> spec.json", "run/cdi/absolute.json -> /var/run/cdi/spec.json",
		"run/cdi/out.json -> /etc/shadow", "run/cdi/up.json -> ../../etc/shadow", "run/cdi/sub -> /etc", "run/cdi/gone.json -> /etc/none", "run/cdi/loop.json -> loop.json", "run/cdi/dir/")
	if err := syscall.Mkfifo(filepath.Join(host.Root, "run/cdi/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	const dir = "/var/run/cdi"
	for _, name := range []string{"spec.json", "near.json", "absolute.json"} {
		if data, err := host.ReadFileIn(dir, dir+"/"+name, 100); err != nil || string(data) != "run/cdi/spec.json" {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	for name, want := range map[string]error{
		"out.json": ErrNotRead, "up.json": ErrNotRead, "sub/shadow": ErrNotRead, "gone.json": fs.ErrNotExist, "none.json": fs.ErrNotExist,
		"pipe": ErrNotRegular, "dir": ErrNotRegular, "loop.json": syscall.ELOOP,
	} {
		data, err := host.ReadFileIn(dir, dir+"/"+name, 100)
		if !errors.Is(err, want) || data != nil {
			t.Errorf("%s: %q, %v; want %v", name, data, err, want)
		}
	}
	if _, err := host.ReadFileIn(dir, dir+"/out.json", 100); !strings.Contains(err.Error(), "leads out of /var/run/cdi to /etc/shadow") {
		t.Errorf("the error does not say where it leads: %v", err)
	}
	var large *TooLargeError
	if _, err := host.ReadFileIn(dir, dir+"/near.json", 3); !errors.As(err, &large) {
		t.Errorf("a file that is too large: %v", err)
	}
}

// TestReadDir must not wait for anybody who writes to the pipe.
func TestReadDir(t *testing.T) {
	host := tree(t, "dir/b", "dir/a", "link -> dir", "file", "loop -> loop")
	if err := syscall.Mkfifo(filepath.Join(host.Root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	entries, err := host.ReadDir("/link")
	if err != nil || len(entries) != 2 || entries[0].Name() != "a" {
		t.Errorf("a directory: %v, %v", entries, err)
	}
	for _, path := range []string{"/pipe", "/file"} {
		if _, err := host.ReadDir(path); !errors.Is(err, ErrNotDirectory) || err.Error() != path+" is not a directory" {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := host.ReadDir("/loop"); err == nil || err.Error() != "resolve /loop: too many levels of symbolic links" {
		t.Errorf("a loop of links: %v", err)
	}
	if _, err := host.ReadDir("/gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}

func TestLeaves(t *testing.T) {
	host := tree(t, "var/lib/kubelet/plugins/gpu/dra.sock", "var/lib/kubelet/plugins/out -> /tmp/evil", "tmp/evil", "var/lib/kubelet/plugins/in -> gpu")
	for path, want := range map[string]bool{"/var/lib/kubelet/plugins/gpu/dra.sock": false, "/var/lib/kubelet/plugins/in/dra.sock": false, "/var/lib/kubelet/plugins/out": true} {
		target, leaves, err := host.Leaves(path, "/var/lib/kubelet")
		if err != nil || leaves != want {
			t.Errorf("%s: leaves %t to %s, %v", path, leaves, target, err)
		}
		if leaves && target != "/tmp/evil" {
			t.Errorf("%s leads to %s", path, target)
		}
	}
}

func TestWorst(t *testing.T) {
	for _, test := range []struct {
		states []State
		want   State
	}{{nil, OK}, {[]State{OK, OK}, OK}, {[]State{OK, Unknown}, Unknown}, {[]State{Unknown, Problem, OK}, Problem}} {
		var checks []Check
		for _, state := range test.states {
			checks = append(checks, Check{State: state})
		}
		if got := Worst(checks); got != test.want {
			t.Errorf("%v: %s, want %s", test.states, got, test.want)
		}
	}
}

// TestFailed checks that an error is only a problem if something is known to be broken.
func TestFailed(t *testing.T) {
	host := tree(t, "etc/large", "var/lib/kubelet/plugins/out.sock -> /tmp/x.sock", "var/lib/kubelet/plugins/file.sock", "loop -> loop", "dir/")
	dial := func(path string) error {
		conn, err := host.Dial(t.Context(), path, DefaultKubelet, 1)
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	read := func(path string) error {
		_, err := host.ReadFile(path, 3)
		return err
	}
	for name, test := range map[string]struct {
		err  error
		want State
		text string
	}{
		"no such file":         {read("/etc/gone"), Unknown, "no such file"},
		"no rights":            {fs.ErrPermission, Unknown, "no permission"},
		"too large":            {read("/etc/large"), Unknown, "was not read"},
		"interrupted":          {context.Canceled, Unknown, "canceled"},
		"no file":              {read("/dir"), Problem, "not a regular file"},
		"a loop of links":      {read("/loop"), Problem, "too many"},
		"no such socket":       {dial("/var/lib/kubelet/plugins/gone.sock"), Unknown, "there is no such socket"},
		"a socket elsewhere":   {dial("/var/lib/kubelet/plugins/out.sock"), Unknown, "was not followed"},
		"a file for a socket":  {dial("/var/lib/kubelet/plugins/file.sock"), Problem, "is no socket"},
		"whatever else it may": {errors.New("input/output error"), Problem, "input/output error"},
	} {
		t.Run(name, func(t *testing.T) {
			if check := Failed("x", "/p", test.err); check.State != test.want || !strings.Contains(check.Message, test.text) {
				t.Errorf("%+v, want %s with %q", check, test.want, test.text)
			}
		})
	}
}
