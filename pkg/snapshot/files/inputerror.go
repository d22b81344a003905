// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// InputError tells that the input, not the program or the cluster, is wrong,
// and where. [Load] and [Manifests] return it for everything that the author of
// the files can fix.
type InputError struct {
	// Path is the file as the user named it, or "standard input". A file in an
	// archive is "archive.tar.gz:inner.yaml".
	Path string
	// Document counts the documents of the file that have content, from 1. It
	// is 0 if the error concerns the file as a whole.
	Document int
	// Object names the object: its kind and name, its position in a List, or
	// as much of these as is known.
	Object string
	// Field is the path of the field in the object: "spec.devices.requests[0].name".
	Field string
	// Err describes the error and, where it can, the expected input.
	Err error
}

// Error returns the known place, then the error.
func (e *InputError) Error() string {
	var b strings.Builder
	b.WriteString("read ")
	b.WriteString(e.Path)
	if e.Document > 0 {
		b.WriteString(", document ")
		b.WriteString(strconv.Itoa(e.Document))
	}
	for _, part := range []string{e.Object, e.Field} {
		if part != "" {
			b.WriteString(": ")
			b.WriteString(part)
		}
	}
	b.WriteString(": ")
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap returns the error without the place.
func (e *InputError) Unwrap() error { return e.Err }

// place is where in the input an object was.
type place struct {
	file string
	// document counts from 1; item too, and is 0 outside of a List.
	document, item int
	list           string
}

func (p place) String() string {
	if p.item == 0 {
		return fmt.Sprintf("%s, document %d", p.file, p.document)
	}
	return fmt.Sprintf("%s, document %d, item %d", p.file, p.document, p.item)
}

// inputError places an error. at.item and what becomes the name of the object.
func inputError(at place, what string, err error) *InputError {
	e := &InputError{Path: at.file, Document: at.document, Object: what, Err: err}
	if at.item > 0 {
		e.Object = fmt.Sprintf("item %d of %s", at.item, at.list)
		if what != "" {
			e.Object += " (" + what + ")"
		}
	}
	var field *kinds.FieldError
	if errors.As(err, &field) {
		e.Field, e.Err = field.Path, field.Err
	}
	return e
}

// fileError describes an error of a file without repeating its name.
func fileError(path string, err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return &InputError{Path: path, Err: err}
}
