// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// rulesOf is the minor release whose rules [kinds.Rejected] has.
const rulesOf = 37

func storedChecks() []Check {
	return []Check{{
		Code: "DRA1212", Title: "slice that the API server no longer accepts", Severity: api.SeverityWarning, Needs: []string{snapshot.ResourceSlices},
		About:  fmt.Sprintf("A stored ResourceSlice breaks the rules that the API server of Kubernetes 1.%d has for new ones, such as 64 devices in a slice with taints or counters, or counters in a slice of their own. It was stored by an earlier release. The driver can no longer update it: each attempt is rejected, also one that changes something else. If the cluster is older than these rules, that is so once it is updated, and the finding is an Info.", rulesOf),
		Advice: "Update the driver to a version for the release of the cluster: it publishes its devices in slices that follow the rules.",
		find:   findOutdatedSlices,
	}}
}

// findOutdatedSlices finds slices that an API server would not store again.
func findOutdatedSlices(_ context.Context, in *cluster) ([]api.Finding, error) {
	severity, when := api.Severity(""), "each update of it is rejected"
	if minor, known := snapshot.MinorVersion(in.cluster.Snapshot.BinaryVersion()); !known || minor < rulesOf {
		severity, when = api.SeverityInfo, fmt.Sprintf("Kubernetes 1.%d rejects each update of it", rulesOf)
	}
	var found []api.Finding
	for _, slice := range in.cluster.Snapshot.Slices {
		// Computed slices are not stored.
		if _, computed := slice.Annotations[snapshot.PreviewAnnotation]; computed {
			continue
		}
		problems := kinds.Rejected(slice, "resource.k8s.io/v1")
		if len(problems) == 0 {
			continue
		}
		f := api.Finding{Severity: severity, Objects: []api.ObjectRef{api.RefTo(kindSlice, slice)}}
		for _, problem := range problems {
			f.Evidence = append(f.Evidence, api.Evidence{Object: api.RefTo(kindSlice, slice), Path: problem.Path, Found: problem.Err.Error()})
		}
		f.Message = fmt.Sprintf("slice %s of driver %s breaks the rules of the API, and %s: %s: %s", slice.Name, slice.Spec.Driver, when, problems[0].Path, problems[0].Err)
		if more := len(problems) - 1; more > 0 {
			f.Message += fmt.Sprintf(", and %d more", more)
		}
		f.Remedy = &api.NextStep{Actor: api.ActorAdmin, Text: "update driver " + slice.Spec.Driver + " to a version for the release of the cluster"}
		found = append(found, f)
	}
	return found, nil
}
