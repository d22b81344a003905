// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// GapError means that the requested objects, or some of them, could not be read: "not
// permitted" is never "none". The exit code is ExitFailure.
type GapError struct {
	// Doing is the failed action, as in "list devices".
	Doing string
	// Gaps are the gaps in the requested objects; there is at least one.
	Gaps []snapshot.Gap
	// Namespace is the only requested namespace; empty for all, or if the missing objects
	// have none.
	Namespace string
	// Live is true if a cluster was read and not a file.
	Live bool
	// Partial is true if something was printed all the same.
	Partial bool
}

// Error names the missing objects, and says whether there may be more than was printed.
func (e *GapError) Error() string {
	reasons := make([]string, 0, len(e.Gaps))
	for _, gap := range e.Gaps {
		reasons = append(reasons, gap.Reason)
	}
	said := e.Doing + ": "
	if e.Partial {
		said += "the output is incomplete: "
	}
	return said + strings.Join(reasons, "; ")
}

// out returns the advice: the rights to ask for, and alternatives.
func (e *GapError) out() string {
	resources := make([]string, 0, len(e.Gaps))
	for _, gap := range e.Gaps {
		if !gap.LeftOut {
			resources = append(resources, gap.Resource)
		}
	}
	slices.Sort(resources)
	named := english.JoinAnd(slices.Compact(resources))
	switch {
	case len(resources) == 0:
		return "Correct or delete what was left out."
	case len(resources) == 1 && resources[0] == snapshot.ResourcePoolStatuses:
		return "docs/rbac.md has the ClusterRole for --ask-server, which takes the feature gate DRAResourcePoolStatus. Without --ask-server, the claims that you may list are counted."
	case !e.Live:
		return fmt.Sprintf("Save a snapshot that has %s, as a user who can list them: kubectl dra snapshot -o cluster.yaml.gz", named)
	case e.Namespace != "":
		return fmt.Sprintf("Ask for a Role that may list %s in namespace %s, or ask a user who can list them to save a snapshot: kubectl dra snapshot -o cluster.yaml.gz", named, e.Namespace)
	default:
		return fmt.Sprintf("Ask for a ClusterRole that may list %s, or ask a user who can list them to save a snapshot: kubectl dra snapshot -o cluster.yaml.gz", named)
	}
}

// UnendingError means that the answer is unknown for some devices because an expression
// does not end. The exit code is ExitFailure.
type UnendingError struct {
	// Doing is the failed action, as in "list devices", and reason names the expression.
	Doing, Reason string
}

// Error says that the output is incomplete, and why.
func (e *UnendingError) Error() string {
	return e.Doing + ": the output is incomplete: " + e.Reason
}

// GapsIn returns the gaps in some resources. For namespaced resources the requested
// namespace is enough; an empty namespace stands for all that may be read, unless
// everywhere.
func GapsIn(snap *snapshot.Snapshot, resources []string, namespace string, everywhere bool) []snapshot.Gap {
	var gaps []snapshot.Gap
	for _, gap := range snap.Gaps {
		enough := gap.Namespace != "" && !everywhere && (namespace == "" || namespace == gap.Namespace)
		if slices.Contains(resources, gap.Resource) && !enough {
			gaps = append(gaps, gap)
		}
	}
	return gaps
}

// GapNotes returns notes on the gaps that neither the error nor [snapshot.Snapshot.Notes]
// reports.
func GapNotes(snap *snapshot.Snapshot, reported *GapError) []string {
	notes := snap.Notes()
	for _, gap := range snap.Gaps {
		if reported == nil || !slices.Contains(reported.Gaps, gap) {
			notes = append(notes, gap.Reason)
		}
	}
	return notes
}
