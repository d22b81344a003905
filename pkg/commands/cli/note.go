// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// PrintNotes prints notes that an answer lacks, a line each, beside the answer, so that a
// program that reads it does not stumble over them.
func PrintNotes(streams genericiooptions.IOStreams, notes ...string) error {
	return WriteNotes(streams.ErrOut, notes...)
}

// WriteNotes writes notes after the text that they belong to.
func WriteNotes(w io.Writer, notes ...string) error {
	for _, note := range notes {
		if _, err := fmt.Fprintf(w, "Note: %s\n", render.Escape(note)); err != nil {
			return fmt.Errorf("print a note: %w", err)
		}
	}
	return nil
}
