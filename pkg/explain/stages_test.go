// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"path/filepath"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// TestStagesAgree compares the stage from claims and pods with the stage of a whole
// explanation, on all field cases.
func TestStagesAgree(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "test", "fieldcases", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("find the field cases: %d of them, error %v", len(paths), err)
	}
	for _, path := range paths {
		snap, err := files.Load(t.Context(), []string{path}, files.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := cluster.New(snap)
		stages := lifecycle.NewStages(c)
		for _, claim := range snap.Claims {
			answer, err := explain.ExplainWith(t.Context(), c, explain.Options{Object: api.Ref(api.KindClaim, claim.Namespace, claim.Name)})
			if err != nil {
				t.Fatal(err)
			}
			want := map[api.Stage]bool{}
			for i := range answer.Pods {
				want[answer.Pods[i].Stage] = true
				if answer.Pods[i].Stage == api.StageNodeFit {
					want[api.StageAllocation] = true
				}
			}
			if got := stages.OfClaim(claim); got != "" && !want[got] || got == "" && len(want) > 0 {
				t.Errorf("%s: claim %s/%s is at %q, and its pods are at %v", filepath.Base(path), claim.Namespace, claim.Name, got, want)
			}
		}
	}
}
