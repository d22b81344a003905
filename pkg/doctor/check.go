// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// Repeats says what else says the same as the findings of a check.
type Repeats int

const (
	// RepeatsNothing is for findings that stand alone.
	RepeatsNothing Repeats = iota
	// RepeatsPods is for findings about pods that wait, are blocked or are refused: their
	// explanations say more.
	RepeatsPods
	// RepeatsTaint is for findings about the taint of a device.
	RepeatsTaint
	// RepeatsRule is for findings about a whole DeviceTaintRule.
	RepeatsRule
	// RepeatsDevices is for findings about classes without devices, since the findings about
	// the devices say why.
	RepeatsDevices
)

// Check is a check for one kind of problem of a cluster.
type Check struct {
	// Code is stable: "DRA", the number of the group, and the number of the check in it.
	Code string
	// Title names the problem in a few words.
	Title string
	// Severity is the severity of its findings.
	Severity api.Severity
	// Needs are the resources that the check needs, by their names in gaps.
	Needs []string
	// About says what the problem means, Advice how to solve it, both for the documents.
	About, Advice string
	// Repeats says what else says the same as its findings.
	Repeats Repeats

	// Flag is required to make the check; empty for most.
	Flag string
	// given reports whether the input of the check was given; nil for checks of the cluster
	// alone.
	given func(*Options) bool
	find  func(context.Context, *cluster) ([]api.Finding, error)
}

// run makes the check. Missing resources are a finding of their own.
func (c *Check) run(ctx context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	var missing []string
	for _, resource := range c.Needs {
		if gap := in.cluster.Snapshot.Gap(resource); gap != nil && !slices.Contains(missing, gap.Reason) {
			missing = append(missing, gap.Reason)
		}
	}
	if len(missing) > 0 {
		found = []api.Finding{{Severity: api.SeverityUnknown, Message: "not checked: " + strings.Join(missing, "; ")}}
	} else {
		var err error
		if found, err = c.find(ctx, in); err != nil {
			return nil, err
		}
	}
	for i := range found {
		found[i].Code, found[i].Title = c.Code, c.Title
		if found[i].Severity == "" {
			found[i].Severity = c.Severity
		}
	}
	return found, nil
}

// CodeUnregistered is the code of the check of registrations, which depends on events
// alone.
const CodeUnregistered = "DRA1107"
