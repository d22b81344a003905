// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// buildTools builds the pinned tools into a directory.
func buildTools(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, filepath.Join(root, "tools", "release"), nil, "go", "build", "-o", dir+string(filepath.Separator),
		"github.com/goreleaser/goreleaser/v2", "sigs.k8s.io/krew/cmd/krew", "sigs.k8s.io/krew/cmd/validate-krew-manifest")
	return dir
}

// compilers finds out for which processors a program with NVML can be built. The
// environment has a snapshot leave out the others.
func compilers(t *testing.T) (env, nvml []string) {
	t.Helper()
	for arch, prefix := range map[string]string{"amd64": "x86_64", "arm64": "aarch64"} {
		compiler := prefix + "-linux-gnu-gcc"
		if arch == runtime.GOARCH {
			compiler = "gcc"
		}
		if _, err := exec.LookPath(compiler); err != nil || runtime.GOOS != "linux" {
			t.Logf("NOT BUILT: the archive with NVML for %s, which takes Linux and %s", arch, compiler)
			env = append(env, "SKIP_NVML_"+strings.ToUpper(arch)+"=true")
			continue
		}
		nvml = append(nvml, arch)
	}
	return env, nvml
}

// outcome is how a program ended, and what it printed.
type outcome struct {
	command        string
	stdout, stderr string
	code           int
}

func (o outcome) String() string {
	return fmt.Sprintf("%s: exit code %d\n%s%s", o.command, o.code, o.stdout, o.stderr)
}

// run runs a program to its end. The variables in env come on top of those that
// there are, less what would change the build.
func run(t *testing.T, dir string, env []string, args ...string) outcome {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"GOFLAGS", "GOOS", "GOARCH", "CGO_ENABLED", "KUBECONFIG"}, name)
	}), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %s: %v", args[0], err)
	}
	return outcome{command: strings.Join(args, " "), stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
}

// must runs a program that has to succeed, and returns its standard output.
func must(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	o := run(t, dir, env, args...)
	if o.code != 0 {
		t.Fatal(o)
	}
	return o.stdout
}
