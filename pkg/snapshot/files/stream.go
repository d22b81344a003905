// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

const (
	// worthStreaming is the size of a file that is not read as a whole.
	worthStreaming = 4 << 20
	// windowSize is how much of it is read at a time.
	windowSize = 1 << 20
	// spareWindows is how many windows wait to be read into again.
	spareWindows = 4
)

// stream reads a large JSON file that begins with a List, as saved snapshots
// and dumps of kubectl do, so that only a small part of it is in memory at a
// time. It returns false if the file has another form, or is not large.
func stream(path string, file *os.File, size int64, emit func(*part) error) (bool, error) {
	if size < worthStreaming {
		return false, nil
	}
	window := make([]byte, windowSize)
	if _, err := file.ReadAt(window, 0); err != nil {
		return false, fileError(path, err)
	}
	head, apiVersion, kind, items := findItems(window)
	if items < 0 {
		return false, nil
	}
	if kind == "" {
		// kubectl sorts the fields of a List.
		end := make([]byte, 1<<10)
		if _, err := file.ReadAt(end, size-int64(len(end))); err != nil {
			return false, fileError(path, err)
		}
		if match := regexp.MustCompile(`"kind":\s*"(List)"`).FindSubmatch(end); match != nil {
			kind = string(match[1])
		}
	}
	if !strings.HasSuffix(kind, "List") && kind != snapshot.KindSnapshot {
		return false, nil
	}
	if _, err := file.Seek(windowSize, io.SeekStart); err != nil {
		return false, fileError(path, err)
	}
	s := streamer{
		part: emit, file: path, rest: file, window: window, pos: items, kind: kind,
		users: new(atomic.Int64), free: make(chan []byte, spareWindows),
		lines: bytes.Count(window[:items], []byte{'\n'}),
	}
	s.users.Add(1)
	// The window is read into again.
	head = bytes.Clone(head)
	s.itemVersion, s.itemKind = itemKind(apiVersion, kind)
	if err := s.items(); err != nil {
		return true, err
	}
	// What is left is a List without items, and what comes after it.
	tail, err := io.ReadAll(file)
	if err != nil {
		return true, fileError(path, err)
	}
	text := append(append(head, "[]"...), s.window[s.pos:]...)
	return true, cutAt(path, append(text, tail...), len(head)+2, s.lines-bytes.Count(head, []byte{'\n'}), emit)
}

// findItems finds the index after the bracket that begins the items of the List at the
// beginning of text, and the text before the bracket. The kind is empty if it comes later;
// the index is negative if there are no items.
func findItems(text []byte) (head []byte, apiVersion, kind string, items int) {
	var o outline
	items = -1
	if start := kinds.SkipSpace(text, 0); start < len(text) && text[start] == '{' {
		_, _ = kinds.EachField(text, start, func(key []byte, at int) (int, bool, error) {
			if string(key) == "items" && at < len(text) && text[at] == '[' {
				head, items = text[:at], at+1
				return at, false, nil
			}
			end, err := kinds.SkipValue(text, at)
			if err == nil {
				o.note(key, text[at:end])
			}
			return end, true, err
		})
	}
	return head, o.apiVersion, o.kind, items
}

// streamer emits the items of a List.
type streamer struct {
	part func(*part) error
	file string
	rest io.Reader
	// window is the text that was read and not yet emitted, from pos on; users counts the
	// parts of it that are being decoded, and one for this streamer.
	window []byte
	pos    int
	users  *atomic.Int64
	// free has windows of which all parts are decoded.
	free chan []byte
	// lines counts the lines before pos.
	lines                       int
	kind, itemVersion, itemKind string
	// count is the number of items before those that are collected.
	count int
	spans []kinds.Span
}

// items emits all items, and leaves pos after the bracket that ends them.
func (s *streamer) items() error {
	for first := true; ; first = false {
		more, err := s.next(first)
		if err != nil || !more {
			return errors.Join(err, s.emit())
		}
	}
}

// next finds the next item.
func (s *streamer) next(first bool) (more bool, err error) {
	for {
		i := kinds.SkipSpace(s.window, s.pos)
		if i < len(s.window) && s.window[i] == ']' {
			s.advance(i + 1)
			return false, nil
		}
		if i < len(s.window) && !first {
			if s.window[i] != ',' {
				return false, s.syntax(i, `"," or "]"`)
			}
			i = kinds.SkipSpace(s.window, i+1)
		}
		end, err := kinds.SkipValue(s.window, i)
		if err == nil && end < len(s.window) {
			s.spans = append(s.spans, kinds.Span{From: i, To: end})
			s.advance(end)
			if end-s.spans[0].From >= pieceSize {
				return true, s.emit()
			}
			return true, nil
		}
		if err != nil && !errors.Is(err, kinds.ErrCutOff) {
			return false, s.syntax(i, "a value")
		}
		if size := len(s.window) - i; size > kinds.MaxDocument {
			at := place{file: s.file, document: 1, item: s.count + len(s.spans) + 1, list: s.kind}
			return false, inputError(at, "", kinds.TooLarge(size))
		}
		if err := s.fill(); err != nil {
			return false, err
		}
	}
}

// syntax returns an error about the character at i.
func (s *streamer) syntax(i int, wanted string) error {
	line := s.lines + bytes.Count(s.window[s.pos:i], []byte{'\n'}) + 1
	return &InputError{Path: s.file, Document: 1, Object: s.kind, Err: &kinds.PositionError{Line: line, Found: s.window[i], Wanted: wanted}}
}

func (s *streamer) advance(to int) {
	s.lines += bytes.Count(s.window[s.pos:to], []byte{'\n'})
	s.pos = to
}

// emit passes on the items that were found in the window.
func (s *streamer) emit() error {
	if len(s.spans) == 0 {
		return nil
	}
	p := &part{
		at: place{file: s.file, document: 1, item: s.count, list: s.kind}, data: s.window, items: s.spans,
		apiVersion: s.itemVersion, kind: s.itemKind,
		linesBefore: s.lines - bytes.Count(s.window[:s.pos], []byte{'\n'}),
	}
	s.count += len(s.spans)
	if s.count > kinds.MaxItems {
		return &InputError{Path: s.file, Document: 1, Object: s.kind, Err: kinds.ErrTooManyItems()}
	}
	s.spans = nil
	p.release = s.release(s.window, s.users)
	s.users.Add(1)
	return s.part(p)
}

// release returns a function for a user of a window: after the last one, the
// window can be read into again.
func (s *streamer) release(window []byte, users *atomic.Int64) func() {
	return func() {
		if users.Add(-1) > 0 || cap(window) != windowSize {
			return
		}
		select {
		case s.free <- window[:cap(window)]:
		default:
		}
	}
}

// another returns a window to read into.
func (s *streamer) another(size int) []byte {
	if size == windowSize {
		select {
		case window := <-s.free:
			return window
		default:
		}
	}
	return make([]byte, size)
}

// fill reads more into another window; the old one belongs to those who decode.
func (s *streamer) fill() error {
	if err := s.emit(); err != nil {
		return err
	}
	left := s.window[s.pos:]
	window := s.another(max(windowSize, 2*len(left)))
	copy(window, left)
	n, err := io.ReadFull(s.rest, window[len(left):])
	if n == 0 {
		if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = &kinds.SyntaxError{Err: kinds.ErrCutOff}
		}
		return &InputError{Path: s.file, Document: 1, Object: s.kind, Err: err}
	}
	s.release(s.window, s.users)()
	s.window, s.pos, s.users = window[:len(left)+n], 0, new(atomic.Int64)
	s.users.Add(1)
	return nil
}
