// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	securejoin "github.com/cyphar/filepath-securejoin"
)

// Default paths of the kubelet and of container runtimes.
const (
	DefaultRoot    = "/"
	DefaultKubelet = "/var/lib/kubelet"
)

// DefaultCDI returns the directories that container runtimes read CDI specs from.
func DefaultCDI() []string { return []string{"/etc/cdi", "/var/run/cdi"} }

// Host is a node as seen from here. Paths are paths on the node: in a container that has
// the node's root at /host, /dev/nvidia0 of the node is /host/dev/nvidia0 here.
type Host struct {
	// Name is the name of the node in the cluster; empty to find it out, see [Host.In].
	Name string
	// Root is the mount point of the node's root.
	Root string
	// Kubelet is the root directory of the kubelet (--root-dir).
	Kubelet string
	// CDI are the directories with CDI specs.
	CDI []string
}

// NewHost returns a host with defaults for empty arguments.
func NewHost(root, kubelet string, cdi []string) *Host {
	h := &Host{Root: root, Kubelet: kubelet, CDI: cdi}
	if h.Root == "" {
		h.Root = DefaultRoot
	}
	if h.Kubelet == "" {
		h.Kubelet = DefaultKubelet
	}
	if len(h.CDI) == 0 {
		h.CDI = DefaultCDI()
	}
	return h
}

// Here returns the path from here of a path on the node. Links are resolved as the node
// would, and never lead out of its root. It fails for a loop of links.
func (h *Host) Here(path string) (string, error) {
	here, err := securejoin.SecureJoin(h.Root, path)
	var inner *fs.PathError
	switch {
	case errors.As(err, &inner):
		// The path of the error is the path from here.
		return "", fmt.Errorf("resolve %s: %w", path, inner.Err)
	case err != nil:
		return "", fmt.Errorf("resolve %s: %w", path, err)
	}
	return here, nil
}

// TooLargeError means that a file is larger than the limit.
type TooLargeError struct {
	Path  string
	Limit int64
}

// Error names the file.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s is larger than %d bytes, and %v", e.Path, e.Limit, ErrNotRead)
}

// Unwrap returns ErrNotRead.
func (e *TooLargeError) Unwrap() error { return ErrNotRead }

// ErrNotRegular means that a path is no regular file.
var ErrNotRegular = errors.New("is not a regular file")

// ErrNotDirectory means that a path is no directory.
var ErrNotDirectory = errors.New("is not a directory")

// opener opens paths of this machine: package os, or an [os.Root].
type opener struct {
	stat func(string) (fs.FileInfo, error)
	open func(string, int, fs.FileMode) (*os.File, error)
}

// open opens a path of the node if right accepts the file. It never blocks, not even on a
// pipe that is put there meanwhile.
func (h *Host) open(path string, right func(fs.FileInfo) error) (*os.File, error) {
	here, err := h.Here(path)
	if err != nil {
		return nil, err
	}
	return h.openBy(opener{os.Stat, os.OpenFile}, path, here, right)
}

// openBy opens a path of the node by an opener's name for it.
func (h *Host) openBy(by opener, path, here string, right func(fs.FileInfo) error) (*os.File, error) {
	info, err := by.stat(here)
	if err != nil {
		return nil, h.named(path, err)
	}
	if err := right(info); err != nil {
		return nil, err
	}
	file, err := by.open(here, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, h.named(path, err)
	}
	if info, err = file.Stat(); err == nil {
		err = right(info)
	}
	if err != nil {
		_ = file.Close()
		return nil, h.named(path, err)
	}
	return file, nil
}

// ReadFile reads a file of at most so many bytes. It never blocks: files that are not
// regular, such as pipes, are not opened.
func (h *Host) ReadFile(path string, limit int64) ([]byte, error) {
	file, err := h.open(path, readable(path, limit))
	if err != nil {
		return nil, err
	}
	return h.read(file, path, limit)
}

// ReadFileIn is like ReadFile, for a directory that others than root may write to: a link
// is only followed within the directory. A link that leads out is an [ErrNotRead], so that
// root does not read a file for somebody else.
func (h *Host) ReadFileIn(dir, path string, limit int64) ([]byte, error) {
	inside, err := h.Here(dir)
	if err != nil {
		return nil, err
	}
	here, err := h.Here(path)
	if err != nil {
		return nil, err
	}
	relative, leaves, err := below(inside, here)
	switch {
	case err != nil:
		return nil, fmt.Errorf("compare %s with %s: %w", path, dir, err)
	case leaves:
		if _, err := os.Stat(here); errors.Is(err, fs.ErrNotExist) {
			return nil, h.named(path, err)
		}
		return nil, fmt.Errorf("it leads out of %s to %s, and %w", dir, h.there(here), ErrNotRead)
	}
	// The links were resolved above; the root keeps a link that was put there since from
	// leading out.
	root, err := os.OpenRoot(inside)
	if err != nil {
		return nil, h.named(dir, err)
	}
	defer func() { _ = root.Close() }()
	file, err := h.openBy(opener{root.Stat, root.OpenFile}, path, relative, readable(path, limit))
	if err != nil {
		return nil, err
	}
	return h.read(file, path, limit)
}

// readable rejects files that are not regular or too large.
func readable(path string, limit int64) func(fs.FileInfo) error {
	return func(info fs.FileInfo) error {
		switch {
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s %w", path, ErrNotRegular)
		case info.Size() > limit:
			return &TooLargeError{path, limit}
		}
		return nil
	}
}

// read reads an open file and closes it.
func (h *Host) read(file *os.File, path string, limit int64) ([]byte, error) {
	defer func() { _ = file.Close() }()
	// The file may have grown since, and files of the kernel have no size.
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, h.named(path, err)
	}
	if int64(len(data)) > limit {
		return nil, &TooLargeError{path, limit}
	}
	return data, nil
}

// maxEntries limits the entries of a directory.
const maxEntries = 10000

// ReadDir lists a directory by name. It fails for more than 10,000 entries, and for files.
func (h *Host) ReadDir(path string) ([]fs.DirEntry, error) {
	dir, err := h.open(path, func(info fs.FileInfo) error {
		if !info.IsDir() {
			return fmt.Errorf("%s %w", path, ErrNotDirectory)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	entries, err := dir.ReadDir(maxEntries + 1)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, h.named(path, err)
	case len(entries) > maxEntries:
		return nil, fmt.Errorf("%s has more than %d entries, and %w", path, maxEntries, ErrNotRead)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// Stat describes the file at a path. Links are followed within the node.
func (h *Host) Stat(path string) (fs.FileInfo, error) {
	here, err := h.Here(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(here)
	if err != nil {
		return nil, h.named(path, err)
	}
	return info, nil
}

// Leaves reports whether a path is a link, or is below one, that leads out of a directory
// of the node, and returns its target.
func (h *Host) Leaves(path, dir string) (target string, leaves bool, err error) {
	here, err := h.Here(path)
	if err != nil {
		return "", false, err
	}
	inside, err := h.Here(dir)
	if err != nil {
		return "", false, err
	}
	_, leaves, err = below(inside, here)
	if err != nil {
		return "", false, fmt.Errorf("compare %s with %s: %w", path, dir, err)
	}
	return h.there(here), leaves, nil
}

// below returns a path as seen from a directory, and whether it is outside of it. Both have
// no links.
func below(dir, path string) (relative string, leaves bool, err error) {
	if relative, err = filepath.Rel(dir, path); err != nil {
		return "", false, err
	}
	return relative, relative == ".." || strings.HasPrefix(relative, ".."+string(filepath.Separator)), nil
}

// there returns the node's path for a path of this machine.
func (h *Host) there(here string) string {
	return "/" + strings.TrimPrefix(strings.TrimPrefix(here, filepath.Clean(h.Root)), "/")
}

// named replaces the path from here in an error by the path on the node.
func (h *Host) named(path string, err error) error {
	var inner *fs.PathError
	if errors.As(err, &inner) {
		return &fs.PathError{Op: inner.Op, Path: path, Err: inner.Err}
	}
	return err
}

// JSONFault returns an error of package json without the content of the file, which may be
// secret.
func JSONFault(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it is not JSON: it ends too early")
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON from byte %d on", syntax.Offset)
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("field %s has another type than expected, at byte %d", kind.Field, kind.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("a value has another type than expected, at byte %d", kind.Offset)
	default:
		return errors.New("it is not JSON")
	}
}

var (
	errNotSocket = errors.New("is no socket")
	errTooLong   = errors.New("the path is longer than this system can connect to")
)

// ErrNotRead means that something was not read, so that nothing is known of it.
var ErrNotRead = errors.New("was not read")
