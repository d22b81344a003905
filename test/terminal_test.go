// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// terminal is a real one: tmux.
type terminal struct {
	t      *testing.T
	socket string
	width  int
	height int
}

// openTerminal runs the program in a terminal of a size, or skips the test where
// there is no tmux.
func openTerminal(t *testing.T, p *program, width, height int, args ...string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	term := &terminal{t: t, socket: filepath.Join(t.TempDir(), "tmux"), width: width, height: height}
	// The shell stays when the program has ended, and tells its exit code.
	command := "env " + strings.Join(quoted(p.env), " ") + " LC_ALL=C.UTF-8 " + strings.Join(quoted(append([]string{p.path}, args...)), " ") + "; echo ended with $?; exec sleep 1000"
	term.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), "-c", filepath.Join(p.dir, "."), command)
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", term.socket, "kill-server").Run() })
	return term
}

func quoted(words []string) []string {
	out := make([]string, 0, len(words))
	for _, word := range words {
		out = append(out, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	return out
}

func (term *terminal) tmux(args ...string) string {
	term.t.Helper()
	out, err := exec.CommandContext(term.t.Context(), "tmux", append([]string{"-S", term.socket}, args...)...).CombinedOutput()
	if err != nil {
		term.t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// keys presses keys, named as tmux names them.
func (term *terminal) keys(names ...string) {
	term.t.Helper()
	term.tmux(append([]string{"send-keys"}, names...)...)
}

// types types a text.
func (term *terminal) types(text string) {
	term.t.Helper()
	term.tmux("send-keys", "-l", text)
}

func (term *terminal) resize(width, height int) {
	term.t.Helper()
	term.tmux("resize-window", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height))
}

// screen returns what can be read now.
func (term *terminal) screen() string {
	term.t.Helper()
	return term.tmux("capture-pane", "-p")
}

// shows waits until all texts can be read, and those after "" cannot.
func (term *terminal) shows(texts ...string) string {
	term.t.Helper()
	var screen string
	err := poll(term.t.Context(), func() bool {
		screen = term.screen()
		wanted := true
		for _, text := range texts {
			switch {
			case text == "":
				wanted = false
			case strings.Contains(screen, text) != wanted:
				return false
			}
		}
		return true
	})
	if err != nil {
		term.t.Fatalf("the screen does not show %q:\n%s", texts, screen)
	}
	return screen
}
