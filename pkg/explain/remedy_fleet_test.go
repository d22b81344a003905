// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// TestRemediesOfMixedFleet asserts that a large number of nodes that differ keeps
// no remedy from being verified on all of them.
func TestRemediesOfMixedFleet(t *testing.T) {
	snap := fleet.Mixed(1000)
	claim := benchClaim(9)
	claim.Spec.Devices.Requests[0].Exactly.Selectors = tc.CELSelectors(`device.capacity["` + fleet.Driver + `"].memory.compareTo(quantity("40Gi")) >= 0`)
	snap.Claims = append(snap.Claims, claim)
	out, err := Explain(t.Context(), snap, Options{Object: api.Ref(api.KindClaim, claim.Namespace, claim.Name)})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Remedies) == 0 || out.Remedies[0].Change != "request 8 devices instead of 9 in request gpu" || out.Remedies[0].Nodes < 20 {
		t.Errorf("verdict %s, remedies %+v, assumptions %q; want to request 8 devices", out.Verdict, out.Remedies, out.Assumptions)
	}
}
