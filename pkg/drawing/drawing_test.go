// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package drawing

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

const hostile = "</text><script>alert(1)</script>\u202e\x1b]0;x\a\" onload=\"x"

// texts writes a drawing as a file, which has to be XML, and returns the texts in it.
func texts(t *testing.T, d *Drawing) []string {
	t.Helper()
	var b bytes.Buffer
	if err := d.Write(&b); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\u202e\x1b\a") {
		t.Error("the file has characters that nobody sees")
	}
	var list []string
	decoder, in := xml.NewDecoder(&b), ""
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			in = e.Name.Local
			if in == "script" {
				t.Error("the file has a script")
			}
		case xml.CharData:
			if in == "text" && strings.TrimSpace(string(e)) != "" {
				list = append(list, string(e))
			}
		}
	}
}

// TestDrawings looks at the words in each drawing, also where names are hostile.
func TestDrawings(t *testing.T) {
	request := api.RequestExplanation{
		Name: "gpus", DeviceClass: "gpu.example.com", Mode: "ExactCount", Needs: 4, Considered: 10, Pools: 2, Eligible: 2, EligibleNodes: 1, MostOnOneNode: 2, BestNode: "a",
		Rejected: []api.Rejection{{Code: api.DeviceAllocated, Count: 8, Label: "allocated", Message: hostile}},
	}
	explanation := &api.Explanation{
		Target: api.Ref(api.KindPod, "ml", "train"), Verdict: api.DoesNotFit, Summary: "Request gpus needs 4 devices.", NodeCount: 3,
		Claims:   []api.ClaimExplanation{{Requests: []api.RequestExplanation{request}}},
		Remedies: []api.Remedy{{Actor: api.ActorUser, Change: "request 2 devices", Node: "a"}},
	}
	plan := &api.Plan{Counts: api.PlanCounts{Placed: 2, Waiting: 1}, Pods: []api.PlannedPod{
		{Namespace: "ml", Name: "a-0", Position: 1, Outcome: api.PlanPlaced, Node: "n1", Owner: api.Ref("Job", "ml", "a")},
		{Namespace: "ml", Name: "a-1", Position: 2, Outcome: api.PlanPlaced, Node: "n1", Owner: api.Ref("Job", "ml", "a")},
		{Namespace: "ml", Name: "b", Position: 3, Outcome: api.PlanWaiting, Reason: "Waiting for devices."},
	}}
	impact := &api.Impact{Change: "drain n1", Counts: api.ImpactCounts{Evicted: 2, Placed: 1, NoPlace: 1}, Pods: []api.ImpactPod{
		{Namespace: "ml", Name: "a", Effect: api.EffectEvicted, Node: "n1", Outcome: api.OutcomePlaced, Placement: &api.Placement{Node: "n2"}},
		{Namespace: "ml", Name: hostile, Effect: api.EffectEvicted, Node: "n1", Outcome: api.OutcomeNoPlace, Reason: "nothing is free"},
		{Namespace: "ml", Name: "daemon", Effect: api.EffectStays, Node: "n1"},
	}}
	fit := &api.Fit{Summary: "3 copies fit.", Nodes: []api.CopyNodes{{Count: 2, Names: []string{"n1", "n2"}, Now: 1, Released: 2}, {Count: 1, Names: []string{"n3"}, Now: 1, Released: 1, Message: "no more cpu"}}}
	shapes := &api.FitShapes{Shapes: []api.ShapeFit{{Shape: api.ClaimShape{Class: "gpu.example.com", Devices: 2}, Now: api.CopyCount{AtLeast: 1}, Released: api.CopyCount{AtLeast: 4}}}}
	pool := &api.Pool{Driver: "gpu.example.com", Name: "p", Counters: []api.Counter{{CounterSet: "card-0", Name: "memory", Total: "80Gi", Consumed: "40Gi", ConsumedPercent: 50}}}
	devices := []api.Device{
		{Name: "card-0-half", State: api.DeviceStateAllocated, Counters: map[string]string{"card-0/memory": "40Gi"}},
		{Name: "card-0-whole", State: api.DeviceStateBlocked, Counters: map[string]string{"card-0/memory": "80Gi"}},
	}
	tree := []api.Branch{{Of: "Node", Name: "n1", Branches: []api.Branch{{Of: api.KindClaim, Namespace: "ml", Name: "c"}}}}
	for name, test := range map[string]struct {
		drawing *Drawing
		want    []string
	}{
		"funnel":     {Funnel(&request), []string{"8", "allocated:", "2", "available: on a"}},
		"answer":     {Explanation(explanation), []string{"Pod ml/train does not fit", "Request gpus needs 4 devices.", "What helps", "you", "request 2 devices (a)"}},
		"plan":       {Plan(plan), []string{"1. ml/a-0 and 1 more", "3. ml/b", "Waiting for devices.", "n1"}},
		"impact":     {Impact(impact), []string{"ml/a on n1", "no place: nothing is free", "n2"}},
		"fit":        {Fit(fit), []string{"3 copies fit.", "n1, n2: 1 each; 4 once claims are released", "n3: no more cpu"}},
		"shapes":     {FitShapes(shapes), []string{"1", "gpu.example.com: 2 devices; 4 once claims are released"}},
		"partitions": {Partitions(pool, devices), []string{"Counter set card-0", "40Gi of 80Gi", "40Gi memory", "half", "80Gi memory", "whole"}},
		"tree":       {Tree("tree", tree), []string{"Node n1", "ResourceClaim ml/c"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := "|" + strings.Join(texts(t, test.drawing), "|")
			for _, want := range test.want {
				if !strings.Contains(got, "|"+want) {
					t.Errorf("it lacks %q: %s", want, got)
				}
			}
			if words := test.drawing.SVG(); !strings.Contains(words, `aria-label="`) || strings.Contains(words, "<script") {
				t.Errorf("for a page it has no label, or a script: %.200s", words)
			}
			if strings.Contains(got, "daemon") {
				t.Error("it has what stays")
			}
		})
	}
}

// TestFunnelBars compares the widths of bars with the numbers.
func TestFunnelBars(t *testing.T) {
	f := Funnel(&api.RequestExplanation{
		Name: "r", DeviceClass: "c", Needs: 1, Considered: 10, Pools: 1, Eligible: 5, EligibleNodes: 1, MostOnOneNode: 5, BestNode: "a",
		Rejected: []api.Rejection{{Code: api.DeviceAllocated, Count: 5, Label: "allocated"}},
	})
	for _, want := range []string{
		`<rect class="track" x="64" y="24" width="200"`, `<rect class="bad fill" x="164" y="24" width="100"`, `<rect class="good fill" x="64" y="42" width="100"`,
	} {
		if !strings.Contains(f.SVG(), want) {
			t.Errorf("it lacks %s: %s", want, f.SVG())
		}
	}
}

// TestPhone draws a funnel for a phone, with the text below the bars, and only the other layout for
// a file.
func TestPhone(t *testing.T) {
	f := Funnel(&api.RequestExplanation{
		Name: "r", DeviceClass: "c", Needs: 1, Considered: 10, Pools: 1, Eligible: 5, EligibleNodes: 1, MostOnOneNode: 5, BestNode: "a",
		Rejected: []api.Rejection{{Code: api.DeviceAllocated, Count: 5, Label: "allocated by many pods of many namespaces"}},
	})
	phone, rest, _ := strings.Cut(f.SVG(), "</svg>")
	for _, want := range []string{
		`<svg class="drawing narrow" role="img" viewBox="0 0 330 `, `<rect class="bad fill" x="164" y="24" width="100"`,
		`x="64" y="51">allocated by many pods of many</text>`, `x="64" y="69">namespaces`,
	} {
		if !strings.Contains(phone, want) {
			t.Errorf("on a phone it lacks %s: %s", want, phone)
		}
	}
	if !strings.Contains(rest, `viewBox="0 0 760 `) || !strings.Contains(rest, "allocated by many pods of many namespaces") {
		t.Errorf("the other layout is not there: %s", rest)
	}
	if got := strings.Join(texts(t, f), "|"); strings.Count(got, "allocated by") != 1 {
		t.Errorf("a file has both layouts: %s", got)
	}
}

// TestGraphs reads what Graphviz and Mermaid get; an object in two trees is one node.
func TestGraphs(t *testing.T) {
	roots := []api.Branch{
		{Of: "Pod", Namespace: "ml", Name: `a"]; x --> y`, Branches: []api.Branch{{Of: "Node", Name: "n1"}}},
		{Of: "Pod", Namespace: "ml", Name: "b", Branches: []api.Branch{{Of: "Node", Name: "n1"}}},
	}
	var dot, mermaid strings.Builder
	if err := DOT(&dot, roots); err != nil {
		t.Fatal(err)
	}
	if err := Mermaid(&mermaid, roots); err != nil {
		t.Fatal(err)
	}
	const wantDOT = `digraph dra {
  rankdir=LR;
  node [shape=box, fontname="monospace"];
  n0 [label="Pod ml/a\"]; x --> y"];
  n1 [label="Node n1"];
  n2 [label="Pod ml/b"];
  n0 -> n1;
  n2 -> n1;
}
`
	const wantMermaid = `flowchart LR
  n0["Pod ml/a#34;#93;#59; x --#62; y"]
  n1["Node n1"]
  n2["Pod ml/b"]
  n0 --> n1
  n2 --> n1
`
	if dot.String() != wantDOT {
		t.Errorf("got %s", dot.String())
	}
	if mermaid.String() != wantMermaid {
		t.Errorf("got %s", mermaid.String())
	}
}
