// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
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

// replaced writes edits of objects whose specs cannot be changed. Of several objects, kubectl
// patch --local prints YAML documents without a line between them, but JSON can be read back.
func (w *commandWriter) replaced(which string, edits []api.Edit) {
	if patch, err := patchOf(edits, ""); err == nil {
		w.add("kubectl get %s -o yaml | kubectl patch --local -f - --type=json -p %s -o json | kubectl replace --force -f -", which, shell.Quote(string(patch)))
	}
}
