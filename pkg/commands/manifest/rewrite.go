// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// changeable returns the text of a file that may be changed: a named file, or a file in a
// named directory to which no link leads. It is nil for others.
func changeable(path string, named []string) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || !slices.Contains(named, path) && !insideOf(path, named) {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return text
}

// insideOf reports whether a file is in one of the directories, not by way of a link.
func insideOf(path string, named []string) bool {
	return slices.ContainsFunc(named, func(dir string) bool {
		below, err := filepath.Rel(dir, path)
		if err != nil || below == ".." || strings.HasPrefix(below, ".."+string(filepath.Separator)) {
			return false
		}
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			return false
		}
		root, err := filepath.EvalSymlinks(dir)
		return err == nil && target == filepath.Join(root, below)
	})
}

// rewrite gives a file another text. The file stays the same one, with its owner, its
// permissions and all of its names. A copy of the new text stands beside it until that is
// written, so that whatever happens, one of the two is whole.
func rewrite(path string, before, after []byte) (err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if text, err := os.ReadFile(path); err != nil || !bytes.Equal(text, before) {
		return errors.Join(err, errors.New("the file changed while it was checked; nothing was written to it"))
	}
	spare, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = spare.Write(after)
	if err = errors.Join(err, spare.Sync(), spare.Close()); err == nil {
		if _, err = file.WriteAt(after, 0); err == nil {
			err = errors.Join(file.Truncate(int64(len(after))), file.Sync())
		}
		if err != nil {
			return fmt.Errorf("%w; the whole new text is in %s", err, spare.Name())
		}
	}
	return errors.Join(err, os.Remove(spare.Name()))
}
