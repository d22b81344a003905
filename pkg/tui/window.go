// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// windowTitle says which cluster it is and, in a few words, how it is.
func (m *Model) windowTitle() string {
	title := "dra top " + render.Escape(m.opts.cluster())
	parts := m.live.Brief(m.namespace)
	if len(parts) == 0 {
		return title
	}
	return title + ": " + strings.Join(parts, ", ")
}
