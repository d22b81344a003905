// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"bytes"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// TestQuestionForNoDevice expects a question before a rule is added that taints nothing.
func TestQuestionForNoDevice(t *testing.T) {
	snap, err := files.Load(t.Context(), []string{"../../../examples/cluster"}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		flags RuleFlags
		want  string
	}{
		{RuleFlags{Pool: "gpu-4"}, "No device matches now."},
		{RuleFlags{Pool: "gpu-04", Driver: "fabric.example.com"}, "No device matches now."},
		{RuleFlags{Pool: "gpu-04"}, ""},
	} {
		rule, err := test.flags.Rule("example.com/new:NoSchedule")
		if err != nil {
			t.Fatal(err)
		}
		question, err := PreviewRule(t.Context(), &bytes.Buffer{}, snap, rule)
		if err != nil || question != test.want {
			t.Errorf("%+v: question %q, want %q (%v)", test.flags, question, test.want, err)
		}
	}
}
