// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// Recording is a file with the states of a cluster. It is not safe for concurrent use.
type Recording struct {
	path     string
	file     io.ReaderAt
	size     int64
	segments []segment
	close    func() error
}

// RangeError tells that a recording does not go back, or on, to a time.
type RangeError struct {
	Path         string
	At, From, To time.Time
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("read %s: it was recorded from %s to %s, not at %s", e.Path,
		e.From.Local().Format(time.RFC3339), e.To.Local().Format(time.RFC3339), e.At.Local().Format(time.RFC3339))
}

// ErrEmpty tells that a recording ends before its first moment.
var ErrEmpty = errors.New("it ends before the first moment of the recording")

// Open opens a file. Whatever is wrong with it is a [files.InputError]. A part of a moment at the
// end does not count: somebody may be writing it.
func Open(path string) (*Recording, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read recording: %w", err)
	}
	info, err := file.Stat()
	if err == nil {
		var r *Recording
		if r, err = open(path, file, info.Size()); err == nil {
			r.close = file.Close
			return r, nil
		}
	}
	_ = file.Close()
	return nil, err
}

// Bytes is like Open, for the content of a file. The name is for errors.
func Bytes(name string, content []byte) (*Recording, error) {
	return open(name, bytes.NewReader(content), int64(len(content)))
}

func open(path string, file io.ReaderAt, size int64) (*Recording, error) {
	r := &Recording{path: path, file: file, size: size, close: func() error { return nil }}
	head := make([]byte, len(magic()))
	if n, _ := file.ReadAt(head, 0); size > 0 && !Is(head[:n]) && !bytes.HasPrefix(magic(), head[:n]) {
		return nil, r.wrong(errors.New("it is no recording"))
	}
	segments, err := segmentsOf(file, size)
	if err == nil && len(segments) == 0 {
		err = errors.New("expected a recording, found an empty file")
	}
	if err != nil {
		return nil, r.wrong(err)
	}
	r.segments = segments
	return r, nil
}

// Cut reports whether the file has no end: it is being written, or it was cut off.
func (r *Recording) Cut() bool { return !r.segments[len(r.segments)-1].complete }

// Close closes the file.
func (r *Recording) Close() error { return r.close() }

// wrong names the file in an error.
func (r *Recording) wrong(err error) error {
	var input *files.InputError
	if errors.As(err, &input) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = ErrEmpty
	}
	return &files.InputError{Path: r.path, Err: err}
}

// Range returns the times of the first and of the last moment.
func (r *Recording) Range(ctx context.Context) (from, to time.Time, err error) {
	from = r.segments[0].begins
	last := r.segments[len(r.segments)-1]
	to, err = r.lastIn(ctx, last)
	if errors.Is(err, io.ErrUnexpectedEOF) && len(r.segments) > 1 {
		r.segments = r.segments[:len(r.segments)-1]
		return r.Range(ctx)
	}
	if err != nil {
		return from, to, r.wrong(err)
	}
	return from, to, nil
}

// lastIn returns the last moment in a segment.
func (r *Recording) lastIn(ctx context.Context, s segment) (time.Time, error) {
	l, err := newLines(io.NewSectionReader(r.file, s.offset, s.size))
	if err != nil {
		return time.Time{}, err
	}
	defer l.close()
	var found time.Time
	for {
		line, err := l.next()
		switch {
		case ctx.Err() != nil:
			return found, ctx.Err()
		case found.IsZero() && errors.Is(err, io.EOF):
			return found, io.ErrUnexpectedEOF
		case found.IsZero() && err != nil:
			return found, err
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return found, nil
		case err != nil:
			return found, err
		}
		if !isEnding(line) {
			continue
		}
		var end ending
		if err := json.Unmarshal(line, &end); err != nil {
			return found, err
		}
		found = end.Moment
	}
}

// isEnding reports whether a line ends a moment.
func isEnding(line []byte) bool { return bytes.HasPrefix(line, []byte(`{"moment":`)) }

// At returns the cluster as it was at a time: the last moment up to then.
func (r *Recording) At(ctx context.Context, t time.Time, opts files.Options) (Moment, error) {
	for moment, err := range r.From(ctx, t, opts) {
		return moment, err
	}
	return Moment{}, r.outside(ctx, t)
}

// Last returns the last moment.
func (r *Recording) Last(ctx context.Context, opts files.Options) (Moment, error) {
	_, to, err := r.Range(ctx)
	if err != nil {
		return Moment{}, err
	}
	return r.At(ctx, to, opts)
}

func (r *Recording) outside(ctx context.Context, t time.Time) error {
	from, to, err := r.Range(ctx)
	if err != nil {
		return err
	}
	return &RangeError{Path: r.path, At: t, From: from, To: to}
}

// From yields the cluster as it was at a time, and then each later moment. Nothing but a
// [RangeError] comes if the time is before the first moment or after the last. An error is the
// last that is yielded.
func (r *Recording) From(ctx context.Context, t time.Time, opts files.Options) iter.Seq2[Moment, error] {
	return func(yield func(Moment, error) bool) {
		from, to, err := r.Range(ctx)
		switch {
		case err == nil && (t.Before(from) || t.After(to)):
			err = &RangeError{Path: r.path, At: t, From: from, To: to}
		case err == nil:
			err = r.play(ctx, t, to, opts, func(m Moment) bool { return yield(m, nil) })
			if err != nil {
				err = r.wrong(err)
			}
		}
		if err != nil {
			yield(Moment{}, err)
		}
	}
}

// play reads the file from the segment on in which a time is.
func (r *Recording) play(ctx context.Context, t, to time.Time, opts files.Options, yield func(Moment) bool) error {
	start := r.segments[at(r.segments, t)].offset
	end := r.segments[len(r.segments)-1]
	l, err := newLines(io.NewSectionReader(r.file, start, end.offset+end.size-start))
	if err != nil {
		return err
	}
	defer l.close()
	p := &player{ctx: ctx, name: r.path, lines: l, opts: opts, changed: map[key]*changed{}}
	for begun := false; ; {
		next, err := p.next()
		if err != nil {
			return err
		}
		if p.repeats(next) {
			continue
		}
		if p.begins && next.Missed == nil && !p.entered.Moment.IsZero() {
			// It is another recording, which somebody appended.
			next.Missed = &Missed{Since: p.entered.Moment, Reason: notRecorded}
		}
		if !begun && next.Moment.After(t) {
			begun = true
			m, err := p.moment()
			if err != nil {
				return err
			}
			if next.Missed != nil && t.After(next.Missed.Since) {
				m.After = next.Missed
			} else if t.After(m.Snapshot.TakenAt) {
				m.Snapshot.TakenAt, m.Missed = t, nil
			}
			if !yield(m) {
				return nil
			}
		}
		if err := p.enter(next); err != nil {
			return err
		}
		last := !next.Moment.Before(to)
		if !begun && !last {
			continue
		}
		begun = true
		m, err := p.moment()
		if err != nil || !yield(m) || last {
			return err
		}
	}
}
