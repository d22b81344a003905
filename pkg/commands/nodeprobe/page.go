// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"fmt"
	"io"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// page is the text that a verb prints about a node.
type page struct{ *render.Page }

func newPage(opts render.Options) *page { return &page{render.NewPage(opts)} }

// blankBetween separates consecutive parts.
func (p *page) blankBetween(i int) {
	if i > 0 {
		p.Blank()
	}
}

// write writes the page.
func (p *page) write(w io.Writer) error {
	if _, err := w.Write(p.Buf.Bytes()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
