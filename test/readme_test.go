// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
)

// TestDocuments runs each "$ kubectl dra …" in the console blocks of the
// documents, at the root of the repository, and compares what it prints with
// what stands below it. With -update the documents are written again.
func TestDocuments(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	documents = append(documents, filepath.Join(root, "README.md"), filepath.Join(root, "examples", "README.md"))

	bin := filepath.Join(builtProgram(t), "kubectl-dra")
	answer := func(t *testing.T, args []string) string {
		t.Helper()
		program := exec.Command(bin, args...)
		program.Dir = root
		program.Env = append(os.Environ(),
			"COLUMNS=100", "NO_COLOR=1", "KUBECONFIG="+filepath.Join(root, "no-kubeconfig"))
		out, err := program.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatalf("run kubectl dra %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}

	answered := 0
	for _, path := range documents {
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			have, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want := replay(string(have), func(args []string) string {
				answered++
				return answer(t, args)
			})
			if want == string(have) {
				return
			}
			if !golden.FlagUpdate() {
				t.Errorf("the program says something else (run: go test ./test -run TestDocuments -update), -document +program:\n%s",
					cmp.Diff(string(have), want))
				return
			}
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
	if answered == 0 {
		t.Error("no document has a console block with a command of the program")
	}
}

// replay returns the document with what answer gives for each command. In a
// console block, a command goes from "$ kubectl dra" to the end of its line,
// and what it prints to the next "$ " or the end of the block. Words of a
// command are separated by blanks, but for those in single quotes.
func replay(document string, answer func(args []string) string) string {
	var out strings.Builder
	inBlock, skipping := false, false
	for line := range strings.Lines(document) {
		text := strings.TrimRight(line, "\n")
		switch {
		case !inBlock:
			inBlock = text == "```console"
		case text == "```":
			inBlock, skipping = false, false
		case strings.HasPrefix(text, "$ kubectl dra "):
			skipping = true
			out.WriteString(line)
			printed := answer(words(strings.TrimPrefix(text, "$ kubectl dra ")))
			out.WriteString(printed)
			if printed != "" && !strings.HasSuffix(printed, "\n") {
				out.WriteString("\n")
			}
			continue
		case strings.HasPrefix(text, "$ "):
			skipping = false
		}
		if !skipping {
			out.WriteString(line)
		}
	}
	return out.String()
}

// words splits a command into words, as a shell does.
func words(command string) []string {
	var list []string
	for i, part := range strings.Split(command, "'") {
		if i%2 == 1 {
			list = append(list, part)
		} else {
			list = append(list, strings.Fields(part)...)
		}
	}
	return list
}

// TestVerbTable wants every verb in the table of questions in docs/README.md.
func TestVerbTable(t *testing.T) {
	path := filepath.Join("..", "docs", "README.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	commandsIn := regexp.MustCompile("`(?:kubectl dra )?([a-z-]+)[^`]*`")
	var have []string
	for line := range strings.Lines(string(text)) {
		// The second column has the commands.
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| ") && len(cells) > 2 {
			for _, command := range commandsIn.FindAllStringSubmatch(cells[1], -1) {
				have = append(have, command[1])
			}
		}
	}
	root := commands.NewRoot(genericiooptions.NewTestIOStreamsDiscard(), commands.Build{})
	var verbs []string
	for _, verb := range root.Commands() {
		if verb.IsAvailableCommand() && verb.Name() != "help" {
			verbs = append(verbs, verb.Name())
		}
	}
	for _, verb := range verbs {
		if !slices.Contains(have, verb) {
			t.Errorf("%s does not say what %s answers", path, verb)
		}
	}
	for _, command := range have {
		if !slices.Contains(verbs, command) {
			t.Errorf("%s has %s, which is no verb", path, command)
		}
	}
}
