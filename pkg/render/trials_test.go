// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/xml"
	"testing"

	"gotest.tools/v3/golden"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// trialsForTests returns a passed, a failed and some skipped trials.
func trialsForTests() *api.TestReport {
	device := api.AllocatedDevice{Request: "device", Driver: "gpu.example.com", Pool: "gpu-03", Device: "gpu-0"}
	passed := func(stage api.TrialStageName, milliseconds int64) api.TrialStage {
		return api.TrialStage{Stage: stage, Result: api.TestPassed, Milliseconds: ptr.To(milliseconds)}
	}
	begun := []api.TrialStage{passed(api.TrialGenerated, 12), passed(api.TrialAllocated, 33), passed(api.TrialReserved, 0), passed(api.TrialScheduled, 4)}
	return &api.TestReport{
		Source: "cluster https://10.0.0.1", KubernetesVersion: "v1.37.1", Namespace: "kubectl-dra-test-x", Result: api.TestFailed, Summary: "2 trials: 1 passed, 1 failed, 1 skipped",
		Trials: []api.Trial{
			{
				Name: "gpu.example.com, round 1", Class: "gpu.example.com", Round: 1, Pod: "case-1-1", Claim: "case-1-1-devices-abcde", Node: "gpu-03", Result: api.TestPassed, Devices: []api.AllocatedDevice{device},
				Stages: append(append([]api.TrialStage{}, begun...), passed(api.TrialPrepared, 310), passed(api.TrialInjected, 120), passed(api.TrialStarted, 35),
					passed(api.TrialUnprepared, 1204), passed(api.TrialDeallocated, 50), passed(api.TrialCleaned, 12345)),
				Checks: []api.TrialCheck{
					{Check: api.CheckPredicted, Result: api.TestPassed, Message: "it fits, with gpu.example.com/gpu-03/gpu-0"},
					{Check: api.CheckContainer, Result: api.TestUnknown, Message: "not compared: --node-probe looks at the node"},
				},
			},
			{
				Name: "gpu.example.com, round 2", Class: "gpu.example.com", Round: 2, Pod: "case-1-2", Node: "gpu-03", Result: api.TestFailed, Devices: []api.AllocatedDevice{device},
				Message: "stage Prepared was not reached within 2m0s",
				Stages:  append(append([]api.TrialStage{}, begun...), api.TrialStage{Stage: api.TrialPrepared, Result: api.TestFailed}, api.TrialStage{Stage: api.TrialStarted, Result: api.TestUnknown}),
				Checks: []api.TrialCheck{{
					Check: api.CheckNode, Result: api.TestFailed, Message: "node-probe on node gpu-03: the socket is stale",
					Evidence: []api.Evidence{{Object: api.Ref("Node", "", "gpu-03"), Path: "plugins/sockets", Found: hostileName}},
				}},
				Explanation: &api.Explanation{
					Summary: "DRA driver gpu.example.com is not registered with the kubelet of node gpu-03.", Stage: api.StagePreparation, Code: api.PreparationFailed,
					StageEvidence: []api.Evidence{{Object: api.Ref("Event", "kubectl-dra-test-x", "e"), Path: "message", Found: "not registered"}},
					NextSteps:     []api.NextStep{{Actor: api.ActorAdmin, Text: "check that its pod runs", Commands: []string{"kubectl get pods -A"}}},
				},
			},
		},
		Skipped: []api.SkippedTrial{{Class: "nic.example.com", Reason: api.SkipLastDevice, Message: "it would take what is left; --yes takes it"}},
		Times:   []api.StageTimes{{Class: "gpu.example.com", Stage: api.TrialGenerated, Count: 2, P50: 12, P90: 12, P99: 12, Max: 12}, {Class: "gpu.example.com", Stage: api.TrialPrepared, Count: 1, P50: 310, P90: 1310, P99: 31000, Max: 310000}},
		Left:    []api.ObjectRef{api.Ref(api.KindPod, "kubectl-dra-test-x", "case-1-2")},
	}
}

func TestTrials(t *testing.T) {
	for name, opts := range map[string]Options{"trials-80.txt": {Width: 80}, "trials-wide.txt": {Width: 120, Wide: true}, "trials-color.txt": {Width: 100, Color: true}} {
		var out bytes.Buffer
		if err := Trials(&out, trialsForTests(), opts); err != nil {
			t.Fatal(err)
		}
		golden.Assert(t, out.String(), name)
		if !opts.Color {
			assertPrintable(t, out.String())
		}
	}
}

// TestManyTrials counts trials that are like the first ones.
func TestManyTrials(t *testing.T) {
	report := &api.TestReport{Source: "cluster", Summary: "50 trials: 50 passed"}
	for i := range 50 {
		report.Trials = append(report.Trials, api.Trial{Class: "gpu", Round: i + 1, Result: api.TestPassed})
	}
	var out bytes.Buffer
	if err := Trials(&out, report, Options{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(out.Bytes(), []byte("and 30 more like these")) || bytes.Count(out.Bytes(), []byte("✓")) != shownTrials {
		t.Errorf("got\n%s", out.String())
	}
}

// TestTrialsJUnit reads the report as its readers do.
func TestTrialsJUnit(t *testing.T) {
	var out bytes.Buffer
	if err := TrialsJUnit(&out, trialsForTests()); err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, out.String(), "trials.junit.xml")
	assertPrintable(t, out.String())
	var suites struct {
		Suites []struct {
			Tests    int    `xml:"tests,attr"`
			Failures int    `xml:"failures,attr"`
			Skipped  int    `xml:"skipped,attr"`
			Time     string `xml:"time,attr"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(out.Bytes(), &suites); err != nil {
		t.Fatal(err)
	}
	if suite := suites.Suites[0]; suite.Tests != 20 || suite.Failures != 2 || suite.Skipped != 3 || suite.Time != "14.162" {
		t.Errorf("%+v", suite)
	}
}
