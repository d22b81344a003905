// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// widthWithoutTerminal is for pipes and files: nothing is wrapped.
const widthWithoutTerminal = 0

// checkedWriter remembers the first error.
type checkedWriter struct {
	to  io.Writer
	err error
}

func (w *checkedWriter) Write(text []byte) (int, error) {
	n, err := w.to.Write(text)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// terminal returns the file descriptor of a terminal.
func terminal(stream any) (fd int, ok bool) {
	if checked, ok := stream.(*checkedWriter); ok {
		stream = checked.to
	}
	file, isFile := stream.(*os.File)
	if !isFile {
		return 0, false
	}
	fd = int(file.Fd())
	return fd, term.IsTerminal(fd)
}

// outputWidth is $COLUMNS if somebody exported it, else that of the terminal,
// else no limit.
func outputWidth(w io.Writer) int {
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		return columns
	}
	if fd, ok := terminal(w); ok {
		if width, _, err := term.GetSize(fd); err == nil && width > 0 {
			return width
		}
	}
	return widthWithoutTerminal
}

// The values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// useColor decides about colours; see https://no-color.org for the variable.
func useColor(choice string, w io.Writer) (bool, error) {
	switch choice {
	case colorAlways:
		return true, nil
	case colorNever:
		return false, nil
	case colorAuto:
		_, isTerminal := terminal(w)
		return isTerminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", nil
	default:
		return false, usagef("Use auto, always or never.", "unknown value %q of --color", choice)
	}
}

const (
	// patience is how long the program works silently.
	patience = time.Second
	// clearLine moves to the start of the line and empties it.
	clearLine = "\r\x1b[K"
)

// progress is one line on a terminal that tells what takes so long. The zero
// value says nothing. It is safe for concurrent use.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	since time.Time
	timer *time.Timer
	shown bool
}

// newProgress starts the clock for a server. It stays silent unless w is a
// terminal.
func newProgress(w io.Writer, server string) *progress {
	p := &progress{since: time.Now()}
	if _, ok := terminal(w); ok {
		p.w = w
		p.timer = time.AfterFunc(patience, func() { p.show("Asking API server " + render.Escape(server)) })
	}
	return p
}

// report rewrites the line, once the user has waited long enough.
func (p *progress) report(done, total int, what string) {
	so := fmt.Sprint(done)
	if total > 0 {
		so = fmt.Sprintf("%d of %d", done, total)
	}
	p.show(fmt.Sprintf("Read %s objects (%s)", so, render.Escape(what)))
}

func (p *progress) show(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil || time.Since(p.since) < patience {
		return
	}
	p.shown = true
	// A lost line of progress is no reason to stop.
	_, _ = io.WriteString(p.w, clearLine+text)
}

// done erases the line.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.shown {
		_, _ = io.WriteString(p.w, clearLine)
		p.shown = false
	}
	p.w = nil
}
