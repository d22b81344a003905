// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"
	"strings"
)

// FieldError tells which field of an object has a value of the wrong type.
type FieldError struct {
	Path string
	Err  error
}

// AtField places an error at the path of a field.
func AtField(path string, err error) *FieldError { return &FieldError{Path: path, Err: err} }

func (e *FieldError) Error() string {
	if e.Path == "" {
		return e.Err.Error()
	}
	return e.Path + ": " + e.Err.Error()
}

func (e *FieldError) Unwrap() error { return e.Err }

// SyntaxError is text that is not JSON.
type SyntaxError struct {
	Offset int64
	Err    error
}

func (e *SyntaxError) Error() string { return "not JSON: " + e.Err.Error() }

func (e *SyntaxError) Unwrap() error { return e.Err }

// Shortened quotes a text for an error.
func Shortened(text string) string {
	const longest = 80
	if len(text) > longest {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(text[:longest], ""))
	}
	return fmt.Sprintf("%q", text)
}

// ErrDuplicateKey is a field that an object has twice. Decoders disagree about
// which one counts.
var ErrDuplicateKey = errors.New("duplicate key: a field can only be there once")
