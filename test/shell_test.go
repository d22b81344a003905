// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
)

// shellTime is how long a shell has to start and to answer.
const shellTime = 5 * time.Minute

// TestShells lets shells complete what a user types, both for "kubectl dra",
// with the scripts of a real kubectl, and for "kubectl-dra", with our own.
func TestShells(t *testing.T) {
	if testing.Short() {
		t.Skip("needs kubectl")
	}
	binaries, err := controlplane.Binaries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(filepath.Join(binaries, "kubectl"), filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	// The last word is being typed.
	tests := map[string]struct {
		words, want []string
	}{
		"verb":             {[]string{"cl"}, []string{"claims", "classes"}},
		"target":           {[]string{"why", "--snapshot", "examples/cluster", "-n", "research", "p"}, []string{"pod/", "podgroup/", "pretrain-0-gpus-2z82j"}},
		"name after type":  {[]string{"why", "--snapshot", "examples/cluster", "-n", "research", "pod/p"}, []string{"pod/pretrain-0"}},
		"value of a flag":  {[]string{"devices", "--snapshot", "examples/cluster", "--pool", "mig-"}, []string{"mig-01", "mig-02"}},
		"nothing typed":    {[]string{"devices", "--snapshot", "examples/cluster", "--driver", ""}, []string{"fabric.example.com", "gpu.example.com", "nic.example.com"}},
		"attributes":       {[]string{"attributes", "--snapshot", "examples/cluster", "gpu.example.com/p"}, []string{"gpu.example.com/parentUUID", "gpu.example.com/productName", "gpu.example.com/profile"}},
		"parts of a name":  {[]string{"tree", "--snapshot", "examples/cluster", "device/fabric"}, []string{"device/fabric.example.com/"}},
		"name of a flag":   {[]string{"claims", "--pend"}, []string{"--pending"}},
		"no such snapshot": {[]string{"claims", "--snapshot", "nowhere", "x"}, nil},
	}
	shells := map[string][]string{
		"bash": {"bash", "--norc"},
		"zsh":  {"zsh", "-f"},
		"fish": {"fish", "--no-config"},
	}
	for shell, command := range shells {
		for caller, prefix := range map[string][]string{"kubectl dra": {"kubectl", "dra"}, "kubectl-dra": {"kubectl-dra"}} {
			for name, test := range tests {
				if caller == "kubectl-dra" && name != "verb" && name != "value of a flag" {
					continue // the same answers as for kubectl
				}
				t.Run(shell+"/"+caller+"/"+name, func(t *testing.T) {
					skipWithout(t, shell)
					script, err := filepath.Abs(filepath.Join("testdata", "completion", "complete."+shell))
					if err != nil {
						t.Fatal(err)
					}
					args := slices.Concat(command[1:], []string{script}, prefix, test.words)
					ctx, cancel := context.WithTimeout(t.Context(), shellTime)
					defer cancel()
					program := exec.CommandContext(ctx, command[0], args...)
					program.Dir = ".."
					home := t.TempDir()
					program.Env = append(os.Environ(),
						"PATH="+strings.Join([]string{bin, builtProgram(t), os.Getenv("PATH")}, string(filepath.ListSeparator)),
						"HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home,
						"KUBECONFIG="+filepath.Join(home, "none"), "TERM=dumb")
					out, err := program.Output()
					if err != nil {
						t.Fatalf("%s: %v", program, err)
					}
					if diff := cmp.Diff(test.want, offered(string(out))); diff != "" {
						t.Errorf("-want +got:\n%s", diff)
					}
				})
			}
		}
	}
}

// skipWithout skips a test unless a shell is there, and what it needs.
func skipWithout(t *testing.T, shell string) {
	t.Helper()
	if _, err := exec.LookPath(shell); err != nil {
		t.Skipf("%s is not installed", shell)
	}
	if shell != "bash" {
		return
	}
	// The script of kubectl uses its functions.
	if err := exec.Command("bash", "--norc", "-c", ". /usr/share/bash-completion/bash_completion || . /opt/homebrew/etc/profile.d/bash_completion.sh").Run(); err != nil {
		t.Skip("bash-completion is not installed")
	}
}

// offered reads one word a line, without what a shell adds to describe it.
func offered(out string) []string {
	var words []string
	for line := range strings.Lines(out) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); word != "" {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}
