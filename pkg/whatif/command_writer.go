// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// commandWriter writes the commands for the edits of one remedy.
type commandWriter struct {
	snap *snapshot.Snapshot
	pods []api.RemedyPod
	// lines change objects. After them, pods have to get the change.
	lines []string
	// templates are the edits of each changed template, by its name.
	templates map[string][]api.Edit
	// workloads are the changed workloads.
	workloads []Workload
	// changed are the pods that are replaced by lines already.
	changed []api.ObjectRef
}

func (w *commandWriter) add(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}
