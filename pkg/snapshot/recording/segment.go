// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// segment is a frame of the file.
type segment struct {
	// offset and size are where it is in the file, in bytes. What follows it was cut off.
	offset, size int64
	// complete is false if the frame has no last block.
	complete bool
	begins   time.Time
}

// maxWindow bounds how much memory a file can make the decompressor use.
const maxWindow = 64 << 20

// magic begins each frame.
func magic() []byte { return []byte{0x28, 0xb5, 0x2f, 0xfd} }

// Is reports whether a file that begins like this is compressed as recordings are.
func Is(head []byte) bool { return bytes.HasPrefix(head, magic()) }

// errCut is the end of a frame where nothing has gone wrong but that the rest is not there.
var errCut = errors.New("cut off")

// segmentsOf finds the frames without decompressing them, by the sizes of their blocks (RFC 8878,
// section 3.1.1).
func segmentsOf(file io.ReaderAt, size int64) ([]segment, error) {
	var list []segment
	for offset := int64(0); offset < size; {
		s := segment{offset: offset}
		err := s.measure(file, size)
		if err != nil && !errors.Is(err, errCut) {
			return nil, fmt.Errorf("damaged at byte %d: %w", offset+s.size, err)
		}
		s.complete = err == nil
		if s.begins, err = beginOf(file, s); err != nil {
			// Not even the first line of it is there.
			if !s.complete && len(list) > 0 && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
				break
			}
			return nil, err
		}
		if n := len(list); n > 0 && s.begins.Before(list[n-1].begins) {
			return nil, fmt.Errorf("at byte %d a part begins at %s, before the part in front of it", offset, s.begins.Local().Format(time.RFC3339))
		}
		list = append(list, s)
		if !s.complete {
			break
		}
		offset += s.size
	}
	return list, nil
}

// measure finds the size of a frame, or of its complete blocks.
func (s *segment) measure(file io.ReaderAt, size int64) error {
	rest := bufio.NewReader(io.NewSectionReader(file, s.offset, size-s.offset))
	// A short head is one that was cut off.
	head, _ := rest.Peek(zstd.HeaderMaxSize)
	var header zstd.Header
	switch err := header.Decode(head); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errCut
	case err != nil:
		return err
	case header.Skippable:
		return errors.New("expected a frame with text")
	}
	if _, err := rest.Discard(header.HeaderSize); err != nil {
		return errCut
	}
	s.size = int64(header.HeaderSize)
	for last := false; !last; {
		block, err := rest.Peek(3)
		if err != nil {
			return errCut
		}
		word := int(block[0]) | int(block[1])<<8 | int(block[2])<<16
		length := word >> 3
		last = word&1 != 0
		// A run of one byte has its length here, and one byte.
		if word>>1&3 == 1 {
			length = 1
		}
		if last && header.HasCheckSum {
			length += 4
		}
		if n, err := rest.Discard(3 + length); err != nil || n < 3+length {
			return errCut
		}
		s.size += int64(3 + length)
	}
	return nil
}

// beginOf reads the first line of a segment.
func beginOf(file io.ReaderAt, s segment) (time.Time, error) {
	l, err := newLines(io.NewSectionReader(file, s.offset, s.size))
	if err != nil {
		return time.Time{}, err
	}
	defer l.close()
	line, err := l.next()
	if err == nil && len(line) == 1 {
		line, err = l.next()
	}
	if err != nil {
		return time.Time{}, err
	}
	o, err := openingOf(line)
	if err == nil && !isOpening(line) {
		err = fmt.Errorf("expected a line that begins with kind %s, found %s", Kind, kinds.Shortened(string(bytes.TrimSpace(line))))
	}
	return o.Begins, err
}

// openingOf decodes the first line of a segment.
func openingOf(line []byte) (opening, error) {
	var o opening
	if err := json.Unmarshal(line, &o); err != nil || o.Kind != Kind {
		return o, fmt.Errorf("expected a line of kind %s, found %s", Kind, kinds.Shortened(string(bytes.TrimSpace(line))))
	}
	if o.APIVersion != api.APIVersion || o.Format > Format {
		return o, fmt.Errorf("it has format %d of %s, and this program reads up to %d of %s: a newer version of it wrote the file", o.Format, o.APIVersion, Format, api.APIVersion)
	}
	if o.Format < 1 || o.Begins.IsZero() {
		return o, fmt.Errorf("expected a format and the time when it begins, found %s", kinds.Shortened(string(bytes.TrimSpace(line))))
	}
	return o, nil
}

// lines reads the lines of segments.
type lines struct {
	stream *zstd.Decoder
	text   *bufio.Reader
	long   []byte
}

func newLines(from io.Reader) (*lines, error) {
	stream, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	return &lines{stream: stream, text: bufio.NewReaderSize(stream, 256<<10)}, nil
}

func (l *lines) close() { l.stream.Close() }

// next returns the next line with its end. It is valid until the next call. The error is
// io.EOF or io.ErrUnexpectedEOF after the last complete one.
func (l *lines) next() ([]byte, error) {
	l.long = l.long[:0]
	for {
		part, err := l.text.ReadSlice('\n')
		if err == nil && len(l.long) == 0 {
			return part, nil
		}
		l.long = append(l.long, part...)
		switch {
		case err == nil:
			return l.long, nil
		case errors.Is(err, io.EOF) && len(l.long) > 0:
			return nil, io.ErrUnexpectedEOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(l.long) > kinds.MaxDocument:
			return nil, kinds.TooLarge(len(l.long))
		}
	}
}

// at returns the last segment that begins at or before a time, the first one if none does.
func at(segments []segment, t time.Time) int {
	n, _ := slices.BinarySearchFunc(segments, t, func(s segment, t time.Time) int {
		if s.begins.After(t) {
			return 1
		}
		return -1
	})
	return max(0, n-1)
}
