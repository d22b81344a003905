// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
)

// TestPatchIsOneLine: a command is there to be copied.
func TestPatchIsOneLine(t *testing.T) {
	e := tooMany()
	e.Remedies[0].Patch = "kubectl patch resourceclaimtemplate train-gpus -n ml --type=json -p '[" + strings.Repeat(`{"op": "test"}, `, 20) + "]'"
	if out := draw(t, e, Options{Width: 80}); !strings.Contains(out, e.Remedies[0].Patch+"\n") {
		t.Errorf("the command is broken up:\n%s", out)
	}
}

func TestSingleFact(t *testing.T) {
	e := tooMany()
	e.Conflict.Facts = []explain.ConflictFact{{Text: "taint x is not tolerated"}}
	if out := draw(t, e, Options{Width: 80}); !strings.Contains(out, "One fact stands in the way on node-23\n  -  taint x is not tolerated\n") {
		t.Errorf("got:\n%s", out)
	}
}
