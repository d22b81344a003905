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
	"io/fs"
	"os"
	"reflect"
	"time"

	"github.com/klauspost/compress/zstd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

const (
	// windowSize is how far back the compressor looks for similar text.
	windowSize = 8 << 20
	// segmentFactor is how many times the size of its snapshot the changes of a segment take.
	segmentFactor = 4
	// smallestSegment is a size up to which no new one is begun.
	smallestSegment = 1 << 20
	// stillKnown is how often a moment is written although nothing changed, so that it is known
	// that nothing did.
	stillKnown = 10 * time.Second
)

// Limits bound a recording. What is oldest is removed, in pieces of up to an eighth of either.
type Limits struct {
	// Keep is how far back it goes at least, 0 for all of it.
	Keep time.Duration
	// Size is the largest size of the file in bytes, 0 for any.
	Size int64
}

// Writer writes a recording. After an error of a method, the file has all moments before.
type Writer struct {
	path   string
	limits Limits
	file   *os.File
	stream *zstd.Encoder
	// segments are the segments of the file, the last one is being written.
	segments []segment
	// size is the size of the file, base where the changes of the last segment begin.
	size, base int64
	sum        uint32
	// last is the last moment that was added, written is the time of the last one in the file.
	last    *snapshot.Snapshot
	written time.Time
	// missed goes with the next moment.
	missed *Missed
	// failed is true after an error.
	failed bool
	// Moments and Changes count the added moments and objects.
	Moments, Changes int
}

// OtherClusterError tells that a file is a recording of another cluster.
type OtherClusterError struct{ Path string }

func (e *OtherClusterError) Error() string {
	return fmt.Sprintf("record %s: it is a recording of another cluster", e.Path)
}

// Create begins a recording, or continues one of the same cluster: an incomplete moment at its end
// is removed, and the time in between is missed. The file is only readable by its owner. first is
// the first moment.
func Create(ctx context.Context, path string, first *snapshot.Snapshot, limits Limits) (w *Writer, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	if err := lock(file); err != nil {
		return nil, fmt.Errorf("record %s: another process writes to it", path)
	}
	w = &Writer{path: path, limits: limits, file: file}
	if w.size, err = file.Seek(0, io.SeekEnd); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if w.size > 0 {
		err := w.resume(ctx, first)
		if errors.Is(err, ErrEmpty) {
			// The recorder was killed in its first moment.
			err = w.truncate(0)
		}
		if err != nil {
			return nil, err
		}
	}
	if w.stream, err = zstd.NewWriter((*output)(w), zstd.WithWindowSize(windowSize), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false)); err != nil {
		return nil, err
	}
	return w, w.Add(first)
}

// resume removes an incomplete moment at the end, and notes since when nothing is known.
func (w *Writer) resume(ctx context.Context, first *snapshot.Snapshot) error {
	r, err := open(w.path, w.file, w.size)
	if err != nil {
		return err
	}
	last, err := r.Last(ctx, files.Options{})
	if err != nil {
		return err
	}
	if id, was := clusterID(first), clusterID(last.Snapshot); id != was && id != "" && was != "" {
		return &OtherClusterError{w.path}
	}
	w.missed = &Missed{Since: last.Snapshot.TakenAt, Reason: notRecorded}
	w.segments, w.written = r.segments, last.Snapshot.TakenAt
	end := r.segments[len(r.segments)-1]
	if err := w.truncate(end.offset + end.size); err != nil {
		return err
	}
	if !end.complete {
		// An empty block is the last one.
		if _, err := (*output)(w).Write([]byte{1, 0, 0}); err != nil {
			return err
		}
		w.segments[len(w.segments)-1].size += 3
	}
	return nil
}

// notRecorded is the reason for a time in which nobody recorded.
const notRecorded = "it was not recorded"

// truncate ends the file at a size, and writes from there on.
func (w *Writer) truncate(size int64) error {
	err := w.file.Truncate(size)
	if err == nil {
		w.size, err = w.file.Seek(size, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// clusterID returns what tells clusters apart, empty if it is not known.
func clusterID(s *snapshot.Snapshot) string {
	for _, namespace := range s.Namespaces {
		if namespace.Name == metav1.NamespaceSystem {
			return string(namespace.UID)
		}
	}
	return ""
}

// output writes to the file and counts the bytes.
type output Writer

func (o *output) Write(text []byte) (int, error) {
	n, err := o.file.Write(text)
	o.size += int64(n)
	if err != nil {
		return n, fmt.Errorf("record: %w", err)
	}
	return n, nil
}

// Add adds the cluster as it is, if anything changed or if that was last known some time ago. It
// is in the file when Add returns.
func (w *Writer) Add(s *snapshot.Snapshot) error { return w.add(s, false) }

// AddAfter is like Add, for the first state after a time in which the cluster was not watched.
func (w *Writer) AddAfter(missed Missed, s *snapshot.Snapshot) error {
	w.missed = &missed
	return w.add(s, true)
}

func (w *Writer) add(s *snapshot.Snapshot, always bool) error {
	// Without what only the clock of this process knows, see package time.
	wall := *s
	if wall.TakenAt = s.TakenAt.Round(0); !wall.TakenAt.After(w.written) {
		// The clock was set back.
		wall.TakenAt = w.written.Add(time.Nanosecond)
	}
	s = &wall
	good := w.size
	err := w.write(s, always)
	if err != nil {
		// A part of a moment does not count anyway; without it there is room on a full disk.
		_ = w.truncate(good)
		w.failed = true
		return err
	}
	w.last = s
	return nil
}

func (w *Writer) write(s *snapshot.Snapshot, always bool) error {
	if w.last == nil {
		return w.begin(s)
	}
	var text bytes.Buffer
	changes, err := appendChanges(&text, w.last, s)
	if err != nil {
		return err
	}
	header := files.Header(s)
	header.TakenAt = nil
	before := files.Header(w.last)
	before.TakenAt = nil
	end := ending{Moment: s.TakenAt, Missed: w.missed}
	if !reflect.DeepEqual(header, before) {
		end.Header = &header
	}
	if changes == 0 && end.Header == nil && !always && s.TakenAt.Sub(w.written) < stillKnown {
		return nil
	}
	if err := w.end(text.Bytes(), end); err != nil {
		return err
	}
	w.Changes += changes
	if w.full(s.TakenAt) {
		return w.begin(s)
	}
	return nil
}

// end writes lines and the ending of the moment.
func (w *Writer) end(lines []byte, end ending) error {
	w.sum = sumOf(w.sum, lines)
	line, err := end.line(w.sum)
	if err != nil {
		return err
	}
	w.sum = sumOf(w.sum, line)
	for _, text := range [][]byte{lines, line} {
		if _, err := w.stream.Write(text); err != nil {
			return err
		}
		// The ending is in one block: it is there as a whole or not at all.
		if err := w.stream.Flush(); err != nil {
			return err
		}
	}
	if err := w.file.Sync(); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	w.written, w.missed = end.Moment, nil
	w.Moments++
	return nil
}

// full reports whether a new segment is due.
func (w *Writer) full(now time.Time) bool {
	start := w.segments[len(w.segments)-1]
	snap, changes := w.base-start.offset, w.size-w.base
	switch {
	case w.limits.Size > 0 && snap+changes > w.limits.Size/8 && changes > snap,
		w.limits.Keep > 0 && now.Sub(start.begins) > w.limits.Keep/8 && changes > 0:
		return true
	default:
		return changes > segmentFactor*max(snap, smallestSegment/segmentFactor)
	}
}

// begin begins a segment with the snapshot, and removes old ones.
func (w *Writer) begin(s *snapshot.Snapshot) error {
	if len(w.segments) > 0 && w.last != nil {
		if err := w.stream.Close(); err != nil {
			return err
		}
		w.segments[len(w.segments)-1].size = w.size - w.segments[len(w.segments)-1].offset
	}
	w.stream.Reset((*output)(w))
	if _, err := w.stream.Write([]byte{'\n'}); err != nil {
		return err
	}
	w.sum = 0
	start := segment{offset: w.size, begins: s.TakenAt}
	first := opening{Format: Format, Begins: s.TakenAt}
	first.APIVersion, first.Kind = api.APIVersion, Kind
	line, err := json.Marshal(first)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	text.Write(append(line, '\n'))
	if err := files.Write(&text, s, files.JSON); err != nil {
		return err
	}
	w.segments = append(w.segments, start)
	if err := w.end(text.Bytes(), ending{Moment: s.TakenAt, Missed: w.missed}); err != nil {
		return err
	}
	w.base = w.size
	if needed := 2 * (w.base - start.offset); w.limits.Size > 0 && needed > w.limits.Size {
		return fmt.Errorf("record %s: the cluster takes %s, expected at most half of the largest size of the file", w.path, inMiB(w.base-start.offset))
	}
	return w.drop(s.TakenAt)
}

func inMiB(size int64) string { return fmt.Sprintf("%.1f MiB", float64(size)/(1<<20)) }

// drop removes the segments that are too old or too much. The file is replaced as a whole.
func (w *Writer) drop(now time.Time) (err error) {
	first := 0
	for ; first < len(w.segments)-1; first++ {
		next := w.segments[first+1]
		tooOld := w.limits.Keep > 0 && now.Sub(next.begins) >= w.limits.Keep
		if tooMuch := w.limits.Size > 0 && w.size-w.segments[first].offset > w.limits.Size*7/8; !tooOld && !tooMuch {
			break
		}
	}
	if first == 0 {
		return nil
	}
	offset := w.segments[first].offset
	next, err := os.OpenFile(w.path+".next", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	defer func() {
		if err != nil {
			_ = next.Close()
			_ = os.Remove(next.Name())
		}
	}()
	_, err = io.Copy(next, io.NewSectionReader(w.file, offset, w.size-offset))
	if err == nil {
		err = next.Sync()
	}
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	// Not every system renames open files.
	for _, file := range []*os.File{next, w.file} {
		if err := file.Close(); err != nil {
			return fmt.Errorf("record: %w", err)
		}
	}
	// Where somebody reads the file, some systems do not rename to it: then it is tried again with
	// the next segment.
	renamed := os.Rename(next.Name(), w.path)
	if w.file, err = os.OpenFile(w.path, os.O_RDWR, 0o600); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if err := lock(w.file); err != nil {
		return fmt.Errorf("record %s: another process writes to it", w.path)
	}
	if renamed != nil {
		_ = os.Remove(next.Name())
		_, err = w.file.Seek(w.size, io.SeekStart)
		return err
	}
	if _, err := w.file.Seek(w.size-offset, io.SeekStart); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	w.size, w.base = w.size-offset, w.base-offset
	w.segments = w.segments[first:]
	for i := range w.segments {
		w.segments[i].offset -= offset
	}
	return nil
}

// Size returns the size of the file in bytes.
func (w *Writer) Size() int64 { return w.size }

// Begins returns the time of the first moment of the file.
func (w *Writer) Begins() time.Time { return w.segments[0].begins }

// Close adds the last moment once more, at the time until which nothing changed, and closes the
// file. The zero time stands for a time that is not known.
func (w *Writer) Close(until time.Time) error {
	var err error
	if until = until.Round(0); !w.failed && until.After(w.written) {
		last := *w.last
		last.TakenAt = until
		err = w.add(&last, true)
	}
	if !w.failed {
		err = w.stream.Close()
	}
	if closing := w.file.Close(); err == nil && closing != nil && !errors.Is(closing, fs.ErrClosed) {
		err = fmt.Errorf("record: %w", closing)
	}
	return err
}

// appendChanges writes the lines about the objects that differ, and counts them.
func appendChanges(text *bytes.Buffer, before, after *snapshot.Snapshot) (int, error) {
	encoder := json.NewEncoder(text)
	count := 0
	for _, list := range files.Lists() {
		for was, is := range list.Changes(before, after) {
			line, differs, err := changeBetween(list, was, is)
			if err != nil {
				return 0, err
			}
			if !differs {
				continue
			}
			if err := encoder.Encode(line); err != nil {
				return 0, err
			}
			count++
		}
	}
	return count, nil
}

// changeBetween returns the line about an object; nil stands for no object.
func changeBetween(list files.List, was, is metav1.Object) (line change, differs bool, err error) {
	if is == nil {
		line = changeOf(list.Name, was)
		line.Removed = true
		return line, true, nil
	}
	line = changeOf(list.Name, is)
	if line.Put, err = encode(list, is); err != nil || was == nil {
		return line, true, err
	}
	before, err := encode(list, was)
	if err != nil || bytes.Equal(before, line.Put) {
		return line, false, err
	}
	one, err := parse(before)
	if err != nil {
		return line, false, err
	}
	other, err := parse(line.Put)
	if err != nil {
		return line, false, err
	}
	if patch, ok := difference(one, other); ok {
		line.Put = nil
		line.Patch, err = json.Marshal(patch)
	}
	return line, true, err
}

// encode returns what an object is saved as.
func encode(list files.List, object metav1.Object) ([]byte, error) {
	manifest, err := list.Manifest(object)
	if err != nil {
		return nil, err
	}
	return json.Marshal(manifest)
}
