// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// windowTitle says which cluster it is and, in a few words, how it is.
func (m *Model) windowTitle() string {
	title := "dra top " + render.Escape(m.opts.cluster())
	var parts []string
	if _, trouble := m.opts.Source.Trouble(); trouble != nil {
		parts = append(parts, "no answer")
	}
	if m.picture != nil {
		waiting := 0
		for namespace, n := range m.troubles.Waiting {
			if m.namespace == "" || namespace == m.namespace {
				waiting += n
			}
		}
		if waiting == 1 {
			parts = append(parts, "1 waits")
		} else if waiting > 1 {
			parts = append(parts, fmt.Sprintf("%d wait", waiting))
		}
		if broken := m.troubles.Broken; broken > 0 {
			parts = append(parts, fmt.Sprintf("%d broken", broken))
		}
	}
	if len(parts) == 0 {
		return title
	}
	return title + ": " + strings.Join(parts, ", ")
}

// ring rings the bell of the terminal if the cluster got worse.
func (m *Model) ring() tea.Cmd {
	if !m.opts.Bell || m.opts.Fixed || !m.alarm.Worse(m.picture.Snap.Now(), m.troubles.Names) {
		return nil
	}
	return tea.Raw("\a")
}
