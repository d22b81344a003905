// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/golden"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui"
)

func exampleSnapshot(t *testing.T) *snapshot.Snapshot {
	t.Helper()
	snap, err := files.Load(t.Context(), []string{filepath.Join("..", "..", "examples", "cluster")}, files.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// TestPlans covers the command that does the same, and say what the change does.
func TestPlans(t *testing.T) {
	snap := exampleSnapshot(t)
	cordoned := snap.Node("gpu-03").DeepCopy()
	cordoned.Spec.Unschedulable = true
	cordoned.Spec.Taints = append(cordoned.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	snap = snap.With(&snapshot.Snapshot{Nodes: []*corev1.Node{cordoned}})
	c := &changer{flags: []string{"--context=prod"}}
	for name, tt := range map[string]struct {
		change  tui.Change
		command string
		effects []string
		warning string
	}{
		"taint a pool": {
			tui.Change{Kind: tui.AddTaint, Driver: "gpu.example.com", Pool: "gpu-01", Taint: "example.com/m=1:NoExecute"},
			"kubectl dra taints add --driver gpu.example.com --pool gpu-01 example.com/m=1:NoExecute --context=prod",
			[]string{"DeviceTaintRule gpu-01-gpu.example.com-m puts example.com/m=1:NoExecute on 8 devices", "2 pods would be evicted", "serving/llm-1 would be evicted at once", "not created again; "},
			"This evicts 2 pods.",
		},
		"taint a device that nobody uses": {
			tui.Change{Kind: tui.AddTaint, Driver: "gpu.example.com", Pool: "gpu-03", Device: "gpu-0", Taint: "example.com/m:NoExecute"},
			"kubectl dra taints add --driver gpu.example.com --pool gpu-03 --device gpu-0 example.com/m:NoExecute --context=prod",
			[]string{"on 1 device", "0 pods would be evicted"},
			"",
		},
		"remove a rule": {
			tui.Change{Kind: tui.RemoveTaint, Name: "gpu-02-memory-errors"},
			"kubectl dra taints remove gpu-02-memory-errors --context=prod",
			[]string{"The taint gpu.example.com/ecc=uncorrectable:NoExecute is taken from 1 device", "gpu.example.com/gpu-02/gpu-3", "1 waiting pod would fit then: research/finetune-0"},
			"",
		},
		"uncordon": {
			tui.Change{Kind: tui.Uncordon, Name: "gpu-08"},
			"kubectl uncordon gpu-08 --context=prod",
			[]string{"Pods can be placed on node gpu-08 again.", "8 of its 8 devices are free.", "1 waiting pod would fit then: research/finetune-0"},
			"",
		},
		"uncordon a node that a pod waits for": {
			tui.Change{Kind: tui.Uncordon, Name: "gpu-03"},
			"kubectl uncordon gpu-03 --context=prod",
			[]string{"1 waiting pod would fit then: research/finetune-0"},
			"",
		},
		"delete a claim of a running pod": {
			tui.Change{Kind: tui.DeleteClaim, Namespace: "serving", Name: "llm-0-gpus-5tck7"},
			"kubectl delete resourceclaim llm-0-gpus-5tck7 -n serving --wait=false --context=prod",
			[]string{"reserved by pod llm-0", "marked for deletion", "keeps its 4 devices", "generated for pod llm-0"},
			"Pod llm-0 is running and uses it",
		},
		"delete a claim that a pod waits for": {
			tui.Change{Kind: tui.DeleteClaim, Namespace: "research", Name: "notebook-0-gpu-g4n4v"},
			"kubectl delete resourceclaim notebook-0-gpu-g4n4v -n research --wait=false --context=prod",
			[]string{"The claim has no devices: it is gone at once.", "1 pod that uses it and does not run cannot start without it: notebook-0"},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := c.Plan(t.Context(), snap, tt.change)
			if err != nil {
				t.Fatal(err)
			}
			if plan.Command != tt.command {
				t.Errorf("command %q, want %q", plan.Command, tt.command)
			}
			for _, want := range tt.effects {
				if !strings.Contains(plan.Effects, want) {
					t.Errorf("no %q in:\n%s", want, plan.Effects)
				}
			}
			if tt.warning == "" && plan.Warning != "" || !strings.Contains(plan.Warning, tt.warning) {
				t.Errorf("warning %q, want %q", plan.Warning, tt.warning)
			}
		})
	}
}

// TestPlanOfDocument checks that the plan in docs/top.md and the screens of pkg/tui is the
// plan for the example cluster.
func TestPlanOfDocument(t *testing.T) {
	plan, err := (&changer{flags: []string{"--context=prod"}}).Plan(t.Context(), exampleSnapshot(t), tui.Change{
		Kind: tui.AddTaint, Driver: "gpu.example.com", Pool: "gpu-01", Taint: "example.com/xid=79:NoExecute",
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(plan, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, string(text)+"\n", filepath.Join("..", "..", "tui", "testdata", "plan.json"))
}

// TestNoPlan names the object and says why nothing can be done.
func TestNoPlan(t *testing.T) {
	snap := exampleSnapshot(t)
	c := &changer{}
	for want, change := range map[string]tui.Change{
		"remove DeviceTaintRule none: it is gone":                  {Kind: tui.RemoveTaint, Name: "none"},
		"uncordon node none: it is gone":                           {Kind: tui.Uncordon, Name: "none"},
		"uncordon node gpu-01: it is not cordoned":                 {Kind: tui.Uncordon, Name: "gpu-01"},
		"delete ResourceClaim research/none: it is gone":           {Kind: tui.DeleteClaim, Namespace: "research", Name: "none"},
		"DeviceTaintRule gpu-02-memory-errors does that already":   {Kind: tui.AddTaint, Driver: "gpu.example.com", Pool: "gpu-02", Device: "gpu-3", Taint: "gpu.example.com/ecc=uncorrectable:NoExecute"},
		`read taint "example.com/m:Never": "Never" is not a valid`: {Kind: tui.AddTaint, Driver: "gpu.example.com", Pool: "gpu-01", Taint: "example.com/m:Never"},
	} {
		if _, err := c.Plan(t.Context(), snap, change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", change, err, want)
		}
	}
	if err := c.CheckTaint("example.com/m"); err == nil || !strings.Contains(err.Error(), "no effect") {
		t.Errorf("a taint without an effect: %v", err)
	}
	if err := c.CheckTaint("example.com/m:NoSchedule"); err != nil {
		t.Error(err)
	}
}

// TestNameThatIsTaken makes the rule another name, which the command has, too.
func TestNameThatIsTaken(t *testing.T) {
	snap := exampleSnapshot(t)
	c := &changer{}
	change := tui.Change{Kind: tui.AddTaint, Driver: "gpu.example.com", Pool: "gpu-01", Taint: "example.com/m:NoSchedule"}
	first := *snap.TaintRules[0].DeepCopy()
	first.Name = "gpu-01-gpu.example.com-m"
	amended := *snap
	amended.TaintRules = append(amended.TaintRules, &first)
	plan, err := c.Plan(t.Context(), &amended, change)
	if err != nil {
		t.Fatal(err)
	}
	if want := "--name gpu-01-gpu.example.com-m-2"; !strings.Contains(plan.Command, want) {
		t.Errorf("%q has no %q", plan.Command, want)
	}
}
