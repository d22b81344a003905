// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	"github.com/kubectl-dra/kubectl-dra/pkg/doctor"
)

const (
	// diagnosisRest is the least time between two diagnoses. After an expensive one
	// it is longer, by diagnosisTimes.
	diagnosisRest  = 10 * time.Second
	diagnosisTimes = 60
	// diagnosisAge is how old a diagnosis gets where nothing changes: some findings
	// come with time alone.
	diagnosisAge = time.Minute
)

// diagnosis is what doctor found in the newest picture that it has looked at. It is
// safe for concurrent use.
type diagnosis struct {
	mu      sync.Mutex
	found   *api.Diagnosis
	problem error
	// of is the change of the source that it was found after, at when.
	of int
	at time.Time
	// times counts the diagnoses.
	times int
}

// newest is what was found last; nil if nothing was yet.
func (d *diagnosis) newest() (*api.Diagnosis, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.found, d.problem
}

// version changes with every diagnosis.
func (d *diagnosis) version() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.times
}

// due reports whether a picture has to be looked at: the source changed since the
// last diagnosis, or that is old.
func (d *diagnosis) due(p *picture, fixed bool, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.times == 0 || p.change != d.of || !fixed && now.Sub(d.at) >= diagnosisAge
}

// work makes the checks of a picture. It is false if the context is done. Of a cluster
// that is followed no events are read, and a check that takes all it knows from them
// would find nothing whatever there is: it does not count as made.
func (d *diagnosis) work(ctx context.Context, p *picture, fixed bool, now time.Time) bool {
	var opts doctor.Options
	if !fixed {
		opts.Skip = []string{doctor.CodeUnregistered}
	}
	found, err := doctor.Diagnose(ctx, p.alloc, p.snap, opts)
	if ctx.Err() != nil {
		return false
	}
	if err == nil {
		slices.SortStableFunc(found.Findings, func(a, b api.Finding) int { return severityRank(a.Severity) - severityRank(b.Severity) })
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found, d.problem, d.of, d.at = found, err, p.change, now
	d.times++
	return true
}

// severityRank is 0 for the worst findings. Checks that could not be made are last.
func severityRank(severity api.Severity) int {
	if at := slices.Index(checks.Severities(), severity); at >= 0 {
		return at
	}
	return len(checks.Severities())
}

type (
	// diagnosedMsg says that there is a newer diagnosis, after so long.
	diagnosedMsg struct {
		done bool
		took time.Duration
	}
	// diagnosisRestedMsg ends the pause after a diagnosis.
	diagnosisRestedMsg struct{}
)

// diagnose makes the checks of doctor in the background, while somebody can see what
// they find, and not before the reasons are known: these are wanted first.
func (m *Model) diagnose() tea.Cmd {
	if m.diagnosing || m.picture == nil || m.frozen || !m.top().showsFindings() || !m.diagnosis.due(m.picture, m.opts.Fixed, m.now()) {
		return nil
	}
	m.diagnosing = true
	ctx, p, known, fixed, now := m.ctx, m.picture, m.diagnosis, m.opts.Fixed, m.now()
	return func() tea.Msg {
		start := time.Now()
		done := known.work(ctx, p, fixed, now)
		return diagnosedMsg{done, time.Since(start)}
	}
}

// diagnosed shows what was found, and lets the next diagnosis wait.
func (m *Model) diagnosed(msg diagnosedMsg) tea.Cmd {
	if !msg.done {
		m.diagnosing = false
		return nil
	}
	return tea.Batch(m.top().refresh(m), m.after(max(diagnosisRest, diagnosisTimes*msg.took), diagnosisRestedMsg{}))
}

// concerns reports whether a finding is about a namespace, or about none.
func concerns(f *api.Finding, namespace string) bool {
	namespaced := false
	for _, object := range f.Objects {
		parts := strings.Split(object, "/")
		if len(parts) < 3 {
			continue
		}
		if parts[1] == namespace {
			return true
		}
		namespaced = true
	}
	return !namespaced
}
