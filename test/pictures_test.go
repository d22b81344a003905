// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/kubectl-dra/kubectl-dra/internal/picture"
)

// TestPictures draws what the program shows in a real terminal and compares it
// with the pictures of the documents. With -update (make pictures) they are
// written again.
func TestPictures(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	pictures := map[string]struct {
		args          string
		width, height int
		// theme is a theme of the dashboard.
		theme string
		// shows is on the screen when all is there, and what follows "" is not.
		shows []string
	}{
		"why.svg": {"why pod/pretrain-0 -n research --snapshot examples/cluster", 100, 80, "", []string{"ended with 1"}},
		"top.svg": {"top --snapshot examples/cluster", 100, 36, "", []string{
			"Causes 13", "Waiting 10", "fits on gpu-03", "9 causes:13", "q quit",
		}},
		"top-light.svg": {"top --snapshot examples/cluster", 100, 36, "light", []string{
			"Causes 13", "Waiting 10", "fits on gpu-03", "9 causes:13", "q quit",
		}},
	}
	for name, test := range pictures {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			if test.theme != "" {
				config := filepath.Join(home, "kubectl-dra", "config.yaml")
				if err := errors.Join(os.Mkdir(filepath.Dir(config), 0o700), os.WriteFile(config, []byte("theme: "+test.theme), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			p := &program{
				path: filepath.Join(builtProgram(t), "kubectl-dra"),
				env:  []string{"KUBECONFIG=" + filepath.Join(root, "no-kubeconfig"), "HOME=" + home, "XDG_CONFIG_HOME=" + home},
				dir:  root,
			}
			term := openTerminal(t, p, test.width, test.height, strings.Fields(test.args)...)
			term.shows(test.shows...)
			screen, _, _ := strings.Cut(term.tmux("capture-pane", "-e", "-p"), "ended with")
			got := picture.SVG("kubectl dra "+test.args, screen, test.theme == "light")
			path := filepath.Join(root, "docs", "pictures", name)
			if golden.FlagUpdate() {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s no longer shows what the program prints (run: make pictures):\n%s", path, term.screen())
			}
		})
	}
}
