// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// decideMost limits how many workloads the allocator decides: each takes up to half a second on
// thousands of nodes.
const decideMost = 50

// decide asks the allocator about one pod of a workload as it becomes, in place of its present pods,
// while all else is as it is.
func (f *finder) decide(ctx context.Context, w *api.MigrationWorkload, e *editor, g *group) error {
	if f.decided++; f.decided > decideMost {
		return nil
	}
	spec, err := whatif.Edited(e.spec, e.edits, e.path)
	if err != nil {
		return fmt.Errorf("edit %s: %w", w.Object, err)
	}
	// No object in a cluster can have such a name.
	pod := asEdited(g.pods[0], spec, g.pods[0].Name+"-…")
	pod.OwnerReferences = nil
	after := *whatif.Delete(f.Snapshot, g.pods)
	after.Pods = append(slices.Clone(after.Pods), pod)
	after.Templates = slices.Concat(after.Templates, e.templates)
	snapshot.SortByName(after.Pods)
	snapshot.SortByName(after.Templates)
	answers, err := explain.ReasonsOfEach(ctx, f.Amended(&after), []target.Options{{Object: api.RefTo(api.KindPod, pod)}}, []*corev1.Pod{pod})
	if err != nil {
		return fmt.Errorf("decide %s: %w", w.Object, err)
	}
	switch answer := answers[0]; {
	case answer.Err != nil:
		w.Verdict, w.Summary = api.Undetermined, answer.Err.Error()
	default:
		w.Verdict, w.Summary = answer.Explanation.Verdict, answer.Explanation.Summary
		for i := range w.Asks {
			if class := w.Asks[i].Class; w.Verdict == api.DoesNotFit && !f.selects(class) {
				w.Summary = fmt.Sprintf("Class %s selects no device.", class)
			}
		}
	}
	return nil
}
