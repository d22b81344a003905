// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// troubles are what is wrong with a cluster, as the window title and the bell tell it.
type troubles struct {
	broken int
	// waiting counts the pods that wait for devices, by namespace.
	waiting map[string]int
	// names are those of all troubles that a bell rings for.
	names []string
}

// stuckAfter is how long a pod waits before the bell rings for it: most are placed within
// a second.
const stuckAfter = 30 * time.Second

// troubles are those of a picture; evictions are only looked for where a bell wants them.
func (p *picture) findTroubles(evictions bool) troubles {
	t := troubles{waiting: map[string]int{}}
	for _, pool := range brokenPools(p.pools) {
		t.broken++
		t.names = append(t.names, "pool "+inventory.PoolName(pool))
	}
	for _, pod := range p.snap.Pods {
		if !inventory.Waits(pod) {
			continue
		}
		if _, waits := p.waitsFor(pod); !waits {
			continue
		}
		t.waiting[pod.Namespace]++
		if p.snap.Now().Sub(pod.CreationTimestamp.Time) >= stuckAfter {
			t.names = append(t.names, "pod "+string(pod.UID)+" "+pod.Namespace+"/"+pod.Name)
		}
	}
	if !evictions {
		return t
	}
	for _, taint := range p.inventory.Taints() {
		for i := range taint.Pods {
			if taint.Pods[i].Evicted {
				t.names = append(t.names, "eviction "+taint.Pods[i].Namespace+"/"+taint.Pods[i].Name)
			}
		}
	}
	return t
}

// windowTitle says which cluster it is and, in a few words, how it is.
func (m *Model) windowTitle() string {
	title := "dra top " + render.Escape(m.opts.cluster())
	var parts []string
	if _, trouble := m.opts.Source.Trouble(); trouble != nil {
		parts = append(parts, "no answer")
	}
	if m.picture != nil {
		waiting := 0
		for namespace, n := range m.picture.troubles.waiting {
			if m.namespace == "" || namespace == m.namespace {
				waiting += n
			}
		}
		if waiting == 1 {
			parts = append(parts, "1 waits")
		} else if waiting > 1 {
			parts = append(parts, fmt.Sprintf("%d wait", waiting))
		}
		if broken := m.picture.troubles.broken; broken > 0 {
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
	if !m.opts.Bell || m.opts.Fixed || !m.alarm.Worse(m.picture.snap.Now(), m.picture.troubles.names) {
		return nil
	}
	return tea.Raw("\a")
}
