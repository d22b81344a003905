// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"io"
	"regexp"
	"strings"
)

// longestForeignLine limits the length of a line before it is written in pieces.
const longestForeignLine = 1 << 20

// Foreign makes the output of a program that runs elsewhere safe to print: it is [Escape]
// for a stream. Lines stay lines. With color, this program's own colors are let through.
// Close writes the rest of the last line; it does not close w.
func Foreign(w io.Writer, color bool) io.WriteCloser {
	f := &foreign{w: w}
	if color {
		f.colors = regexp.MustCompile("\x1b\\[((0|1|2|22|3[0-79])(;(0|1|2|22|3[0-79]))*)?m")
	}
	return f
}

type foreign struct {
	w      io.Writer
	colors *regexp.Regexp
	rest   []byte
}

// Write only fails if the underlying writer does.
func (f *foreign) Write(data []byte) (int, error) {
	f.rest = append(f.rest, data...)
	end := bytes.LastIndexByte(f.rest, '\n') + 1
	if end == 0 && len(f.rest) > longestForeignLine {
		end = len(f.rest)
	}
	if end == 0 {
		return len(data), nil
	}
	if err := f.flush(end); err != nil {
		return 0, err
	}
	return len(data), nil
}

// Close writes the last line.
func (f *foreign) Close() error { return f.flush(len(f.rest)) }

func (f *foreign) flush(end int) error {
	lines := strings.Split(string(f.rest[:end]), "\n")
	for i := range lines {
		lines[i] = f.line(lines[i])
	}
	f.rest = append(f.rest[:0], f.rest[end:]...)
	_, err := io.WriteString(f.w, strings.Join(lines, "\n"))
	return err
}

func (f *foreign) line(line string) string {
	if f.colors == nil {
		return Escape(line)
	}
	var b strings.Builder
	at := 0
	for _, span := range f.colors.FindAllStringIndex(line, -1) {
		b.WriteString(Escape(line[at:span[0]]))
		b.WriteString(line[span[0]:span[1]])
		at = span[1]
	}
	b.WriteString(Escape(line[at:]))
	return b.String()
}
