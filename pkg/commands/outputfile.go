// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// outputFile is the file that a verb writes: an empty path stands for standard output.
type outputFile struct {
	path string
	// force overwrites a file that exists.
	force bool
}

// isRegular reports whether the output is, or becomes, a regular file.
func (f outputFile) isRegular() bool { return f.path != "" && !isSpecial(f.path) }

// write returns as soon as the context is canceled, even while nobody reads the output. It
// never leaves an incomplete file.
func (f outputFile) write(ctx context.Context, out io.Writer, write func(io.Writer) error) error {
	switch {
	case f.path == "":
		return untilCanceled(ctx, func() error { return write(out) })
	case isSpecial(f.path):
		return untilCanceled(ctx, func() error { return writeSpecial(f.path, write) })
	default:
		return files.SaveWhole(ctx, f.path, write)
	}
}

// untilCanceled stops waiting for an uninterruptible call when the context ends.
func untilCanceled(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("save: %w", ctx.Err())
	}
}

// isSpecial reports whether a path is a device, a pipe or a socket, which is written to and
// not replaced.
func isSpecial(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

func writeSpecial(path string, write func(io.Writer) error) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("save: %w", err)
	}
	defer func() {
		if closing := file.Close(); err == nil && closing != nil {
			err = fmt.Errorf("save: %w", closing)
		}
	}()
	return write(file)
}

// check fails before anything is read if the file could not be written. The hint says which endings
// a name may have.
func (f outputFile) check(hint string, ends func(name string) bool) error {
	if !f.isRegular() {
		return nil
	}
	directory := filepath.Dir(f.path)
	info, err := os.Stat(directory)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("save %s: %s: no such directory", f.path, directory)
	case err != nil:
		return fmt.Errorf("save %s: %w", f.path, err)
	case !info.IsDir():
		return fmt.Errorf("save %s: %s is not a directory", f.path, directory)
	case !ends(strings.ToLower(f.path)):
		return cli.Usagef(hint, "save %s: unknown format", f.path)
	}
	info, err = os.Lstat(f.path)
	switch {
	case err == nil && info.IsDir():
		return cli.Usagef("Name a file.", "save %s: it is a directory", f.path)
	case err == nil && !f.force:
		return cli.Usagef("Choose another name, or overwrite it with --force.", "save %s: it exists", f.path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("save %s: %w", f.path, err)
	}
	return nil
}
