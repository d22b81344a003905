// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"context"
	"fmt"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/validate"
)

// Text is one document of a file as it is written, for those who judge how it is
// written.
type Text struct {
	// File is the file as the user named it, or what standard input is called.
	File string
	// LinesBefore counts the lines of the file before the document.
	LinesBefore int
	// Data is the document, JSON the same converted with the rules of kubectl.
	Data, JSON []byte
	// Err is why it could not be converted, as an [*InputError]; JSON is empty then.
	Err error
	// ErrLine is the line of the file where that is; 0 if it is not known.
	ErrLine int
}

// Texts finds the documents of files, by the rules and within the bounds of
// [Manifests]. Only what keeps a file from being read is an error, and is an
// [*InputError]; what is wrong with a document is noted with it.
func Texts(ctx context.Context, paths []string, opts Options) ([]Text, error) {
	if err := checkPaths(paths, asManifests); err != nil {
		return nil, err
	}
	r := reader{limits: defaultLimits(), stdin: opts.Stdin, stdinName: opts.StdinName, instead: opts.Instead, leftOut: opts.leftOut}
	if r.stdinName == "" {
		r.stdinName = stdinName
	}
	var texts []Text
	r.text = func(file string, data []byte) error {
		c := cutter{file: file, data: data, removedAt: len(data), whole: true}
		c.emit = func(p *part) error {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("read %s: %w", file, err)
			}
			texts = append(texts, textOf(file, p))
			return nil
		}
		for {
			more, err := c.next()
			if err != nil {
				return err
			}
			if !more {
				return nil
			}
		}
	}
	for _, path := range paths {
		if err := r.path(path); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

func textOf(file string, p *part) Text {
	text := Text{File: file, LinesBefore: p.linesBefore, Data: bytes.Clone(p.data)}
	switch {
	case len(p.data) > validate.MaxDocument:
		text.Err = inputError(p.at, "", validate.TooLarge(len(p.data)))
	case !p.yaml:
		text.JSON = text.Data
	default:
		converted, err := yamlToJSON(p.data)
		if err != nil {
			text.Err = inputError(p.at, "", yamlError(err, p.data, p.linesBefore))
			text.ErrLine = yamlErrorLine(err, p.linesBefore)
		} else {
			text.JSON = converted
		}
	}
	return text
}
