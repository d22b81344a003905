// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands"
)

// kubectl stands for kubectl when examples are run: it calls the program without the
// arguments for an example cluster or a node.
const kubectl = `#!/bin/sh
shift
case "$1 $2" in
"node-probe "*) exec kubectl-dra "$@" $NODE ;;
*) exec kubectl-dra "$@" $ADD ;;
esac
`

// TestHelpExamples runs every example of every help, in a shell, as a user would
// who copies it, on the example cluster.
func TestHelpExamples(t *testing.T) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte(kubectl), 0o755); err != nil {
		t.Fatal(err)
	}
	example, err := filepath.Abs(filepath.Join("..", "examples", "cluster"))
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	_, _, nodeRoot := startDriver(t, filepath.Join("testdata", "nodeprobe", "examples.yaml"))
	onNode := "--node-root " + nodeRoot + " --node-name node-1 --snapshot node.yaml"
	files := map[string]string{
		"train.yaml":  filepath.Join("..", "examples", "manifests", "one-gpu.yaml"),
		"gang.yaml":   filepath.Join("..", "examples", "manifests", "gang.yaml"),
		"rule.yaml":   filepath.Join("testdata", "taintrule.yaml"),
		"class.yaml":  filepath.Join("testdata", "class.yaml"),
		"claim.yaml":  filepath.Join("..", "examples", "manifests", "one-gpu.yaml"),
		"deploy.yaml": filepath.Join("testdata", "deployment.yaml"),
		"driver.yaml": filepath.Join("..", "examples", "drivers", "gpu.yaml"),
		"node.yaml":   filepath.Join("testdata", "nodeprobe", "examples.yaml"),

		"manifests/train.yaml":         filepath.Join("..", "examples", "manifests", "one-gpu.yaml"),
		"manifests/kustomization.yaml": filepath.Join("testdata", "kustomization.yaml"),
	}
	if err := os.Mkdir(filepath.Join(home, "manifests"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, from := range files {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(t *testing.T, line, add, onNode string) (stdout, stderr string, code int) {
		t.Helper()
		program := exec.Command(shell, "--norc", "-o", "pipefail", "-c", line)
		program.Dir = home
		program.Env = append(os.Environ(), "PATH="+strings.Join([]string{bin, builtProgram(t), os.Getenv("PATH")}, string(filepath.ListSeparator)),
			"KUBECONFIG="+filepath.Join(home, "none"), "COLUMNS=100", "ADD="+add, "NODE="+onNode)
		var out, errOut bytes.Buffer
		program.Stdout, program.Stderr = &out, &errOut
		var exit *exec.ExitError
		if err := program.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatalf("run %s: %v", line, err)
		}
		return out.String(), errOut.String(), program.ProcessState.ExitCode()
	}
	story, err := filepath.Abs(filepath.Join("..", "docs", "recording", "story.rec"))
	if err != nil {
		t.Fatal(err)
	}
	reading := "--snapshot " + example + " --snapshot deploy.yaml --snapshot driver.yaml"
	// Some examples read these files.
	for _, line := range []string{
		"kubectl dra snapshot -o cluster.yaml.gz " + reading,
		"kubectl dra snapshot -o new.yaml.gz " + reading,
		"kubectl dra snapshot -o old.yaml.gz " + reading + " --snapshot rule.yaml",
		"kubectl dra snapshot -o yesterday.yaml.gz " + reading + " --snapshot rule.yaml",
		"cp " + story + " cluster.rec",
		"kubectl dra node-probe preview --simulate dgx-h100 --node-name gpu-01 -o yaml > preview.yaml",
	} {
		if _, stderr, code := run(t, line, "", ""); code != 0 {
			t.Fatal(stderr)
		}
	}

	// The example cluster has nothing of what these look for.
	vain := []string{`@.outcome=="NoPlace"`, ".items[?(@.flags)]", ".items[?(@.failing>0)]", ".pods[?(@.evicted)]", "lint train.yaml --diff", "-o github", `answer=="Stale"`}
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	ran := 0
	root := commands.NewRoot(streams, commands.Build{})
	all := append(root.Commands(), root)
	for i := 0; i < len(all); i++ {
		if all[i] != root {
			all = append(all, all[i].Commands()...)
		}
		for _, example := range examplesIn(all[i].Example) {
			ran++
			line := strings.Join(strings.Fields(strings.ReplaceAll(example, "\\\n", " ")), " ")
			t.Run(line, func(t *testing.T) {
				words := strings.Fields(line)
				// These take a cluster, a driver that they stop, or a client.
				if words[2] == "mcp" || strings.Contains(line, "--serve") || words[2] == "record" && !strings.Contains(line, "--snapshot") || strings.Contains(line, "--ask-server") || words[2] == "test" && strings.Contains(line, "--cleanup") || strings.Contains(line, "--restart-command") || strings.Contains(line, "health gpu.nvidia.com --watch") || strings.Contains(line, "--node ") && strings.Contains(line, " > ") {
					understood(t, words[2:])
					return
				}
				onNode := onNode
				switch {
				case strings.Contains(line, "--node "):
					onNode = "--dry-run=client"
				case words[2] == "node-probe" && len(words) > 3 && (words[3] == "preview" || words[3] == "gpus") && !strings.Contains(line, "--simulate"):
					onNode += " --simulate dgx-h100"
				}
				add := reading
				if strings.Contains(line, "--snapshot") || strings.Contains(line, "new.yaml.gz") || words[2] == "diff" && strings.Contains(line, "cluster.rec") || words[2] == "completion" || words[2] == "learn" {
					add = ""
				}
				if strings.Contains(line, "dra taints add ") || strings.Contains(line, "dra taints remove ") || words[2] == "test" {
					add += " --dry-run=client"
				}
				if words[2] == "lint" {
					// There is no cluster to ask.
					add, example = "", strings.Replace(example, "--cluster", reading, 1)
				}
				if words[2] == "report" {
					add += " --force"
				}
				if words[2] == "snapshot" {
					add += " --force"
					if !strings.Contains(line, " -o ") {
						add = reading
					}
				}
				stdout, stderr, code := run(t, example, add, onNode)
				switch {
				case slices.Contains([]string{"why", "fit", "plan", "impact", "migrate", "sharing", "status", "diff", "doctor", "lint", "test", "node-probe", "learn"}, words[2]) && code <= 2:
				case code != 0:
					t.Errorf("exit code %d: %s", code, stderr)
				}
				nothing := slices.ContainsFunc(vain, func(part string) bool { return strings.Contains(line, part) })
				if writes := words[2] == "snapshot" || words[2] == "report" || words[2] == "record" || strings.Contains(line, " > "); !writes && nothing != (stdout == "") {
					t.Errorf("it prints %q, %s", stdout, stderr)
				}
				if strings.Contains(stderr, "error:") || strings.Contains(stderr, "deprecated") {
					t.Error(stderr)
				}
			})
		}
	}
	if ran < 30 {
		t.Errorf("only %d examples were found", ran)
	}
}

// understood tests an example that takes a cluster or a node: its command and flags
// exist. See test/node for what it does there.
func understood(t *testing.T, words []string) {
	t.Helper()
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	cmd, args, err := commands.NewRoot(streams, commands.Build{}).Find(words)
	if err != nil {
		t.Fatal(err)
	}
	for i := range args {
		args[i] = strings.Trim(args[i], "'")
	}
	if err := cmd.ParseFlags(args); err != nil {
		t.Error(err)
	}
}

// examplesIn returns the command lines in the examples of a help as they are printed. A
// line that ends with a backslash goes on in the next one.
func examplesIn(text string) []string {
	var found []string
	goesOn := false
	for line := range strings.Lines(text) {
		switch {
		case goesOn:
			found[len(found)-1] += line
		case strings.HasPrefix(strings.TrimSpace(line), "kubectl dra "):
			found = append(found, line)
		default:
			continue
		}
		goesOn = strings.HasSuffix(line, "\\\n")
	}
	return found
}
