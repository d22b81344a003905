// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

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

// WidthWithoutTerminal is for pipes and files: nothing is wrapped.
const WidthWithoutTerminal = 0

// CheckedWriter remembers the first error.
type CheckedWriter struct {
	To  io.Writer
	Err error
}

// Write passes a text on.
func (w *CheckedWriter) Write(text []byte) (int, error) {
	n, err := w.To.Write(text)
	if w.Err == nil {
		w.Err = err
	}
	return n, err
}

// Terminal returns the file descriptor of a stream that is a terminal.
func Terminal(stream any) (fd int, ok bool) {
	if checked, ok := stream.(*CheckedWriter); ok {
		stream = checked.To
	}
	file, isFile := stream.(*os.File)
	if !isFile {
		return 0, false
	}
	fd = int(file.Fd())
	return fd, term.IsTerminal(fd)
}

// TextReader is a stream to a program that reads text, such as an agent: lines are wrapped at a
// width of its own, and there are no bars.
type TextReader struct {
	io.Writer
	Width int
}

// OutputWidth returns the width of a [TextReader], or $COLUMNS if somebody exported it, else the width of the terminal,
// else no limit.
func OutputWidth(w io.Writer) int {
	if reader, ok := w.(*TextReader); ok {
		return reader.Width
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		return columns
	}
	if fd, ok := Terminal(w); ok {
		if width, _, err := term.GetSize(fd); err == nil && width > 0 {
			return width
		}
	}
	return WidthWithoutTerminal
}

// OutputHeight returns the height of the terminal; 0 if it is not known.
func OutputHeight(w io.Writer) int {
	fd, ok := Terminal(w)
	if !ok {
		return 0
	}
	_, height, err := term.GetSize(fd)
	if err != nil {
		return 0
	}
	return height
}

// Values of --color.
const (
	ColorAuto   = "auto"
	ColorAlways = "always"
	ColorNever  = "never"
)

// UseColor decides about colors; see https://no-color.org for the variable.
func UseColor(choice string, w io.Writer) (bool, error) {
	switch choice {
	case ColorAlways:
		return true, nil
	case ColorNever:
		return false, nil
	case ColorAuto:
		_, isTerminal := Terminal(w)
		return isTerminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", nil
	default:
		return false, NotAllowed("color", choice, []string{ColorAuto, ColorAlways, ColorNever})
	}
}

const (
	// silentFor is how long the program works without showing progress.
	silentFor = 100 * time.Millisecond
	// clearLine moves to the start of the line and empties it.
	clearLine = "\r\x1b[K"
)

// Progress is one line on a terminal that names a slow operation. The zero value shows
// nothing. It is safe for concurrent use.
type Progress struct {
	mu    sync.Mutex
	w     io.Writer
	since time.Time
	timer *time.Timer
	shown bool
}

// NewProgress starts the clock for a slow operation, such as "Asking API server https://…".
// It stays silent unless w is a terminal.
func NewProgress(w io.Writer, doing string) *Progress {
	p := &Progress{since: time.Now()}
	if _, ok := Terminal(w); ok {
		p.w = w
		p.timer = time.AfterFunc(silentFor, func() { p.show(render.Escape(doing)) })
	}
	return p
}

// Report rewrites the line, once the user has waited long enough.
func (p *Progress) Report(done, total int, what string) {
	so := fmt.Sprint(done)
	if total > 0 {
		so = fmt.Sprintf("%d of %d", done, total)
	}
	p.show(fmt.Sprintf("Read %s objects (%s)", so, render.Escape(what)))
}

// Say rewrites the line for another slow operation.
func (p *Progress) Say(doing string) { p.show(render.Escape(doing)) }

func (p *Progress) show(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil || time.Since(p.since) < silentFor {
		return
	}
	p.shown = true
	// A lost line of progress is no reason to stop.
	_, _ = io.WriteString(p.w, clearLine+text)
}

// Done erases the line.
func (p *Progress) Done() {
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
