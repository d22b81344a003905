// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// unreadError tells that what was asked for could not be read, or only some of
// it: "not permitted" is never "none". The exit code is that of a failure.
type unreadError struct {
	// doing says what failed, as in "list devices".
	doing string
	// gaps are what is missing of what was asked for; there is at least one.
	gaps []snapshot.Gap
	// namespace is the only one that was asked about; empty for all, or if what
	// is missing has no namespace.
	namespace string
	// live is true if a cluster was asked and not a file.
	live bool
	// partial is true if something was printed all the same.
	partial bool
}

// Error names what is missing, and reports whether there is more than was printed.
func (e *unreadError) Error() string {
	reasons := make([]string, 0, len(e.gaps))
	for _, gap := range e.gaps {
		reasons = append(reasons, gap.Reason)
	}
	said := e.doing + ": "
	if e.partial {
		said += "the output is incomplete: "
	}
	return said + strings.Join(reasons, "; ")
}

// out says which right to ask for, and what else there is to do.
func (e *unreadError) out() string {
	resources := make([]string, 0, len(e.gaps))
	for _, gap := range e.gaps {
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
	case !e.live:
		return fmt.Sprintf("Save a snapshot that has %s, as a user who can list them: kubectl dra snapshot -o cluster.yaml.gz", named)
	case e.namespace != "":
		return fmt.Sprintf("Ask for a Role that may list %s in namespace %s, or ask a user who can list them to save a snapshot: kubectl dra snapshot -o cluster.yaml.gz", named, e.namespace)
	default:
		return fmt.Sprintf("Ask for a ClusterRole that may list %s, or ask a user who can list them to save a snapshot: kubectl dra snapshot -o cluster.yaml.gz", named)
	}
}

// unendingError tells that what was asked for is not known for some devices, since an
// expression does not end. The exit code is that of a failure.
type unendingError struct {
	// doing says what failed, as in "list devices", and reason which expression.
	doing, reason string
}

func (e *unendingError) Error() string {
	return e.doing + ": the output is incomplete: " + e.reason
}

// gapsIn are what is missing of some resources. Of those with a namespace, the
// one that was asked about is enough; an empty one stands for all that may be
// read, unless everywhere.
func gapsIn(snap *snapshot.Snapshot, resources []string, namespace string, everywhere bool) []snapshot.Gap {
	var gaps []snapshot.Gap
	for _, gap := range snap.Gaps {
		enough := gap.Namespace != "" && !everywhere && (namespace == "" || namespace == gap.Namespace)
		if slices.Contains(resources, gap.Resource) && !enough {
			gaps = append(gaps, gap)
		}
	}
	return gaps
}

// joinAnd joins words: "a", "a and b", "a, b and c".
// gapNotes say what is missing, but for what an error tells.
func gapNotes(snap *snapshot.Snapshot, told *unreadError) []string {
	var notes []string
	for _, gap := range snap.Gaps {
		if told == nil || !slices.Contains(told.gaps, gap) {
			notes = append(notes, gap.Reason)
		}
	}
	return notes
}
