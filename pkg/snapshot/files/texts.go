// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"go.yaml.in/yaml/v3"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// Text is one document of a file as it is written, for those who judge how it is
// written.
type Text struct {
	// File is the file as the user named it, or what standard input is called.
	File string
	// Found is true if the file was not named itself: it is in a directory that was.
	Found bool
	// LinesBefore counts the lines of the file before the document, Offset the bytes.
	LinesBefore, Offset int
	// Data is the document, JSON the same converted with the rules of kubectl.
	Data, JSON []byte
	// Err is why it could not be converted, as an [*InputError]; JSON is empty then.
	Err error
	// ErrLine is the line of the file where that is; 0 if it is not known.
	ErrLine int

	part *part
	root *lazyRoot
}

// lazyRoot is a document as nodes with positions, once they are needed.
type lazyRoot struct {
	once sync.Once
	node *yaml.Node
}

// Root returns the document as nodes with positions; nil if they cannot be told.
func (t *Text) Root() *yaml.Node {
	if t.root == nil || t.Err != nil {
		return nil
	}
	t.root.once.Do(func() { t.root.node = rootOf(t.Data) })
	return t.root.node
}

func rootOf(data []byte) (root *yaml.Node) {
	// What the parser does not know must not end the program.
	defer func() {
		if recover() != nil {
			root = nil
		}
	}()
	var document yaml.Node
	if yaml.Unmarshal(data, &document) != nil {
		// JSON may be indented by tabs.
		document = yaml.Node{}
		if yaml.Unmarshal(bytes.ReplaceAll(data, []byte("\t"), []byte(" ")), &document) != nil {
			return nil
		}
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		return nil
	}
	return document.Content[0]
}

// Texts finds the documents of files, by the rules and within the bounds of
// [Manifests]. Only what keeps a file from being read is an error, and is an
// [*InputError]; what is wrong with a document is noted with it.
func Texts(ctx context.Context, paths []string, opts Options) ([]Text, error) {
	if err := checkPaths(paths, asManifests); err != nil {
		return nil, err
	}
	r := reader{limits: defaultLimits(), stdin: opts.Stdin, stdinName: opts.StdinName, leftOut: opts.leftOut}
	if r.stdinName == "" {
		r.stdinName = stdinName
	}
	var parts []*part
	r.text = func(file string, data []byte) error {
		c := cutter{file: file, data: data, removedAt: len(data), whole: true}
		c.emit = func(p *part) error {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("read %s: %w", file, err)
			}
			parts = append(parts, p)
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
	texts := make([]Text, len(parts))
	OnAllProcessors(len(parts), func() func(int) {
		return func(i int) {
			if ctx.Err() == nil {
				texts[i] = textOf(parts[i].at.file, parts[i])
				texts[i].Found = texts[i].File != r.stdinName && !slices.Contains(paths, texts[i].File)
			}
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", displayPaths(paths), err)
	}
	return texts, nil
}

// With returns the document with another text, in the same place.
func (t *Text) With(data []byte) Text {
	p := *t.part
	p.data, p.linesBefore = data, t.LinesBefore
	text := textOf(t.File, &p)
	text.Found = t.Found
	return text
}

func textOf(file string, p *part) Text {
	text := Text{File: file, LinesBefore: p.linesBefore, Offset: p.offset, Data: bytes.Clone(p.data), root: &lazyRoot{}}
	text.part = &part{at: p.at, yaml: p.yaml, offset: p.offset}
	switch {
	case len(p.data) > kinds.MaxDocument:
		text.Err = inputError(p.at, "", kinds.TooLarge(len(p.data)))
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

// OnAllProcessors calls a function for 0 to n-1. Each processor has its own.
func OnAllProcessors(n int, newDo func() func(int)) {
	var group sync.WaitGroup
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), n) {
		group.Go(func() {
			do := newDo()
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	group.Wait()
}
