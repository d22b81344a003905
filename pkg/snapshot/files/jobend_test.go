// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/internal/testsnapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
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
			if err := files.Write(&saved, s, files.YAML); err != nil {
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

// TestJobLimit loads Jobs with a limit of time, saves them, and loads them again.
func TestJobLimit(t *testing.T) {
	started := metav1.Date(2026, time.September, 15, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		spec, status string
		want         *snapshot.JobLimit
	}{
		"no limit":      {``, `"startTime": "2026-09-15T12:00:00Z"`, nil},
		"not started":   {`"activeDeadlineSeconds": 3600, `, ``, nil},
		"limited":       {`"activeDeadlineSeconds": 3600, `, `"startTime": "2026-09-15T12:00:00Z"`, &snapshot.JobLimit{ActiveDeadlineSeconds: 3600, StartTime: started}},
		"longest limit": {`"activeDeadlineSeconds": 9223372036854775807, `, `"startTime": "2026-09-15T12:00:00Z"`, &snapshot.JobLimit{ActiveDeadlineSeconds: math.MaxInt64, StartTime: started}},
	} {
		t.Run(name, func(t *testing.T) {
			s := testsnapshot.Load(t, `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "ml"},
				"spec": {`+test.spec+`"template": {"spec": {"containers": []}}}, "status": {`+test.status+`}}`)
			var saved bytes.Buffer
			if err := files.Write(&saved, s, files.YAML); err != nil {
				t.Fatal(err)
			}
			for how, from := range map[string]*snapshot.Snapshot{"loaded": s, "saved": testsnapshot.Load(t, saved.String())} {
				got := from.Workloads[0].Limit
				if (got == nil) != (test.want == nil) || got != nil && (got.ActiveDeadlineSeconds != test.want.ActiveDeadlineSeconds || !got.StartTime.Equal(&test.want.StartTime)) {
					t.Errorf("%s: want %v, got %v", how, test.want, got)
				}
			}
		})
	}
}
