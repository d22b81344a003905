// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"slices"
	"sync"
	"time"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	"github.com/kubectl-dra/kubectl-dra/pkg/doctor"
)

// diagnosisAge is how old a diagnosis gets where nothing changes: some findings come with
// time alone. An expensive one gets older, by diagnosisAgeTimes.
const (
	diagnosisAge      = time.Minute
	diagnosisAgeTimes = 400
)

// Diagnosis has the findings of doctor in the newest picture that it has looked at. It is
// safe for concurrent use.
type Diagnosis struct {
	mu      sync.Mutex
	found   *api.Diagnosis
	problem error
	// of is the change of the source that it was found after, at is when, and took how long
	// that took.
	of   int
	at   time.Time
	took time.Duration
	// times counts the diagnoses.
	times int
}

// Newest returns the last findings; nil if there are none yet.
func (d *Diagnosis) Newest() (*api.Diagnosis, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.found, d.problem
}

// Version changes with every diagnosis.
func (d *Diagnosis) Version() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.times
}

// Due reports whether a picture has to be looked at: the source changed since the
// last diagnosis, or that is old.
func (d *Diagnosis) Due(p *Picture, fixed bool, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.times == 0 || p.change != d.of || !fixed && now.Sub(d.at) >= max(diagnosisAge, diagnosisAgeTimes*d.took)
}

// Work makes the checks of a picture, and reports whether it could finish before the
// context was done. No events are read of a watched cluster, so that a check which takes
// all it knows from them would find nothing whatever there is: it does not count as made.
func (d *Diagnosis) Work(ctx context.Context, p *Picture, fixed bool, now time.Time) bool {
	var opts doctor.Options
	if !fixed {
		opts.Skip = []string{doctor.CodeUnregistered}
	}
	start := time.Now()
	found, err := doctor.Diagnose(ctx, p.Cluster, opts)
	if ctx.Err() != nil {
		return false
	}
	if err == nil {
		slices.SortStableFunc(found.Findings, func(a, b api.Finding) int { return severityRank(a.Severity) - severityRank(b.Severity) })
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found, d.problem, d.of, d.at, d.took = found, err, p.change, now, time.Since(start)
	d.times++
	return true
}

// severityRank returns 0 for the worst findings. Checks that could not be made are last.
func severityRank(severity api.Severity) int {
	if at := slices.Index(checks.Severities(), severity); at >= 0 {
		return at
	}
	return len(checks.Severities())
}
