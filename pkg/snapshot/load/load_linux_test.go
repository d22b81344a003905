// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/load"
)

// TestLoadPipeInDirectory fails without reading what might never end.
func TestLoadPipeInDirectory(t *testing.T) {
	for name, test := range map[string]struct {
		make func(path string) error
		want string
	}{
		"pipe":   {func(path string) error { return syscall.Mkfifo(path, 0o600) }, "expected a file, found a named pipe"},
		"socket": {func(path string) error { _, err := net.Listen("unix", path); return err }, "expected a file, found a socket"},
		"device": {func(path string) error { return os.Symlink("/dev/zero", path) }, "expected a file, found a device"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.yaml")
			if err := test.make(path); err != nil {
				t.Skip(err)
			}
			_, err := load.Load(t.Context(), []string{filepath.Dir(path)}, load.Options{})
			var input *load.InputError
			if !errors.As(err, &input) || input.Path != path || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
