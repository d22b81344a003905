// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program is the built program, for one cluster.
type program struct {
	path string
	env  []string
	// flags are added to all command lines.
	flags []string
	// dir is where the program runs in a terminal; none is where the test runs.
	dir string
}

// programs has the built program, and is removed at the end. See [TestMain].
type programs struct {
	once sync.Once
	dir  string
	err  error
}

var built programs

// builtProgram returns the directory with kubectl-dra and the link by which kubectl
// completes it. It is built once for all tests.
func builtProgram(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "kubectl-dra-test"); built.err != nil {
			return
		}
		build := exec.Command("go", "build", "-o", built.dir+string(filepath.Separator), "../cmd/kubectl-dra")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("build kubectl-dra: %w\n%s", err, out)
			return
		}
		built.err = os.Symlink("kubectl-dra", filepath.Join(built.dir, "kubectl_complete-dra"))
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.dir
}

// programFor returns the built program for a user with a kubeconfig.
func programFor(t *testing.T, kubeconfig string) *program {
	t.Helper()
	return &program{
		path: filepath.Join(builtProgram(t), "kubectl-dra"),
		env:  []string{"KUBECONFIG=" + kubeconfig, "HOME=" + t.TempDir(), "XDG_STATE_HOME=", "COLUMNS=200", "NO_COLOR=1"},
	}
}

// output runs the program and returns its output. It must end with code 0 and
// without a message.
func (p *program) output(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), p.path, slices.Concat(args, p.flags)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, &stdout, &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Fatalf("kubectl dra %s: %v\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// items runs a verb that lists something, with -o json.
func items[T any](t *testing.T, p *program, args ...string) []T {
	t.Helper()
	var list struct{ Items []T }
	if err := json.Unmarshal([]byte(p.output(t, append(args, "-o", "json")...)), &list); err != nil {
		t.Fatalf("kubectl dra %s: %v", strings.Join(args, " "), err)
	}
	return list.Items
}

// running is the program while it runs.
type running struct {
	name           string
	cmd            *exec.Cmd
	stdout, stderr *lines
}

// start runs the program until the test ends it, or ends.
func (p *program) start(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{name: "kubectl dra " + strings.Join(args, " "), cmd: exec.CommandContext(t.Context(), p.path, slices.Concat(args, p.flags)...)}
	r.cmd.Env = p.env
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := r.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.stdout, r.stderr = readLines(stdout), readLines(stderr)
	return r
}

// interrupt sends Ctrl-C. It returns the exit code and the output.
func (r *running) interrupt(t *testing.T) (code int, stdout, stderr []string) {
	t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	// Both pipes must be read to their end before Wait closes them.
	stdout, stderr = r.stdout.all(), r.stderr.all()
	var exit *exec.ExitError
	if err := r.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return r.cmd.ProcessState.ExitCode(), stdout, stderr
}

// wait returns the first line, from those that no wait has returned, for which
// a condition is true.
func (r *running) wait(t *testing.T, from *lines, what string, condition func(line string) bool) string {
	t.Helper()
	line, ok := from.next(decisionTimeout, condition)
	if !ok {
		t.Fatalf("%s does not print %s. Output:\n%s\nErrors:\n%s", r.name, what, strings.Join(r.stdout.sofar(), "\n"), strings.Join(r.stderr.sofar(), "\n"))
	}
	return line
}

// waitRow waits for a row of a table whose words include all of the given.
func (r *running) waitRow(t *testing.T, words ...string) string {
	t.Helper()
	return r.wait(t, r.stdout, "a row with "+strings.Join(words, " "), func(line string) bool {
		fields := strings.Fields(line)
		return !slices.ContainsFunc(words, func(word string) bool { return !slices.Contains(fields, word) })
	})
}

// lines are the printed lines of a program.
type lines struct {
	mu   sync.Mutex
	read []string
	// seen is how many of them a wait has passed.
	seen int
	// more is closed and made again with every line, ended at the end.
	more  chan struct{}
	ended chan struct{}
}

func readLines(from io.Reader) *lines {
	l := &lines{more: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		scanner := bufio.NewScanner(from)
		for scanner.Scan() {
			l.mu.Lock()
			l.read = append(l.read, scanner.Text())
			close(l.more)
			l.more = make(chan struct{})
			l.mu.Unlock()
		}
	}()
	return l
}

func (l *lines) sofar() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.read)
}

// all waits for the end.
func (l *lines) all() []string {
	<-l.ended
	return l.sofar()
}

func (l *lines) next(limit time.Duration, condition func(line string) bool) (string, bool) {
	deadline := time.After(limit)
	for {
		l.mu.Lock()
		for l.seen < len(l.read) {
			line := l.read[l.seen]
			l.seen++
			if condition(line) {
				l.mu.Unlock()
				return line, true
			}
		}
		more := l.more
		l.mu.Unlock()
		select {
		case <-more:
		case <-l.ended:
			l.mu.Lock()
			over := l.seen == len(l.read)
			l.mu.Unlock()
			if over {
				return "", false
			}
		case <-deadline:
			return "", false
		}
	}
}
