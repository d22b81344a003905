// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package recording

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// recorderFile and recorderLimit are variables of the environment of a process that records.
const (
	recorderFile  = "TEST_RECORDER_FILE"
	recorderLimit = "TEST_RECORDER_LIMIT"
)

// TestRecorder records, in a process that other tests kill. It says which moment is in the file.
func TestRecorder(t *testing.T) {
	path := os.Getenv(recorderFile)
	if path == "" {
		t.Skip("it is run by other tests")
	}
	if limit, err := strconv.ParseUint(os.Getenv(recorderLimit), 10, 64); err == nil {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			t.Fatal(err)
		}
	}
	states := story(t, 7, 6)
	w, err := Create(t.Context(), path, states[0], Limits{})
	for i := 1; err == nil && i < 100_000; i++ {
		_, _ = fmt.Fprintln(os.Stdout, "moment", w.written.UnixNano())
		s := *states[i%len(states)]
		s.TakenAt = start().Add(time.Duration(i) * time.Second)
		err = w.Add(&s)
	}
	_, _ = fmt.Fprintln(os.Stdout, "failed", err)
}

// runRecorder starts a process that records, and returns its output and a way to kill it.
func runRecorder(t *testing.T, path string, limit int64) (*bufio.Scanner, *exec.Cmd) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestRecorder$")
	cmd.Env = append(os.Environ(), recorderFile+"="+path)
	if limit > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", recorderLimit, limit))
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return bufio.NewScanner(out), cmd
}

// lastOf returns the last moment that a recorder has said to be in its file.
func lastOf(output []string) time.Time {
	var last time.Time
	for _, line := range output {
		if text, found := strings.CutPrefix(line, "moment "); found {
			if at, err := strconv.ParseInt(text, 10, 64); err == nil {
				last = time.Unix(0, at)
			}
		}
	}
	return last
}

// checkLast fails unless a recording has a moment, and its state.
func checkLast(t *testing.T, path string, states []*snapshot.Snapshot, said time.Time) {
	t.Helper()
	r := opened(t, path)
	m, err := r.Last(t.Context(), files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Snapshot.TakenAt.Before(said) {
		t.Errorf("the last moment is %v, and %v was in the file", m.Snapshot.TakenAt, said)
	}
	i := int(m.Snapshot.TakenAt.Sub(start()) / time.Second)
	want := *states[i%len(states)]
	want.TakenAt = m.Snapshot.TakenAt
	checkState(t, "the last moment", &want, m.Snapshot)
}

// TestKilled kills recorders at random moments. What they said to be in the file is there.
func TestKilled(t *testing.T) {
	times := 200
	if testing.Short() {
		times = 20
	}
	random, states := rand.New(rand.NewPCG(1, 1)), story(t, 7, 6)
	for range times {
		path := filepath.Join(t.TempDir(), "cluster.rec")
		output, cmd := runRecorder(t, path, 0)
		var lines []string
		// It dies while it writes one of the moments after that.
		kill := 1 + random.IntN(60)
		for output.Scan() {
			lines = append(lines, output.Text())
			if len(lines) == kill {
				time.AfterFunc(time.Duration(random.IntN(2000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
			}
		}
		_ = cmd.Wait()
		checkLast(t, path, states, lastOf(lines))
	}
}

// TestFullDisk lets a recorder run into a limit for the size of its file. It ends with an error, and
// the file has all moments before.
func TestFullDisk(t *testing.T) {
	states := story(t, 7, 6)
	for _, limit := range []int64{10_000, 12_345, 20_001, 40_000} {
		path := filepath.Join(t.TempDir(), "cluster.rec")
		output, cmd := runRecorder(t, path, limit)
		var lines []string
		for output.Scan() {
			lines = append(lines, output.Text())
		}
		_ = cmd.Wait()
		if !strings.Contains(strings.Join(lines, "\n"), "failed record: write "+path) {
			t.Errorf("at %d bytes it said %q", limit, lines[len(lines)-1])
		}
		checkLast(t, path, states, lastOf(lines))
	}
}
