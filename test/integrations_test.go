// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
)

// kubectlOnExample is a kubectl that knows the plugin alone, and asks it about the example cluster
// in place of a context.
const kubectlOnExample = `#!/bin/bash
shift
args=()
for arg in "${@:2}"; do [[ $arg == --context=* ]] || args+=("$arg"); done
[[ $1 == lint || $1 == diff || "$*" == *--client* ]] || args=("--snapshot=$EXAMPLE" "${args[@]}")
exec kubectl-dra "$1" "${args[@]}"
`

// integrations runs the commands that files in integrations name.
type integrations struct {
	dir string
	env []string
}

func newIntegrations(t *testing.T) *integrations {
	t.Helper()
	example, err := filepath.Abs(filepath.Join("..", "examples", "cluster"))
	noError(t, err)
	bin, dir := t.TempDir(), t.TempDir()
	for name, script := range map[string]string{"kubectl": kubectlOnExample, "less": "#!/bin/sh\ncat\n", "tput": "#!/bin/sh\necho 100\n"} {
		noError(t, os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755))
	}
	path := strings.Join([]string{bin, builtProgram(t), os.Getenv("PATH")}, string(filepath.ListSeparator))
	for from, to := range map[string]string{filepath.Join("..", "examples", "manifests", "one-gpu.yaml"): "train.yaml", filepath.Join("..", "docs", "diff", "before.yaml"): "old.yaml", filepath.Join("..", "examples", "drivers", "gpu.yaml"): "driver.yaml"} {
		text, err := os.ReadFile(from)
		noError(t, err)
		noError(t, os.WriteFile(filepath.Join(dir, to), text, 0o600))
	}
	return &integrations{dir: dir, env: append(os.Environ(), "PATH="+path, "EXAMPLE="+example, "KUBECONFIG="+filepath.Join(dir, "none"), "COLUMNS=100")}
}

// run runs a command, which must print something, and make no file.
func (i *integrations) run(t *testing.T, words ...string) (string, int) {
	t.Helper()
	before, err := os.ReadDir(i.dir)
	noError(t, err)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Env = i.dir, i.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run()
	if after, err := os.ReadDir(i.dir); err != nil || len(after) != len(before) {
		t.Fatalf("%q made a file: %v, %v", words, after, err)
	}
	if out.Len() == 0 {
		t.Errorf("%q prints nothing", words)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// decodeStrictly reads YAML, where each field must be known.
func decodeStrictly(t *testing.T, path string, into any) {
	t.Helper()
	file, err := os.Open(path)
	noError(t, err)
	defer func() { _ = file.Close() }()
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// isError reports whether a line of the output is an error.
func isError(out string) bool {
	return strings.HasPrefix(out, "error:") || strings.Contains(out, "\nerror:")
}

// TestSkill reads the head of the skill, and runs each command in it.
func TestSkill(t *testing.T) {
	i := newIntegrations(t)
	text, err := os.ReadFile(filepath.Join("..", "integrations", "skill", "SKILL.md"))
	noError(t, err)
	parts := strings.SplitN(string(text), "---\n", 3)
	if len(parts) != 3 || parts[0] != "" {
		t.Fatal("the skill has no head")
	}
	var head struct{ Name, Description string }
	decoder := yaml.NewDecoder(strings.NewReader(parts[1]))
	decoder.KnownFields(true)
	noError(t, decoder.Decode(&head))
	// Clients have these limits.
	if !regexp.MustCompile(`^[a-z0-9-]{1,64}$`).MatchString(head.Name) || head.Description == "" || len(head.Description) > 1024 {
		t.Errorf("the name is %q, the description has %d bytes", head.Name, len(head.Description))
	}
	ran := 0
	for _, match := range regexp.MustCompile("\\| `(kubectl dra [^`]+)` \\|").FindAllStringSubmatch(parts[2], -1) {
		ran++
		line := strings.NewReplacer("pod/NAME -n NAMESPACE", "pod/pretrain-0 -n research", "deployment/NAME -n NAMESPACE", "statefulset/embed -n serving", "NAMESPACE/DAEMONSET", "gpu-driver/gpu-plugin --snapshot driver.yaml", "NAMESPACE", "research",
			"NODE", "gpu-02", "lint FILE", "lint train.yaml", "-f FILE", "-f train.yaml", "EXPRESSION", "device.driver == \"gpu.example.com\"", "OLD_SNAPSHOT", "old.yaml old.yaml").Replace(match[1])
		if out, code := i.run(t, "bash", "-c", line); code > 2 || isError(out) || regexp.MustCompile(`[A-Z]{4,}`).MatchString(line) {
			t.Errorf("%s: exit code %d\n%s", line, code, out)
		}
	}
	if ran < 14 {
		t.Errorf("only %d commands were found", ran)
	}
}

// holmesTool is a tool of HolmesGPT.
type holmesTool struct{ Name, Description, Command string }

// TestHolmesToolset runs the command of each tool as HolmesGPT does, which quotes the values of
// parameters and gives the command to a shell.
func TestHolmesToolset(t *testing.T) {
	i := newIntegrations(t)
	var file struct {
		Toolsets map[string]struct {
			Description     string
			DocsURL         string `yaml:"docs_url"`
			LLMInstructions string `yaml:"llm_instructions"`
			Tags            []string
			Prerequisites   []struct{ Command string }
			Tools           []holmesTool
		}
	}
	decodeStrictly(t, filepath.Join("..", "integrations", "holmesgpt", "toolset.yaml"), &file)
	values := map[string]string{"namespace": "research", "pod_name": "pretrain-0", "claim_name": "eval-0-gpu-6k8jp", "node_name": "gpu-02", "workload": "pod/pretrain-0"}
	render := func(t *testing.T, command string, values func(name string) string) string {
		t.Helper()
		return regexp.MustCompile(`\{\{ (\w+) \}\}`).ReplaceAllStringFunc(command, func(found string) string {
			return shell.Quote(values(strings.Trim(found, "{} ")))
		})
	}
	tools := 0
	for name, set := range file.Toolsets {
		if set.Description == "" || set.LLMInstructions == "" || !slices.Equal(set.Tags, []string{"core"}) {
			t.Errorf("%s: %+v", name, set)
		}
		for _, needs := range set.Prerequisites {
			if out, code := i.run(t, "sh", "-c", needs.Command); code != 0 {
				t.Errorf("%s: exit code %d\n%s", needs.Command, code, out)
			}
		}
		for _, tool := range set.Tools {
			tools++
			command := render(t, tool.Command, func(name string) string {
				if values[name] == "" {
					t.Errorf("%s: unknown parameter %s", tool.Name, name)
				}
				return values[name]
			})
			if out, code := i.run(t, "sh", "-c", command); code != 0 || isError(out) || tool.Description == "" {
				t.Errorf("%s: exit code %d of %s\n%s", tool.Name, code, command, out)
			}
			if !strings.Contains(tool.Command, "{{") {
				continue
			}
			for _, evil := range []string{"x; touch pwned", "$(touch pwned)", "' touch pwned '", "--output=json", "-f", "--filename=train.yaml"} {
				command := render(t, tool.Command, func(string) string { return evil })
				if out, code := i.run(t, "sh", "-c", command); code == 0 {
					t.Errorf("%s succeeds:\n%s", command, out)
				}
			}
		}
	}
	if tools < 10 {
		t.Errorf("only %d tools were found", tools)
	}
}

// TestK9sPlugins runs the command of each plugin as k9s does, which replaces variables in each
// argument.
func TestK9sPlugins(t *testing.T) {
	i := newIntegrations(t)
	var file struct {
		Plugins map[string]struct {
			ShortCut    string `yaml:"shortCut"`
			Description string
			Scopes      []string
			Command     string
			Background  bool
			Args        []string
		}
	}
	decodeStrictly(t, filepath.Join("..", "integrations", "k9s", "plugins.yaml"), &file)
	selected := map[string]map[string]string{
		"pods":           {"NAME": "pretrain-0", "NAMESPACE": "research"},
		"resourceclaims": {"NAME": "eval-0-gpu-6k8jp", "NAMESPACE": "research"},
		"nodes":          {"NAME": "gpu-02"},
		"statefulsets":   {"NAME": "embed", "NAMESPACE": "serving"},
		"all":            {},
	}
	variables := regexp.MustCompile(`\$[\w-]+`)
	keys := map[string]string{}
	ran := 0
	for name, plugin := range file.Plugins {
		for _, scope := range plugin.Scopes {
			if other := keys[scope+plugin.ShortCut]; other != "" {
				t.Errorf("%s and %s have the same key in %s", name, other, scope)
			}
			keys[scope+plugin.ShortCut] = name
			row, ok := selected[scope]
			if !ok {
				continue
			}
			ran++
			for _, context := range []string{"kind", "$(touch pwned)", "x'; touch pwned; '"} {
				args := make([]string, 0, len(plugin.Args))
				for _, arg := range plugin.Args {
					args = append(args, variables.ReplaceAllStringFunc(arg, func(found string) string {
						switch found {
						case "$CONTEXT":
							return context
						case "$RESOURCE_NAME":
							return scope
						}
						value := row[found[1:]]
						if value == "" {
							t.Errorf("%s: there is no %s in %s", name, found, scope)
						}
						return value
					}))
				}
				if !slices.Contains(args, "--context="+context) {
					t.Errorf("%s does not name the context: %q", name, args)
				}
				out, _ := i.run(t, append([]string{plugin.Command}, args...)...)
				if isError(out) || !strings.Contains(out, "\x1b[") || plugin.Background || plugin.Description == "" {
					t.Errorf("%s in %s: %q\n%s", name, scope, args, out)
				}
			}
		}
	}
	if ran < 6 {
		t.Errorf("only %d plugins ran", ran)
	}
}
