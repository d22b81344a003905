// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// verbsThatPrint returns each verb that prints something, on a file.
func verbsThatPrint(file string) [][]string {
	var all [][]string
	for _, words := range []string{
		"slices", "pools", "devices", "claims", "classes", "attributes", "taints", "tree -A", "tree node/gpu-02", "why -A", "why pod/pretrain-0 -n research",
		"slices -o json", "pools -o yaml", "devices -o name", "devices -o wide", "claims -o jsonpath={.items}", "tree -A -o json", "tree -A -o name",
		"why -A -o json", "why pod/pretrain-0 -n research -o json", "snapshot", "snapshot --format json",
		"taints add --pool gpu-04 example.com/x:NoExecute --dry-run=client", "taints remove decoder-firmware --dry-run=client",
		"taints preview -f testdata/taintrule.yaml",
	} {
		all = append(all, append(strings.Fields(words), "--snapshot", file))
	}
	return append(all, []string{"version"}, []string{"version", "-o", "json"}, []string{"completion", "bash"})
}

// runInto runs the program with a file as standard output.
func runInto(t *testing.T, bin string, out *os.File, args []string) (stderr string, state *os.ProcessState) {
	t.Helper()
	program := exec.Command(filepath.Join(bin, "kubectl-dra"), args...)
	program.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(t.TempDir(), "none"))
	program.Stdout = out
	var errOut bytes.Buffer
	program.Stderr = &errOut
	_ = program.Run()
	return errOut.String(), program.ProcessState
}

// TestPipes prints to those who do not take it.
func TestPipes(t *testing.T) {
	bin := builtProgram(t)
	t.Run("nobody reads", func(t *testing.T) { nobodyReads(t, bin) })
	t.Run("head", func(t *testing.T) { readsTheHead(t, bin) })
	t.Run("discarded", func(t *testing.T) { discarded(t, bin) })
	t.Run("full disk", func(t *testing.T) { fullDisk(t, bin) })
}

// nobodyReads ends like kubectl does when the reader is gone: by the signal, as
// shells expect, and without a word.
func nobodyReads(t *testing.T, bin string) {
	for _, args := range verbsThatPrint(filepath.Join("..", "examples", "cluster")) {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = writer.Close() })
			if err := reader.Close(); err != nil {
				t.Fatal(err)
			}
			stderr, state := runInto(t, bin, writer, args)
			if status, ok := state.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGPIPE || stderr != "" {
				t.Errorf("ended with %s and %q", state, stderr)
			}
		})
	}
}

// readsTheHead reads the beginning of what there is to say about a large fleet.
func readsTheHead(t *testing.T, bin string) {
	path := filepath.Join(t.TempDir(), "fleet.json")
	// Each verb has more to say than fits into a pipe.
	if err := files.Save(t.Context(), fleetWithWaitingClaim(1500, 1000), path); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"devices", "devices -o json", "claims", "slices", "pools -o yaml", "snapshot"} {
		t.Run(verb, func(t *testing.T) {
			program := exec.Command(filepath.Join(bin, "kubectl-dra"), append(strings.Fields(verb), "--snapshot", path)...)
			var errOut bytes.Buffer
			program.Stderr = &errOut
			out, err := program.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := program.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReaderSize(out, 16).ReadString('\n'); err != nil {
				t.Errorf("read %q: %v", line, err)
			}
			if err := out.Close(); err != nil {
				t.Error(err)
			}
			if err := program.Wait(); err == nil {
				t.Error("the output ended with the pipe's buffer")
			}
			if status, ok := program.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGPIPE || errOut.Len() > 0 {
				t.Errorf("ended with %s and %q", program.ProcessState, errOut.String())
			}
		})
	}
}

// discarded checks that unwanted output is no failure. Shells open /dev/null for writing;
// Python and Node.js for reading and writing, and so does the Go runtime for a program that
// is started without a standard output, which therefore is none either.
func discarded(t *testing.T, bin string) {
	all := verbsThatPrint(filepath.Join("..", "examples", "cluster"))
	for _, args := range append(all, []string{"--help"}, []string{"why", "--help"}) {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			for _, flags := range []int{os.O_WRONLY, os.O_RDWR} {
				null, err := os.OpenFile(os.DevNull, flags, 0)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = null.Close() })
				if stderr, state := runInto(t, bin, null, args); state.ExitCode() == 4 || strings.Contains(stderr, "error: ") {
					t.Errorf("exit code %d and %q", state.ExitCode(), stderr)
				}
			}
		})
	}
}

// fullDisk checks that a full disk is reported as a failure, with its exit code.
func fullDisk(t *testing.T, bin string) {
	for _, args := range verbsThatPrint(filepath.Join("..", "examples", "cluster")) {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Skip(err)
			}
			t.Cleanup(func() { _ = full.Close() })
			stderr, state := runInto(t, bin, full, args)
			if state.ExitCode() != 4 || !strings.HasPrefix(stderr, "error: ") || !strings.HasSuffix(stderr, "no space left on device\n") {
				t.Errorf("exit code %d and %q", state.ExitCode(), stderr)
			}
		})
	}
}
