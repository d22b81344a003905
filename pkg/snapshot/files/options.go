// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"io"
	"strings"
)

// Options say how files are read.
type Options struct {
	// Gates has the feature gates given by the user. They beat everything that
	// a file tells and get the source [snapshot.GateFromFlag].
	Gates map[string]bool
	// KubernetesVersion is the version given by the user. It beats what a
	// file tells. Empty means: not given.
	KubernetesVersion string
	// Stdin is the input for the path "-". Nil is an empty input.
	Stdin io.Reader
	// StdinName is the name of Stdin in errors; empty for "standard input".
	StdinName string
	// YAML is told how many bytes of YAML were read, which takes several times as
	// long as JSON. Nil means that nobody is told.
	YAML func(size int64)
	// LeftOut is told, as a sentence, of each file that is not read because it is a link
	// that leads out of the directory that was named. Nil means that nobody is told.
	LeftOut func(note string)
	// content is read instead of the one path, if it is not nil.
	content []byte
}

func (o *Options) leftOut(note string) {
	if o.LeftOut != nil {
		o.LeftOut(note)
	}
}

// stdinName is the name of the path "-" in errors.
const stdinName = "standard input"

func displayPaths(paths []string) string {
	shown := make([]string, len(paths))
	for i, path := range paths {
		shown[i] = path
		if path == "-" {
			shown[i] = stdinName
		}
	}
	return strings.Join(shown, ", ")
}
