// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
)

// TestCommandIsOneLine: a command is there to be copied.
func TestCommandIsOneLine(t *testing.T) {
	e := tooMany()
	e.Remedies[0].Commands = []string{"kubectl patch resourceclaimtemplate train-gpus -n ml --type=json -p '[" + strings.Repeat(`{"op": "test"}, `, 20) + "]'"}
	if out := draw(t, e, Options{Width: 80}); !strings.Contains(out, e.Remedies[0].Commands[0]+"\n") {
		t.Errorf("the command is broken up:\n%s", out)
	}
}

// TestTitleOfConflict: what giving up a fact brings is not promised where more
// is in the way.
func TestTitleOfConflict(t *testing.T) {
	taint := explain.ConflictFact{Text: "taint x is not tolerated"}
	count := explain.ConflictFact{Text: "request gpu wants 2 devices"}
	tests := map[string]struct {
		facts  []explain.ConflictFact
		anyOne bool
		sameOn int
		want   string
	}{
		"one":             {[]explain.ConflictFact{taint}, true, 0, "Blocking condition on node node-23\n  -  taint x is not tolerated\n"},
		"one of more":     {[]explain.ConflictFact{taint}, false, 0, "Node node-23 is ruled out by this and by other conditions\n"},
		"two":             {[]explain.ConflictFact{taint, count}, true, 0, "Conflict on node-23 (relaxing either one is enough)\n"},
		"two of more":     {[]explain.ConflictFact{taint, count}, false, 0, "Conflict on node-23 (other conditions rule the node out too)\n"},
		"elsewhere":       {[]explain.ConflictFact{taint}, true, 1, "taint x is not tolerated\n  Also on 1 other node\n"},
		"many other ones": {[]explain.ConflictFact{taint, count}, true, 30, "Also on 30 other nodes\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := tooMany()
			e.Conflict.Facts, e.Conflict.AnyOne, e.Conflict.SameOn = test.facts, test.anyOne, test.sameOn
			if out := draw(t, e, Options{Width: 80}); !strings.Contains(out, test.want) {
				t.Errorf("want %q in:\n%s", test.want, out)
			}
		})
	}
}

func TestCommandsStandBelowEachOther(t *testing.T) {
	e := tooMany()
	e.Remedies[0].Commands, e.Remedies[0].Diff = []string{"kubectl one", "kubectl two\x1b[31m"}, ""
	if out := draw(t, e, Options{Width: 80}); !strings.Contains(out, "\n            kubectl one\n            kubectl two\\x1b[31m\n") {
		t.Errorf("got:\n%s", out)
	}
}
