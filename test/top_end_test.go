// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestTopLeavesTheTerminalAsItWas ends the dashboard with signals. The shell in
// which it ran goes on in the same terminal.
func TestTopLeavesTheTerminalAsItWas(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			term, dir := openTop(t)
			if err := syscall.Kill(pidIn(t, dir), signal); err != nil {
				t.Fatal(err)
			}
			screen := term.shows("it is over", "", "Capacity")
			if before, after := contentOf(t, dir, "before"), contentOf(t, dir, "after"); before != after {
				t.Errorf("stty -g: %q before and %q after it", before, after)
			}
			if modes := strings.TrimSpace(term.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}")); modes != "0 1 0" {
				t.Errorf("another screen, no cursor or the mouse stay: %q\n%s", modes, screen)
			}
			if title := strings.TrimSpace(term.tmux("display-message", "-p", "#{pane_title}")); title != "my title" {
				t.Errorf("the window is called %q afterwards", title)
			}
		})
	}
	t.Run("the terminal is closed", func(t *testing.T) {
		term, dir := openTop(t)
		pid := pidIn(t, dir)
		term.tmux("kill-server")
		if err := poll(t.Context(), func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH }); err != nil {
			t.Errorf("it goes on without a terminal: %v", err)
		}
	})
}

// openTop opens a dashboard with the mouse from a shell, which keeps what it says
// about its terminal in files of a directory.
func openTop(t *testing.T) (term *terminal, dir string) {
	t.Helper()
	cluster, err := filepath.Abs(filepath.Join("..", "examples", "cluster"))
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	top := "exec " + strings.Join(quoted([]string{filepath.Join(builtProgram(t), "kubectl-dra"), "top", "--mouse", "--snapshot", cluster}), " ")
	term = openTerminal(t, &program{path: "sh", dir: dir, env: []string{"HOME=" + dir}}, 100, 30,
		"-c", `printf '\033]2;my title\007'; stty -g >before; sh -c 'echo $$ >pid; eval "$0"' "$0"; stty -g >after; echo it is over`, top)
	term.shows("Capacity")
	if modes := strings.TrimSpace(term.tmux("display-message", "-p", "#{alternate_on} #{mouse_any_flag}")); modes != "1 1" {
		t.Fatalf("it changes nothing in the terminal: %q", modes)
	}
	if title := strings.TrimSpace(term.tmux("display-message", "-p", "#{pane_title}")); !strings.HasPrefix(title, "dra top ") || !strings.HasSuffix(title, ": 10 wait, 1 broken") {
		t.Fatalf("the window is called %q", title)
	}
	return term, dir
}

func pidIn(t *testing.T, dir string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(contentOf(t, dir, "pid")))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func contentOf(t *testing.T, dir, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
