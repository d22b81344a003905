// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// sampled is how many elements of a long list a message names.
const sampled = 3

// Sample enumerates a list in a message: all of a short one, some of a long one.
func Sample(list []string) string {
	if len(list) <= sampled+1 {
		return strings.Join(list, ", ")
	}
	return english.Sample(list, sampled)
}

// Unknowns collects unknown facts, so that a reason that many share is given once.
type Unknowns struct {
	reasons []string
	about   map[string][]string
}

// Add records that a fact about who is unknown, and why.
func (d *Unknowns) Add(who, reason string) {
	if d.about == nil {
		d.about = map[string][]string{}
	}
	if d.about[reason] == nil {
		d.reasons = append(d.reasons, reason)
	}
	d.about[reason] = append(d.about[reason], who)
}

// Checks returns a check of that name for each reason.
func (d *Unknowns) Checks(name string) []Check {
	checks := make([]Check, 0, len(d.reasons))
	for _, reason := range d.reasons {
		checks = append(checks, NotKnown(name, "", "%s: %s", Sample(d.about[reason]), reason))
	}
	return checks
}
