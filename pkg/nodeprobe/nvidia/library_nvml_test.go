// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && cgo && nvml

package nvidia

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

// rootVariable is the root of the node that [TestLibraryHere] looks at.
const rootVariable = "KUBECTL_DRA_TEST_NVML_ROOT"

// compileNVML makes the library of testdata/nvml with something wrong, at a path of a
// node with one GPU.
func compileNVML(t *testing.T, path string, wrong ...string) *node.Host {
	t.Helper()
	header, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		t.Fatalf("find nvml.h: %v", err)
	}
	compiler, err := exec.CommandContext(t.Context(), "go", "env", "CC").Output()
	if err != nil {
		t.Fatalf("find the C compiler: %v", err)
	}
	host := node.NewHost(t.TempDir(), "", nil)
	device := filepath.Join(host.Root, "sys/bus/pci/devices/0000:3b:00.0")
	for _, dir := range []string{device, filepath.Join(host.Root, "sys/bus/pci/drivers/nvidia"), filepath.Dir(filepath.Join(host.Root, path))} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{"vendor": "0x10de\n", "class": "0x030200\n", "device": "0x2330\n"} {
		if err := os.WriteFile(filepath.Join(device, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/sys/bus/pci/drivers/nvidia", filepath.Join(device, "driver")); err != nil {
		t.Fatal(err)
	}
	args := []string{"-shared", "-fPIC", "-Wall", "-Werror", "-I", filepath.Join(strings.TrimSpace(string(header)), "pkg/nvml"), "-o", filepath.Join(host.Root, path)}
	for _, what := range wrong {
		args = append(args, "-D"+what)
	}
	args = append(args, filepath.Join("testdata", "nvml", "nvml.c"))
	if out, err := exec.CommandContext(t.Context(), strings.TrimSpace(string(compiler)), args...).CombinedOutput(); err != nil {
		t.Fatalf("compile the library: %v\n%s", err, out)
	}
	return host
}

// lookApart looks at a node in a process of its own: a process binds each function of
// NVML once, and a library may end it.
func lookApart(t *testing.T, host *node.Host) *Findings {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestLibraryHere$", "-test.v")
	cmd.Env = append(os.Environ(), rootVariable+"="+host.Root)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("look at the node: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if text, ok := strings.CutPrefix(line, "findings: "); ok {
			f := &Findings{}
			if err := json.Unmarshal([]byte(text), f); err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
	t.Fatalf("no findings: %s", out)
	return nil
}

// libraryPath is the path of the library in the tests.
const libraryPath = "/opt/libnvidia-ml.so.1"

// TestLibraryHere runs as the process of [lookApart].
func TestLibraryHere(t *testing.T) {
	root := os.Getenv(rootVariable)
	if root == "" {
		t.Skip("other tests run it")
	}
	f, err := Look(t.Context(), node.NewHost(root, "", nil), Options{Library: libraryPath})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = os.Stdout.WriteString("findings: " + string(text) + "\n")
}

// TestTextsOutliveTheLibrary covers libraries whose texts are invalid after the shutdown.
func TestTextsOutliveTheLibrary(t *testing.T) {
	for _, how := range []string{"FREE", "UNMAP"} {
		t.Run(how, func(t *testing.T) {
			f := lookApart(t, compileNVML(t, libraryPath, how, "LOST"))
			if len(f.GPUs) != 1 {
				t.Fatalf("%d GPUs: %+v", len(f.GPUs), f.Checks)
			}
			for value, want := range map[string]string{"memoryBytes": "GPU is lost", "pciBusID": "GPU is lost", "ecc": "GPU is lost"} {
				if m := reasonFor(t, f.GPUs[0].Missing, value); m.Reason != want {
					t.Errorf("%s: %q, want %q", value, m.Reason, want)
				}
			}
		})
	}
}

// TestGPUThatHardlyAnswers covers a GPU with a UUID and nothing else that the driver needs.
func TestGPUThatHardlyAnswers(t *testing.T) {
	for how, want := range map[string]struct {
		state node.State
		text  string
	}{
		"LOST":   {node.Problem, "GPU 0: NVML does not tell ecc, memoryBytes, pciBusID: GPU is lost"},
		"DENIED": {node.Unknown, "GPU 0: NVML does not tell ecc, memoryBytes, pciBusID: Insufficient Permissions"},
	} {
		t.Run(how, func(t *testing.T) {
			f := lookApart(t, compileNVML(t, libraryPath, how))
			if f.GPUs[0].UUID == "" {
				t.Fatalf("it has no UUID: %+v", f.GPUs[0])
			}
			if c := checkOf(f, "gpus/0/nvml"); c == nil || c.State != want.state || c.Message != want.text {
				t.Errorf("got %+v, want %s %q", f.Checks, want.state, want.text)
			}
			if c := checkOf(f, "gpus/0"); c != nil {
				t.Errorf("nothing is wrong with it: %+v", c)
			}
			// The bus has a GPU that may be this one.
			if c := checkOf(f, "gpus/pci"); c == nil || c.State != node.Unknown {
				t.Errorf("the GPU on the bus: %+v", c)
			}
		})
	}
}

func TestNVLinks(t *testing.T) {
	f := lookApart(t, compileNVML(t, libraryPath, "BRIDGED"))
	links := f.GPUs[0].NVLinks
	if len(links) != 12 {
		t.Fatalf("%d links, want 12", len(links))
	}
	if links[0].Remote != "0000:5e:00.0" || len(links[0].Missing) != 0 {
		t.Errorf("the first link: %+v", links[0])
	}
	if links[1].Remote != "" || missing(links[1].Missing, "remote") == nil {
		t.Errorf("a link whose other end is not known: %+v", links[1])
	}
	if c := checkOf(f, "gpus/0/nvlink"); c != nil {
		t.Errorf("all links are up: %+v", c)
	}
}

// TestIncompleteLibrary lacks a function that would end the process.
func TestIncompleteLibrary(t *testing.T) {
	for wrong, symbol := range map[string]string{"NO_ERROR_STRING": "nvmlErrorString", "NO_SHUTDOWN": "nvmlShutdown"} {
		f := lookApart(t, compileNVML(t, libraryPath, wrong))
		if c := checkOf(f, "gpus/nvml"); c == nil || c.State != node.Problem || !strings.Contains(c.Message, symbol) {
			t.Errorf("%s: %+v", wrong, f.Checks)
		}
	}
}
