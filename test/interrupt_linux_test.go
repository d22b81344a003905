// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestInterrupted ends the program with one signal while it waits for somebody
// at the other end of a pipe.
func TestInterrupted(t *testing.T) {
	bin := builtProgram(t)
	// A program under nohup ignores SIGHUP, and so do those that it starts, unless it
	// handles the signal itself.
	hangups := make(chan os.Signal, 1)
	ossignal.Notify(hangups, syscall.SIGHUP)
	t.Cleanup(func() { ossignal.Stop(hangups) })
	cluster := filepath.Join("..", "examples", "cluster")
	for name, args := range map[string][]string{
		"no reader":   {"snapshot", "--snapshot", cluster, "-o", "PIPE"},
		"slow reader": {"snapshot", "--snapshot", cluster, "-o", "PIPE", "--format", "json"},
		"no writer":   {"slices", "--snapshot", "PIPE"},
		"slow writer": {"slices", "--snapshot", "-"},
	} {
		for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			t.Run(name+" "+signal.String(), func(t *testing.T) {
				pipe := filepath.Join(t.TempDir(), "pipe")
				if err := syscall.Mkfifo(pipe, 0o600); err != nil {
					t.Skip(err)
				}
				program := exec.Command(filepath.Join(bin, "kubectl-dra"))
				for _, arg := range args {
					program.Args = append(program.Args, strings.Replace(arg, "PIPE", pipe, 1))
				}
				var stderr bytes.Buffer
				program.Stderr = &stderr
				// Nobody writes to it, and it does not end.
				if _, err := program.StdinPipe(); err != nil {
					t.Fatal(err)
				}
				if name == "slow reader" {
					reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = reader.Close() })
					// What fits into the pipe is less than the snapshot.
					if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, reader.Fd(), syscall.F_SETPIPE_SZ, 4096); errno != 0 {
						t.Skip(errno)
					}
				}
				if err := program.Start(); err != nil {
					t.Fatal(err)
				}
				waitUntilBlocked(t, program.Process.Pid)
				if err := program.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_ = program.Wait()
				}()
				select {
				case <-ended:
				case <-time.After(20 * time.Second):
					_ = program.Process.Kill()
					t.Fatal("one signal does not end it")
				}
				if code := program.ProcessState.ExitCode(); code != 4 || stderr.String() != "error: interrupted\n" {
					t.Errorf("exit code %d and %q", code, stderr.String())
				}
				entries, err := os.ReadDir(filepath.Dir(pipe))
				if err != nil || len(entries) != 1 {
					t.Errorf("left behind: %v, %v", entries, err)
				}
			})
		}
	}
}

// waitUntilBlocked waits until a process takes no time of a processor.
func waitUntilBlocked(t *testing.T, pid int) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	before, same := "", 0
	for same < 20 {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("not blocked: %v", err)
		}
		fields := strings.Fields(string(stat))
		if now := strings.Join(fields[13:15], " "); now == before && fields[2] == "S" {
			same++
		} else {
			before, same = now, 0
		}
		time.Sleep(10 * time.Millisecond)
	}
}
