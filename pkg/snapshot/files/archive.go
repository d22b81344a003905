// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// limits bound what an input may cost.
type limits struct {
	// bytes is how much text all files together may have, after decompression.
	bytes int64
	// unpacked is how much of that may come out of compressed files and
	// archives, which are small until then.
	unpacked int64
	// memory is the limit for the memory of everything made from the files. Large files may
	// take more, see [memoryPerByte].
	memory int64
	// unsized is how much text is read from where nobody knows how much will come: standard
	// input, pipes and devices.
	unsized int64
	// keep is how much of one compressed file is kept in memory before it is
	// known that all of it is within the limit.
	keep int64
	// entries is how many files one archive may have.
	entries int
}

func defaultLimits() limits {
	return limits{bytes: 2 << 30, unpacked: 512 << 20, memory: 768 << 20, unsized: 256 << 20, keep: 128 << 20, entries: 100_000}
}

// reader finds the texts in what the user named: files, the files of a
// directory, of an archive, or standard input.
type reader struct {
	limits limits
	stdin  io.Reader
	// stdinName is the name of stdin in errors.
	stdinName string
	// used counts the bytes that were read so far, and unpacked those that came
	// out of compressed files and archives.
	used, unpacked int64
	// leftOut is told of links that are not followed.
	leftOut func(note string)
	// size counts the bytes of the files themselves. May be nil.
	size *atomic.Int64
	// text gets each text and the name of its file.
	text func(file string, data []byte) error
	// part gets the parts of a file that is too large for that. Nil if all
	// files are to be read as a whole.
	part func(*part) error
}

// path reads one path as the user gave it.
func (r *reader) path(path string) error {
	if path == "-" {
		if r.stdin == nil {
			return nil
		}
		return r.unsizedText(r.stdinName, r.stdin)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fileError(path, err)
	}
	if !info.IsDir() {
		size := info.Size()
		if !info.Mode().IsRegular() {
			size = 0
		}
		return r.file(path, size)
	}
	root, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fileError(path, err)
	}
	return filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fileError(file, err)
		}
		if entry.IsDir() || !isInputName(file) {
			return nil
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			target, err := filepath.EvalSymlinks(file)
			if err != nil {
				return fileError(file, err)
			}
			if inside, err := filepath.Rel(root, target); err != nil || !filepath.IsLocal(inside) {
				r.leftOut(fmt.Sprintf("%s is not read: it is a link to %s, which is not in %s; name that to read it", file, target, path))
				return nil
			}
		}
		info, err := os.Stat(file)
		if err != nil {
			return fileError(file, err)
		}
		switch {
		case info.IsDir():
			return nil
		case !info.Mode().IsRegular():
			return &InputError{Path: file, Err: fmt.Errorf("expected a file, found %s; move it away, or name it to read it", modeInWords(info.Mode()))}
		}
		return r.file(file, info.Size())
	})
}

// modeInWords says what something is that is no file.
func modeInWords(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	default:
		return "something else"
	}
}

// isInputName reports whether a file of a directory or archive is read.
func isInputName(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), ".gz")
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json", ".tar", ".tgz":
		return true
	default:
		return false
	}
}

func (r *reader) file(path string, size int64) error {
	file, err := os.Open(path)
	if err != nil {
		return fileError(path, err)
	}
	defer func() { _ = file.Close() }()
	if size == 0 {
		return r.unsizedText(path, file)
	}
	head := make([]byte, headSize)
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fileError(path, err)
	}
	if err := checkHead(head[:n]); err != nil {
		return fileError(path, err)
	}
	r.grow(size)
	if r.part != nil && size <= r.limits.bytes-r.used {
		done, err := stream(path, file, size, r.part)
		if done {
			r.used += size
		}
		if done || err != nil {
			return err
		}
	}
	data, err := r.readAll(file, size)
	if err != nil {
		return fileError(path, err)
	}
	return r.content(path, data, 0, false)
}

func (r *reader) grow(size int64) {
	if r.size != nil {
		r.size.Add(size)
	}
}

// unsizedText reads what may not end.
func (r *reader) unsizedText(name string, from io.Reader) error {
	buffered := bufio.NewReaderSize(from, headSize)
	head, err := buffered.Peek(headSize)
	if err == nil || errors.Is(err, io.EOF) {
		err = checkHead(head)
	}
	if err != nil {
		return fileError(name, err)
	}
	left, depth, tooLarge := r.limits.bytes-r.used, 0, r.errTooLarge()
	from = buffered
	if bytes.HasPrefix(head, gzipMagic()) {
		if from, err = gzip.NewReader(buffered); err != nil {
			return fileError(name, gzipError(err))
		}
		depth = 1
		if unpacked := r.limits.unpacked - r.unpacked; unpacked < left {
			left, tooLarge = unpacked, r.errUnpacked()
		}
	}
	if r.limits.unsized < left {
		left = r.limits.unsized
		tooLarge = fmt.Errorf("it has more than %d MiB of text, and nobody knows whether it ends; save it to a file, and name that", left>>20)
	}
	data, err := readUpTo(from, left)
	switch {
	case err != nil && depth > 0:
		return fileError(name, gzipError(err))
	case err != nil:
		return fileError(name, err)
	case int64(len(data)) > left:
		return fileError(name, tooLarge)
	}
	r.used += int64(len(data))
	if depth > 0 {
		r.unpacked += int64(len(data))
	} else {
		r.grow(int64(len(data)))
	}
	return r.content(name, data, depth, depth > 0)
}

// readUpTo reads all there is, or one byte more than the limit.
func readUpTo(from io.Reader, limit int64) ([]byte, error) {
	data := make([]byte, min(limit+1, 4<<20))
	for count := 0; ; {
		n, err := from.Read(data[count:])
		count += n
		switch {
		case errors.Is(err, io.EOF), count > int(limit):
			return data[:count], nil
		case err != nil:
			return nil, err
		case count == len(data):
			// The system gives memory only for what is written to.
			data = append(make([]byte, 0, limit+1), data...)
			data = data[:cap(data)]
		}
	}
}

// headSize is how much of a file shows if it is text.
const headSize = 8 << 10

// checkHead fails if a file that begins like this has nothing to read.
func checkHead(head []byte) error {
	if bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
		return errors.New("it is a recording, or something else in Zstandard data; a recording is read alone, with one --snapshot")
	}
	if bytes.HasPrefix(head, gzipMagic()) || isTar(head) || utf16Order(head) != nil || !isBinary(head) {
		return nil
	}
	return errBinary()
}

func errBinary() error { return errors.New("expected YAML, JSON, gzip or tar, found binary data") }

func isTar(data []byte) bool { return len(data) > 262 && string(data[257:262]) == "ustar" }

// unpack counts what came out of a compressed file or an archive.
func (r *reader) unpack(size int64) error {
	if r.unpacked += size; r.unpacked > r.limits.unpacked {
		return r.errUnpacked()
	}
	return nil
}

func (r *reader) errUnpacked() error {
	return fmt.Errorf("it has more than %d MiB of text in compressed form; unpack it first", r.limits.unpacked>>20)
}

func (r *reader) errTooLarge() error {
	return fmt.Errorf("the input has more than %d MiB of text; load fewer objects, or files of one namespace or node pool",
		r.limits.bytes>>20)
}

// readAll reads up to the rest of the limit. The size is a hint.
func (r *reader) readAll(from io.Reader, size int64) ([]byte, error) {
	left := r.limits.bytes - r.used
	if size > left {
		return nil, r.errTooLarge()
	}
	var buffer bytes.Buffer
	buffer.Grow(int(max(size, 0)) + bytes.MinRead)
	count, err := buffer.ReadFrom(io.LimitReader(from, left+1))
	if err != nil {
		return nil, err
	}
	if count > left {
		return nil, r.errTooLarge()
	}
	r.used += count
	return buffer.Bytes(), nil
}

// maxWrapping bounds archives in archives.
const maxWrapping = 3

// content finds out what a file has, whatever its name, and unpacks it, unless it is
// inflated already.
func (r *reader) content(name string, data []byte, depth int, inflated bool) error {
	if depth > maxWrapping {
		return &InputError{Path: name, Err: fmt.Errorf("archives are nested more than %d deep", maxWrapping)}
	}
	switch {
	case bytes.HasPrefix(data, gzipMagic()):
		if inflated {
			return &InputError{Path: name, Err: errors.New("it is compressed twice: expected YAML, JSON or tar in the gzip data, found gzip data")}
		}
		text, err := r.inflate(data)
		if err != nil {
			return &InputError{Path: name, Err: err}
		}
		return r.content(name, text, depth+1, true)
	case isTar(data):
		return r.archive(name, data, depth)
	case isPage(data):
		packed, err := fromPage(data)
		if err != nil {
			return &InputError{Path: name, Err: err}
		}
		return r.content(name, packed, depth+1, false)
	}
	data, err := fromUTF16(data)
	if err != nil {
		return &InputError{Path: name, Err: err}
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if isBinary(data) {
		return &InputError{Path: name, Err: errBinary()}
	}
	return r.text(name, data)
}

func gzipMagic() []byte { return []byte{0x1f, 0x8b} }

// inflate decompresses a gzip file. What is larger than limits.keep is first
// only counted, so that a file which inflates without end is refused without
// keeping what it inflates to.
func (r *reader) inflate(data []byte) ([]byte, error) {
	left := min(r.limits.bytes-r.used, r.limits.unpacked-r.unpacked)
	keep := min(r.limits.keep, left+1)
	inflated, err := gunzip(data, keep)
	if err != nil {
		return nil, err
	}
	if int64(len(inflated)) == keep {
		inflated = nil
		size, err := countGunzip(data, left+1)
		if err != nil {
			return nil, err
		}
		if size > left {
			return nil, r.errUnpacked()
		}
		if inflated, err = gunzip(data, size); err != nil {
			return nil, err
		}
	}
	r.used += int64(len(inflated))
	return inflated, r.unpack(int64(len(inflated)))
}

// gunzip inflates up to limit bytes.
func gunzip(data []byte, limit int64) ([]byte, error) {
	stream, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, gzipError(err)
	}
	var buffer bytes.Buffer
	// The last four bytes of most files are the size. Deflate cannot shrink to
	// less than a thousandth.
	size := int64(binary.LittleEndian.Uint32(data[len(data)-4:]))
	buffer.Grow(int(min(size, limit, 1032*int64(len(data)))) + bytes.MinRead)
	if _, err := buffer.ReadFrom(io.LimitReader(stream, limit)); err != nil {
		return nil, gzipError(err)
	}
	return buffer.Bytes(), nil
}

func countGunzip(data []byte, limit int64) (int64, error) {
	stream, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return 0, gzipError(err)
	}
	size, err := io.Copy(io.Discard, io.LimitReader(stream, limit))
	if err != nil {
		return 0, gzipError(err)
	}
	return size, nil
}

func gzipError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("the gzip data ends early: it seems to be cut off: %w", err)
	}
	return fmt.Errorf("damaged gzip data: %w", err)
}

// archive reads the files of a tar archive that a directory would be read for.
func (r *reader) archive(name string, data []byte, depth int) error {
	files := tar.NewReader(bytes.NewReader(data))
	for entries := 0; ; entries++ {
		entry, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &InputError{Path: name, Err: tarError(err)}
		}
		if entries == r.limits.entries {
			return &InputError{Path: name, Err: fmt.Errorf("the archive has more than %d files", r.limits.entries)}
		}
		if entry.Typeflag != tar.TypeReg || !isInputName(entry.Name) {
			continue
		}
		inner := name + ":" + entry.Name
		if entry.Size > int64(len(data)) {
			return &InputError{Path: inner, Err: fmt.Errorf("the tar archive has less than the %d bytes of the file: it is cut off, or has a file with holes", entry.Size)}
		}
		content, err := r.readAll(files, entry.Size)
		if err == nil {
			err = r.unpack(int64(len(content)))
		}
		if err != nil {
			return &InputError{Path: inner, Err: tarError(err)}
		}
		if err := r.content(inner, content, depth+1, false); err != nil {
			return err
		}
	}
}

func tarError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the tar archive ends early: it seems to be cut off: %w", err)
	}
	return err
}

// isPage reports whether a text is a page of HTML, as 'kubectl dra report' writes it.
func isPage(data []byte) bool {
	const start = "<!doctype html>"
	return len(data) >= len(start) && bytes.EqualFold(data[:len(start)], []byte(start))
}

// fromPage returns the snapshot in a page, as gzipped JSON.
func fromPage(page []byte) ([]byte, error) {
	_, after, found := bytes.Cut(page, []byte(`href="`+snapshot.DataPrefix))
	text, _, ends := bytes.Cut(after, []byte(`"`))
	switch {
	case !found:
		return nil, errors.New("it is a page of HTML without a snapshot; 'kubectl dra report --with-snapshot' puts it in")
	case !ends:
		return nil, errors.New("the page ends within the snapshot: it seems to be cut off")
	}
	packed, err := base64.StdEncoding.DecodeString(html.UnescapeString(string(text)))
	if err == nil && !bytes.HasPrefix(packed, gzipMagic()) {
		err = errors.New("expected gzip data")
	}
	if err != nil {
		return nil, fmt.Errorf("the snapshot in the page is damaged: %w", err)
	}
	return packed, nil
}

// utf16Order returns the order of the bytes in text of that kind; nil for other text.
func utf16Order(data []byte) binary.ByteOrder {
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		return binary.LittleEndian
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return binary.BigEndian
	default:
		return nil
	}
}

// maxUTF16 is the largest text of that kind: it is converted as a whole.
const maxUTF16 = 64 << 20

// fromUTF16 converts what some Windows shells write for "> file".
func fromUTF16(data []byte) ([]byte, error) {
	order := utf16Order(data)
	if order == nil {
		return data, nil
	}
	if len(data) > maxUTF16 {
		return nil, fmt.Errorf("it has more than %d MiB of UTF-16 text; convert it to UTF-8", maxUTF16>>20)
	}
	text := make([]byte, 0, len(data)/2)
	for i := 2; i+1 < len(data); i += 2 {
		r := rune(order.Uint16(data[i:]))
		if utf16.IsSurrogate(r) && i+3 < len(data) {
			if pair := utf16.DecodeRune(r, rune(order.Uint16(data[i+2:]))); pair != utf8.RuneError {
				r = pair
				i += 2
			}
		}
		text = utf8.AppendRune(text, r)
	}
	return text, nil
}

// isBinary reports whether a file is binary, by its first headSize bytes.
func isBinary(data []byte) bool {
	head := data[:min(len(data), headSize)]
	if len(head) == headSize {
		head = head[:lastWhole(head)]
	}
	return bytes.IndexByte(head, 0) >= 0 || !utf8.Valid(head)
}

// lastWhole returns where the last character ends that is not cut in two.
func lastWhole(text []byte) int {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax); i-- {
		if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:]) {
			return i
		}
	}
	return len(text)
}
