// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/internal/controlplane"
)

// TestShellsRunNothingForeign types command lines into shells on a terminal, and
// lets them complete names that are commands: of files, and in a kubeconfig and a
// snapshot. Two names with the same beginning make a shell insert the beginning;
// the next completion then reads the line again. At the end the line is run.
func TestShellsRunNothingForeign(t *testing.T) {
	if testing.Short() {
		t.Skip("needs kubectl")
	}
	binaries, err := controlplane.Binaries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const setUp = "%[1]s completion %[2]s"
	for shell, start := range map[string]struct{ file, config, command string }{
		"bash": {"rc", "for file in /usr/share/bash-completion/bash_completion /opt/homebrew/etc/profile.d/bash_completion.sh; do [ -r $file ] && . $file; done\n. <(" + setUp + ")\nPS1=\n", "bash --rcfile rc -i"},
		"zsh":  {".zshrc", "autoload -Uz compinit; compinit -u -D\nsource <(" + setUp + ")\nPS1=\n", "zsh -i"},
		"fish": {"rc", setUp + " | source\nfunction fish_prompt; end\n", "fish --no-config -i -C source\\ rc"},
	} {
		for _, caller := range []string{"kubectl dra", "kubectl-dra"} {
			t.Run(shell+"/"+caller, func(t *testing.T) {
				skipWithout(t, shell)
				dir := t.TempDir()
				called, _, _ := strings.Cut(caller, " ")
				files := map[string]string{start.file: fmt.Sprintf(start.config, called, shell), "kubeconfig": ""}
				for _, name := range hostileFileNames(shell, caller) {
					files[name] = ""
				}
				var lines []string
				for i, beginning := range foreign() {
					files[fmt.Sprint("kubeconfig-", i)], files[fmt.Sprint("slice-", i)] = hostileKubeconfig(beginning), hostileSlice(beginning)
					lines = append(lines, fmt.Sprintf("claims --kubeconfig kubeconfig-%d --context x", i))
				}
				lines = append(lines, "claims --kubeconfig kubeconfig-0 --cluster x", "claims --kubeconfig kubeconfig-1 --user x",
					"devices --snapshot slice-0 --columns x", "devices --snapshot slice-1 --columns x")
				for i := range hostileFileNames(shell, caller) {
					lines = append(lines, fmt.Sprintf("claims --snapshot h%d", i))
				}
				for name, content := range files {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				term := openTerminal(t, &program{
					path: "sh", dir: dir, env: []string{
						"PATH=" + strings.Join([]string{binaries, builtProgram(t), os.Getenv("PATH")}, string(filepath.ListSeparator)),
						"HOME=" + dir, "HISTFILE=/dev/null", "ZDOTDIR=" + dir, "XDG_CONFIG_HOME=" + dir, "XDG_DATA_HOME=" + dir, "KUBECONFIG=" + filepath.Join(dir, "kubeconfig"),
					},
				}, 150, 50, "-c", start.command)
				term.types("echo rea''dy\n")
				term.shows("ready")
				for i, line := range lines {
					term.types(caller + " " + line)
					term.keys("Tab", "Tab", "Tab")
					term.types(" --no-he")
					term.keys("Tab", "Enter")
					term.types(fmt.Sprintf("echo do''ne%d\n", i))
					screen := term.shows(fmt.Sprintf("done%d", i))
					if made, err := filepath.Glob(filepath.Join(dir, "pwned*")); err != nil || made != nil {
						t.Fatalf("%q ran %q, %v:\n%s", line, made, err, screen)
					}
					if strings.Contains(screen, "syntax error") || strings.Contains(screen, "in command substitution") {
						t.Errorf("%q spoils the line:\n%s", line, screen)
					}
				}
			})
		}
	}
}

// hostileFileNames returns names of files. The i-th one is the only one that begins with h
// and i.
func hostileFileNames(shell, caller string) []string {
	if shell == "fish" && caller != "kubectl-dra" {
		// The script of kubectl runs each word once more, also of its own commands.
		return nil
	}
	return []string{"h0$(touch${IFS}pwned)", "h1`touch pwned`", "h2;touch pwned;", "h3';touch pwned;'", `h4";touch pwned;"`, "h5 (touch pwned)", "h6&touch pwned&", "h7\ntouch pwned\n"}
}

// foreign returns beginnings of names. In a shell each is or has a command, which makes a
// file.
func foreign() []string {
	return []string{"$(touch${IFS}pwned)", "`touch${IFS}pwned`", "(touch pwned)", ";touch pwned;", "';touch pwned;'", `";touch pwned;"`, "\ntouch pwned\n", "\ttouch pwned\t", "|touch pwned|", "<(touch pwned)"}
}

// hostileKubeconfig returns each name twice, with different ends.
func hostileKubeconfig(beginning string) string {
	var contexts, clusters, users []string
	for i := range 2 {
		name := strconv.Quote(fmt.Sprintf("x%s%d", beginning, i))
		contexts = append(contexts, `{name: `+name+`, context: {cluster: x, user: x}}`)
		clusters = append(clusters, `{name: `+name+`, cluster: {server: "https://127.0.0.1:1"}}`)
		users = append(users, `{name: `+name+`, user: {token: x}}`)
	}
	return "apiVersion: v1\nkind: Config\ncontexts: [" + strings.Join(contexts, ", ") + "]\nclusters: [" + strings.Join(clusters, ", ") + "]\nusers: [" + strings.Join(users, ", ") + "]\n"
}

// hostileSlice returns a device with two attributes.
func hostileSlice(beginning string) string {
	return fmt.Sprintf(`apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: slice}
spec:
  driver: gpu.example.com
  nodeName: node
  pool: {name: node, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0, attributes: {%q: {string: a}, %q: {string: b}}}]
`, "x"+beginning+"0", "x"+beginning+"1")
}
