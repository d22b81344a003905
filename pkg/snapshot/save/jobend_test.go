// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package save

import (
	"bytes"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/internal/testsnapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestJobEnd loads Jobs with conditions, saves them, and loads them again.
func TestJobEnd(t *testing.T) {
	tests := map[string]struct {
		conditions string
		want       *snapshot.JobEnd
	}{
		"running":   {`[]`, nil},
		"suspended": {`[{"type": "Suspended", "status": "True"}]`, nil},
		"not yet":   {`[{"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded"}, {"type": "Failed", "status": "False"}]`, nil},
		"complete":  {`[{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True", "reason": "CompletionsReached"}]`, &snapshot.JobEnd{Condition: "Complete", Reason: "CompletionsReached"}},
		"failed":    {`[{"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "Job was active longer than specified deadline"}]`, &snapshot.JobEnd{Condition: "Failed", Reason: "DeadlineExceeded"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := testsnapshot.Load(t, `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "ml"},
				"spec": {"template": {"spec": {"containers": []}}}, "status": {"conditions": `+test.conditions+`}}`)
			var saved bytes.Buffer
			if err := Snapshot(&saved, s, YAML); err != nil {
				t.Fatal(err)
			}
			for how, from := range map[string]*snapshot.Snapshot{"loaded": s, "saved": testsnapshot.Load(t, saved.String())} {
				if got := from.Workloads[0].End; (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
					t.Errorf("%s: want %v, got %v", how, test.want, got)
				}
			}
		})
	}
}
