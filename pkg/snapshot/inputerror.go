// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"strconv"
	"strings"
)

// InputError tells that the input, not the program or the cluster, is wrong,
// and where. [Load] and [LoadObjects] return it for everything that whoever
// wrote the files can fix.
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
	// Err says what is wrong and, where it can, what was expected.
	Err error
}

// Error has all that is known of the place, then what is wrong.
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

// Unwrap returns what is wrong without the place.
func (e *InputError) Unwrap() error { return e.Err }
