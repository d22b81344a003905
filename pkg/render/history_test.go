// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"gotest.tools/v3/golden"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// history returns a history with every event.
func history() *api.History {
	at := func(hours, minutes int) metav1.Time {
		return metav1.NewTime(time.Date(2026, 7, 1, hours, minutes, 0, 0, time.UTC))
	}
	ptrTo := func(t metav1.Time) *metav1.Time { return &t }
	fits := &api.AnswerState{Verdict: api.Fits, Summary: "It fits on node gpu-09."}
	not := &api.AnswerState{Verdict: api.DoesNotFit, Code: api.ConstraintUnsatisfiable, Summary: "Request gpus needs 8 devices with the same pcieRoot; node gpu-03 has 8 available, but at most 4 with the same pcieRoot."}
	fewer := &api.AnswerState{Verdict: api.DoesNotFit, Code: api.CountUnsatisfiable, Summary: "Node gpu-03 has 7 available, 8 needed."}
	taken := func(claim string, reason api.TakenReason, priority, own int32, devices ...string) api.TakenDevices {
		t := api.TakenDevices{Claim: api.Ref(api.KindClaim, "serving", claim), Pod: api.Ref(api.KindPod, "serving", claim), Node: "gpu-03", Reason: reason, Priority: priority, TargetPriority: own}
		for _, device := range devices {
			t.Devices = append(t.Devices, api.AllocatedDevice{Request: "gpu", Driver: "gpu.example.com", Pool: "gpu-03", Device: device})
		}
		return t
	}
	undo := func(message string, objects ...api.ObjectRef) []api.Change {
		c := api.Change{Message: message, Count: 1}
		for _, o := range objects {
			c.Objects = append(c.Objects, api.ChangedObject{Object: o, Op: api.Changed})
		}
		return []api.Change{c}
	}
	h := &api.History{
		Object: api.Ref(api.KindPod, "research", "pretrain-0"),
		From:   at(9, 0), To: at(14, 14), Waits: true, WaitingSince: ptrTo(at(9, 2)), SecondsWaited: 18720, Now: *fewer,
		Entries: []api.HistoryEntry{
			{Time: at(9, 2), Event: api.HistoryCreated, Answer: fits},
			{Time: at(9, 14), Event: api.HistoryChanged, Was: fits, Answer: not, Undo: undo("pool gpu-09 lost 4 devices (1 of 2 slices)"), Count: 3, Last: ptrTo(at(9, 19))},
			{Time: at(9, 15), Event: api.HistoryChanged, Was: not, Answer: fits, Undo: undo("pool gpu-09 got 4 devices (1 of 2 slices)"), Count: 2, Last: ptrTo(at(9, 18))},
			{Time: at(9, 20), Event: api.HistoryTaken, Taken: []api.TakenDevices{taken("b-7", api.TakenByPriority, 1000, 0, "gpu-3")}},
			{Time: at(9, 20), Event: api.HistoryChanged, Was: fits, Answer: not, Undo: undo("claim serving/b-7 of pod serving/b-7 got gpu-03/gpu-3", api.Ref(api.KindClaim, "serving", "b-7"))},
			{Time: at(9, 30), Event: api.HistoryTaken, Taken: []api.TakenDevices{
				taken("a", api.TakenByAge, 0, 0, "gpu-1"),
				taken("c", api.TakenByScheduler, 0, 0, "gpu-1", "gpu-2", "gpu-4", "gpu-5"),
			}},
			{Time: at(9, 31), Event: api.HistoryTaken, Taken: []api.TakenDevices{taken("d", api.TakenByScheduler, -5, 0, "gpu-1")}},
			{Time: at(10, 3), After: ptrTo(at(10, 0)), Event: api.HistoryMissed, Note: "the API server did not answer"},
			{Time: at(10, 3), After: ptrTo(at(10, 0)), Event: api.HistoryChanged, Was: not, Answer: fewer},
		},
	}
	for i := range 5 {
		h.Entries = append(h.Entries, api.HistoryEntry{Time: at(11, i), Event: api.HistoryTaken, Taken: []api.TakenDevices{taken(fmt.Sprint("e-", i), api.TakenByAge, 0, 0, "gpu-7")}})
	}
	h.Entries = append(h.Entries, api.HistoryEntry{Time: at(12, 0), Event: api.HistoryChanged, Was: fewer, Answer: &api.AnswerState{Verdict: api.Undetermined, Summary: "Claims could not be read."}, Note: "one of the answers cannot be determined"},
		api.HistoryEntry{Time: at(12, 1), Event: api.HistoryDeleted},
		api.HistoryEntry{Time: at(12, 1), Event: api.HistoryCreated, Answer: fewer})
	return h
}

func drawHistory(t *testing.T, h *api.History, opts Options) string {
	t.Helper()
	var out bytes.Buffer
	if err := History(&out, h, time.FixedZone("CEST", 2*60*60), opts); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestHistory(t *testing.T) {
	for form, opts := range map[string]Options{"80": {Width: 80}, "80-color": {Width: 80, Color: true}, "140-wide": {Width: 140, Wide: true}, "unlimited": {}} {
		t.Run(form, func(t *testing.T) {
			text := drawHistory(t, history(), opts)
			for line := range strings.Lines(text) {
				if width := ansi.StringWidth(strings.TrimSuffix(line, "\n")); opts.Width > 0 && width > opts.Width {
					t.Errorf("%d cells: %s", width, line)
				}
			}
			golden.Assert(t, text, "history-"+form+".golden")
		})
	}
}

// TestHistoryEnds draws what became of the target.
func TestHistoryEnds(t *testing.T) {
	for want, change := range map[string]func(h *api.History){
		"✓ Pod research/pretrain-0 is scheduled to gpu-03; pending for 5h12m before": func(h *api.History) {
			h.Waits, h.Now = false, api.AnswerState{Verdict: api.Allocated, Node: "gpu-03"}
		},
		"? Pod research/pretrain-0 is gone; pending for 5h12m before": func(h *api.History) { h.Waits, h.Now = false, api.AnswerState{} },
		"✗ Pod research/pretrain-0 does not fit; pending since Jun 30 11:02 (29h)": func(h *api.History) {
			day := metav1.NewTime(h.WaitingSince.Add(-24 * time.Hour))
			h.WaitingSince = &day
		},
	} {
		h := history()
		change(h)
		if text := drawHistory(t, h, Options{Width: 80}); !strings.HasPrefix(text, want+"\n") {
			t.Errorf("want %s in\n%s", want, text)
		}
	}
}

// TestManyEvents draws a history that is longer than a screen, within an hour.
func TestManyEvents(t *testing.T) {
	h := history()
	h.From = metav1.NewTime(h.To.Add(-30 * time.Minute))
	h.Entries = h.Entries[:2]
	for i := range 50 {
		e := h.Entries[1]
		e.Count, e.Time = 0, metav1.NewTime(h.From.Add(time.Duration(i)*time.Second))
		h.Entries = append(h.Entries, e)
	}
	text := drawHistory(t, h, Options{Width: 80})
	if lines := strings.Count(text, "\n"); !strings.Contains(text, "36 more events: -o wide") || lines > 50 || !strings.Contains(text, "15:44:49") {
		t.Errorf("%d lines:\n%s", lines, text)
	}
	if wide := drawHistory(t, h, Options{Width: 80, Wide: true}); strings.Contains(wide, "more event") || strings.Count(wide, "fits no longer") != 51 {
		t.Errorf("wide:\n%s", wide)
	}
}
