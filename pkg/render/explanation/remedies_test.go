// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"encoding/json"
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// TestCommandIsOneLine: a command is there to be copied.
func TestCommandIsOneLine(t *testing.T) {
	e := tooMany()
	e.Remedies[0].Commands = []string{"kubectl patch resourceclaimtemplate train-gpus -n ml --type=json -p '[" + strings.Repeat(`{"op": "test"}, `, 20) + "]'"}
	if out := draw(t, e, render.Options{Width: 80, Commands: true}); !strings.Contains(out, e.Remedies[0].Commands[0]+"\n") {
		t.Errorf("the command is broken up:\n%s", out)
	}
}

// TestTitleOfConflict: what giving up a fact brings is not promised where more
// is in the way.
func TestTitleOfConflict(t *testing.T) {
	taint := api.ConflictFact{Text: "taint x is not tolerated"}
	count := api.ConflictFact{Text: "request gpu wants 2 devices"}
	tests := map[string]struct {
		facts  []api.ConflictFact
		anyOne bool
		sameOn int
		want   string
	}{
		"one":             {[]api.ConflictFact{taint}, true, 0, "Blocking condition on node node-23\n  -  taint x is not tolerated\n"},
		"one of more":     {[]api.ConflictFact{taint}, false, 0, "Node node-23 is ruled out by this and by other conditions\n"},
		"two":             {[]api.ConflictFact{taint, count}, true, 0, "Conflict on node-23 (relaxing either one is enough)\n"},
		"two of more":     {[]api.ConflictFact{taint, count}, false, 0, "Conflict on node-23 (other conditions rule the node out too)\n"},
		"elsewhere":       {[]api.ConflictFact{taint}, true, 1, "taint x is not tolerated\n  Also on 1 other node\n"},
		"many other ones": {[]api.ConflictFact{taint, count}, true, 30, "Also on 30 other nodes\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := tooMany()
			e.Conflict.Facts, e.Conflict.AnyOneSuffices, e.Conflict.OtherNodeCount = test.facts, test.anyOne, test.sameOn
			if out := draw(t, e, render.Options{Width: 80}); !strings.Contains(out, test.want) {
				t.Errorf("want %q in:\n%s", test.want, out)
			}
		})
	}
}

func TestCommandsStandBelowEachOther(t *testing.T) {
	e := tooMany()
	e.Remedies[0].Commands, e.Remedies[0].Diff = []string{"kubectl one", "kubectl two\x1b[31m"}, ""
	if out := draw(t, e, render.Options{Width: 80, Commands: true}); !strings.Contains(out, "\n            kubectl one\n            kubectl two\\x1b[31m\n") {
		t.Errorf("got:\n%s", out)
	}
}

// TestRemedyEdits: without commands, each field that changes is a line, and it is
// said who else uses it.
func TestRemedyEdits(t *testing.T) {
	e := tooMany()
	e.Target = api.Ref(api.KindPod, "ml", "a")
	e.MoreRemedies = 0
	value := func(text string) json.RawMessage { return json.RawMessage(text) }
	template, claim := api.Ref(api.KindTemplate, "ml", "eight"), api.Ref(api.KindClaim, "ml", "a-gpus")
	e.Remedies = []api.Remedy{{
		Actor: api.ActorUser, Change: "request 4 devices", Node: "n", Commands: []string{"kubectl x"},
		Edits: []api.Edit{
			{Object: template, Op: "replace", Path: "/spec/spec/devices/requests/0/exactly/count", From: value("8"), Value: value("4")},
			{Object: template, Op: "remove", Path: "/spec/spec/devices/constraints/0", From: value("{}")},
			{Object: claim, Op: "replace", Path: "/spec/devices/requests/0/exactly/count", From: value("8"), Value: value("4"), Generated: true},
			{Object: api.Ref("Deployment", "ml", "w"), Op: "remove", Path: "/spec/template/spec/nodeSelector/a.b~1c", From: value(`"x"`)},
			{Object: api.Ref("Node", "", "n"), Op: "remove", Path: "/spec/taints/0", From: value(`{"key":"k"}`)},
			{Object: api.Ref("Namespace", "", "ml"), Op: "add", Path: "/metadata/labels/a", Value: value(`"b"`)},
			{Object: api.Ref("ResourceClaim", "ml", "other"), Op: "remove", Path: "/status/allocation"},
		},
		UsedBy: []api.RemedyPod{
			{Namespace: "ml", Name: "a", Changed: true}, {Namespace: "ml", Name: "b", Changed: true}, {Namespace: "ml", Name: "c", Node: "n"}, {Namespace: "ml", Name: "d"}, {Namespace: "ml", Name: "e"},
		},
	}}
	out := draw(t, e, render.Options{})
	for _, want := range []string{
		"--commands prints them",
		" ResourceClaimTemplate eight: …requests[0].exactly.count: 8 -> 4\n",
		" ResourceClaimTemplate eight: …constraints[0]: removed\n",
		" Deployment w: …nodeSelector['a.b/c']: removed\n",
		" Node n: spec.taints[0]: removed: {\"key\":\"k\"}\n",
		" Namespace ml: metadata.labels.a: added: b\n",
		"The template is also used by pod c (running; not affected until it is recreated).\n",
		"The template is also used by pods d, e (waiting; not affected until they are recreated).\n",
		"The commands bring the change to pod b as well.\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in:\n%s", want, out)
		}
	}
	for _, not := range []string{"kubectl x", "a-gpus", "ResourceClaim other"} {
		if strings.Contains(out, not) {
			t.Errorf("%q is in:\n%s", not, out)
		}
	}
	if wide := draw(t, e, render.Options{Wide: true}); !strings.Contains(wide, "kubectl x\n") {
		t.Errorf("no command in:\n%s", wide)
	}
}

// TestTaintThatFollows: a taint that Kubernetes removes itself is no change that somebody makes.
func TestTaintThatFollows(t *testing.T) {
	e := tooMany()
	e.Remedies = []api.Remedy{{
		Actor: api.ActorAdmin, Change: "start the kubelet on node n", Node: "n",
		Edits: []api.Edit{{Object: api.Ref("Node", "", "n"), Op: "remove", Path: "/spec/taints/0", From: json.RawMessage(`{"key":"node.kubernetes.io/unreachable"}`)}},
	}}
	if out := draw(t, e, render.Options{}); strings.Contains(out, "taints") {
		t.Errorf("got:\n%s", out)
	}
}

// TestGateInFirstLine: a gate, and that a remedy leaves it, are said where they are read.
func TestGateInFirstLine(t *testing.T) {
	e := tooMany()
	e.SchedulingGates = []string{"example.com/hold"}
	out := draw(t, e, render.Options{Width: 100})
	for _, want := range []string{"and has scheduling gate\n  example.com/hold", "The scheduling gate example.com/hold stays: the scheduler looks at the pod once it is removed."} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in:\n%s", want, out)
		}
	}
	e.Verdict, e.Conflict, e.Remedies = api.Fits, nil, nil
	if out := draw(t, e, render.Options{Width: 100}); !strings.Contains(strings.SplitN(out, "\n", 2)[0], "once scheduling gate example.com/hold is removed") {
		t.Errorf("got:\n%s", out)
	}
}
