// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxSaved limits how many expressions come back; the file has at most twice as many
	// before it is shortened.
	maxSaved = 500
	// maxSavedLine and maxSavedBytes bound what of a file is taken.
	maxSavedLine  = 10 << 10
	maxSavedBytes = 8 << 20
)

// savedExpressions is the file with the expressions that were entered in earlier prompts, the
// last one at the end. An empty one keeps nothing.
type savedExpressions struct{ path string }

// savedOfUser returns the file of this user: below XDG_STATE_HOME or where that is by
// default, on Windows below the local data of applications. It is empty if nobody says
// where.
func savedOfUser() savedExpressions {
	// By the XDG base directory specification, a path that is not absolute is ignored.
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		var err error
		if runtime.GOOS == "windows" {
			dir, err = os.UserCacheDir()
		} else {
			dir, err = os.UserHomeDir()
			dir = filepath.Join(dir, ".local", "state")
		}
		if err != nil || !filepath.IsAbs(dir) {
			return savedExpressions{}
		}
	}
	return savedExpressions{filepath.Join(dir, "kubectl-dra", "cel-history")}
}

// lines returns the expressions that were saved. There are none if the file cannot be read;
// lines that no prompt wrote are left out.
func (s savedExpressions) lines() []string {
	if s.path == "" {
		return nil
	}
	file, err := os.Open(s.path)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxSavedBytes))
	if err != nil {
		return nil
	}
	var lines []string
	for line := range bytes.Lines(text) {
		line := strings.TrimSpace(string(line))
		strange := strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) })
		if line == "" || len(line) > maxSavedLine || !utf8.ValidString(line) || strange {
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

// add saves one more expression.
func (s savedExpressions) add(line string) error {
	if s.path == "" || len(line) > maxSavedLine {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return fmt.Errorf("save the expression: %w", err)
	}
	file, err := os.OpenFile(s.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("save the expression: %w", err)
	}
	_, err = file.WriteString(line + "\n")
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("save the expression: %w", err)
	}
	return nil
}

// shorten leaves the last lines in a file that has become long.
func (s savedExpressions) shorten(lines []string) {
	info, err := os.Lstat(s.path)
	if len(lines) <= 2*maxSaved || err != nil || !info.Mode().IsRegular() {
		return
	}
	text := strings.Join(lines[len(lines)-maxSaved:], "\n") + "\n"
	other, err := os.CreateTemp(filepath.Dir(s.path), filepath.Base(s.path)+".*")
	if err != nil {
		return
	}
	_, err = other.WriteString(text)
	if err = errors.Join(err, other.Close()); err == nil {
		err = os.Rename(other.Name(), s.path)
	}
	if err != nil {
		_ = os.Remove(other.Name())
	}
}

// history returns what comes back at the start of a prompt.
func (s savedExpressions) history() promptHistory {
	lines := s.lines()
	s.shorten(lines)
	lines = slices.Compact(lines)
	lines = lines[max(0, len(lines)-maxSaved):]
	return promptHistory{lines: lines, at: len(lines)}
}
