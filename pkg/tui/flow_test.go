// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/views"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// TestDrillDown goes from a class to its pools, devices, claim and pod, and back
// to the same rows.
func TestDrillDown(t *testing.T) {
	s := browse(t, 120, 30)
	s.keys("7", "down", "down")
	class := s.selected()
	s.keys("enter")
	if !strings.Contains(s.selected(), "Incomplete") {
		t.Errorf("the first pool is %q, want the one in trouble", s.selected())
	}
	s.keys("down", "down", "down")
	s.shows("pools of class gpu.example.com")
	pool := s.selected()
	s.keys("enter", "end")
	s.shows("devices of pool gpu.example.com/gpu-03")
	s.keys("esc", "up", "enter", "end")
	s.shows("devices of pool gpu.example.com/gpu-02")
	device := s.selected()
	s.keys("enter")
	s.shows("claims of device gpu-02/gpu-7", "ablation-0-gpus-9gtjv")
	s.keys("enter")
	s.shows("pods of claim research/ablation-0-gpus-9gtjv", "Running")
	s.keys("enter")
	s.shows("why Pod research/ablation-0")
	s.keys("esc", "esc", "esc")
	if got := s.selected(); got != device {
		t.Errorf("back at %q, want %q", got, device)
	}
	s.keys("esc", "down")
	if got := s.selected(); got != pool {
		t.Errorf("back at %q, want %q", got, pool)
	}
	s.keys("esc")
	if got := s.selected(); got != class {
		t.Errorf("back at %q, want %q", got, class)
	}
}

// TestFilter narrows a list as it is typed.
func TestFilter(t *testing.T) {
	s := browse(t, 120, 40)
	s.keys("4")
	s.shows("1/104 devices")
	s.keys("/", `"tainted`)
	s.shows("1/3 of 104 devices", "filter: tainted")
	s.keys("esc")
	s.shows("1/104 devices")
	s.keys("/", `"!gpu`, "enter")
	s.lacks("gpu-0")
	s.shows("4 of 104 devices", "decoder-0")
	s.keys("esc")
	s.shows("/104 devices")
	s.keys("/", `"~^nic-[01]$`, "enter")
	s.shows("1/12 of 104 devices")
	s.keys("/")
	for range len("~^nic-[01]$") {
		s.keys("backspace")
	}
	s.keys(`"--where device.attributes["gpu.example.com"].?type.orValue("") == "partition"`, "enter")
	s.shows("1/28 of 104 devices")
	s.keys("esc", "/", `"~[`)
	s.shows("read the filter: missing closing ] in [", "mig-0")
	s.keys("esc", "/", `"colum:gpu`)
	s.shows("0 of 104 devices", "no column colum among pool, device, state, claim, pods, health, taints")
	s.keys("esc", "/", `"taints:ecc`)
	s.shows("1/1 of 104 devices")
	s.keys("esc", "/", `"zzz`)
	s.shows("no row matches zzz", "0 of 104 devices")
	s.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	s.keys("esc", "6", "/", `"zzz`, "enter")
	s.shows("no row matches zzz", "0 of 10 rows", "esc all rows")
	s.keys("esc", "4", "/", `"zzz`)
	s.send(tea.WindowSizeMsg{Width: 120, Height: 40})
	s.keys("esc", "2", "v", "/", `"gpu-0`, "enter")
	s.shows("filter gpu-0   gpu-09", "9 nodes with devices")
	s.keys("v", "esc", "5", "/", `"--where true`)
	s.shows("--where is for devices")
}

// TestAllNamespaces leaves a namespace with one key.
func TestAllNamespaces(t *testing.T) {
	s := browse(t, 120, 40)
	s.keys("5", "n", `"media`, "enter")
	s.shows("of 35 claims, namespace media")
	s.keys("N")
	s.shows("1/35 claims")
	s.keys("N")
	s.shows("all namespaces are shown already")
}

// TestSort sorts by any column, numbers as numbers, and what has no value last.
func TestSort(t *testing.T) {
	s := browse(t, 120, 40)
	s.keys("3", ".", ".", ".", ".")
	s.shows("TOTAL ▼", "by Total")
	if first := s.lines()[3]; !strings.Contains(first, "mig-01") {
		t.Errorf("the largest pool is not first: %s", first)
	}
	s.keys("r")
	s.shows("TOTAL ▲")
	if first := s.lines()[3]; !strings.Contains(first, "gpu-01") || !strings.Contains(first, "nic.example.com") {
		t.Errorf("the smallest pool is not first: %s", first)
	}
	s.send(tea.MouseClickMsg{Button: tea.MouseLeft, X: 4, Y: 2})
	s.shows("POOL ▲")
	s.keys(",")
	s.lacks("▲", "▼")
	first := s.lines()[3]
	s.keys("r")
	if first == s.lines()[3] {
		t.Errorf("the order of the list is not turned round: %s", first)
	}
}

// TestNamespace shows the claims of one namespace only.
func TestNamespace(t *testing.T) {
	s := browse(t, 120, 40)
	s.keys("5", "n", `"vis`, "tab", "enter")
	s.shows("namespace vision", "segment-3-part-2bhfx")
	s.lacks("research", "serving")
	s.keys("4")
	s.shows("104 devices")
	s.keys("0")
	s.shows("3 of 13 rows", "gpu-partition.example.com")
	s.lacks("research")
	s.keys("down", "enter")
	s.shows("claims of vision, class gpu-partition.example.com", "segment-3-part-2bhfx")
	s.lacks("calibrate")
}

// TestResize keeps the selected row in sight.
func TestResize(t *testing.T) {
	s := browse(t, 200, 60)
	s.keys("4", "end")
	was := strings.Fields(s.selected())[1:3]
	for _, size := range []tea.WindowSizeMsg{{Width: 80, Height: 24}, {Width: 40, Height: 8}, {Width: 300, Height: 100}, {Width: 10, Height: 3}, {Width: 80, Height: 24}} {
		s.send(size)
		if size.Width >= 40 {
			if got := strings.Fields(s.selected())[1:3]; got[0] != was[0] {
				t.Errorf("at %dx%d, %v is selected, want %v", size.Width, size.Height, got, was)
			}
		}
	}
}

// TestLive shows changes, what the pending claims wait for, and the connection.
func TestLive(t *testing.T) {
	before := example(t)
	source := newMoving(before)
	now := before.Now()
	s := newSession(t, Options{Source: source, Now: func() time.Time { return now }}, 200, 60)
	s.shows("Waiting 10", "Causes 13", "cause 3: never here", "none since")
	s.keys("5", "/", `"finetune`, "enter")
	if strings.Contains(s.selected(), "•") {
		t.Errorf("a row is marked although nothing changed: %s", s.selected())
	}

	now = now.Add(3 * time.Second)
	source.set(allocated(before, "research", "finetune-0-gpus-qh957", "gpu-08", now))
	s.changed()
	if row := s.selected(); !strings.Contains(row, "Allocated") || !strings.Contains(row, "gpu-08:gpu-0…gpu-3") || !strings.Contains(row, "•") {
		t.Errorf("the claim did not change, or is not marked: %s", row)
	}
	s.keys("1")
	s.shows("57 %", "claim research/finetune-0-gpus-qh957")

	s.keys("space")
	s.shows("frozen, 0s old")
	source.set(before)
	now = now.Add(5 * time.Second)
	s.changed()
	s.shows("frozen, 5s old; the cluster has changed", "57 %")
	s.keys("space")
	s.shows("Waiting 10", "was deallocated")
	s.lacks("57 %")

	source.fail(now.Add(-12*time.Second), errors.New("connection refused"))
	s.changed()
	s.shows("! for 12s: connection refused", "Waiting 10")
	source.fail(time.Time{}, nil)
	s.changed()
	s.lacks("connection refused")
}

// allocated returns a snapshot in which a claim got the first four devices of a node.
func allocated(from *snapshot.Snapshot, namespace, name, node string, at time.Time) *snapshot.Snapshot {
	to := *from
	to.TakenAt = at
	to.Claims = append([]*resourceapi.ResourceClaim{}, from.Claims...)
	for i, claim := range to.Claims {
		if claim.Namespace != namespace || claim.Name != name {
			continue
		}
		claim = claim.DeepCopy()
		claim.Status.Allocation = &resourceapi.AllocationResult{}
		for _, device := range []string{"gpu-0", "gpu-1", "gpu-2", "gpu-3"} {
			claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
				resourceapi.DeviceRequestAllocationResult{Request: "gpus", Driver: "gpu.example.com", Pool: node, Device: device})
		}
		to.Claims[i] = claim
	}
	return &to
}

// TestGaps says what could not be read.
func TestGaps(t *testing.T) {
	snap := *example(t)
	snap.Pods = []*corev1.Pod{}
	snap.Gaps = []snapshot.Gap{{Resource: snapshot.ResourcePods, Reason: "may not list pods"}}
	s := newSession(t, Options{Source: newMoving(&snap)}, 80, 24)
	s.shows("may not list pods")
}

// TestNothing shows a cluster without any objects.
func TestNothing(t *testing.T) {
	s := newSession(t, Options{Source: newMoving(&snapshot.Snapshot{Source: "empty"})}, 80, 24)
	for _, key := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		s.keys(key, "down", "end", "enter", "w", "y", "t", ">", "r", "right", "esc")
	}
	s.shows("0 taints")
	s.keys("q")
	if !s.quit {
		t.Error("q does not quit")
	}
}

// TestQuit leads back from a screen that was opened from another one, and ctrl+c ends the dashboard
// there, too.
func TestQuit(t *testing.T) {
	s := browse(t, 120, 30)
	s.keys("4", "y")
	s.shows("kind: Device", "q back")
	s.keys("q")
	s.shows("1/104 devices", "q quit")
	if s.quit {
		t.Fatal("q on a page ends the dashboard")
	}
	s.keys("y", "ctrl+c")
	if !s.quit {
		t.Error("ctrl+c does not quit")
	}
}

// TestHostile shows text from a cluster without its control characters.
func TestHostile(t *testing.T) {
	snap := *example(t)
	snap.Slices = append([]*resourceapi.ResourceSlice{}, snap.Slices...)
	for i, slice := range snap.Slices {
		slice = slice.DeepCopy()
		slice.Spec.Pool.Name = "evil\x1b[2J\nname"
		slice.Spec.Driver = "evil\x07"
		snap.Slices[i] = slice
	}
	s := newSession(t, Options{Source: newMoving(&snap), Name: "\x1b]0;title\x07"}, 160, 50)
	for _, key := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		s.keys(key)
		if content := s.model.View().Content; strings.Contains(content, "\x1b[2J") || strings.Contains(content, "\x07") {
			t.Errorf("view %s lets control characters through:\n%q", key, content)
		}
		if n := len(s.lines()); n != 50 {
			t.Errorf("view %s has %d lines", key, n)
		}
	}
}

// TestReasonsAndFilter keeps a filter of the pending claims true while their
// reasons arrive.
func TestReasonsAndFilter(t *testing.T) {
	s := newSession(t, Options{Source: live.NewFixed(example(t)), Fixed: true, Settings: Settings{View: "nodes"}}, 120, 30)
	s.keys("6", "/", `"fits on`, "enter")
	s.shows("filter fits on   1/1 of 10 rows, 1 pod", "finetune-0")
}

// TestWaitingPods lists pods that no pending claim stands for: one whose claim does
// not exist, one with a mistyped extended resource.
func TestWaitingPods(t *testing.T) {
	template, requests := "four-gpus", corev1.ResourceList{"example.com/decodr": *resource.NewQuantity(1, resource.DecimalSI)}
	snap := example(t).With(&snapshot.Snapshot{Pods: []*corev1.Pod{
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "unmade"},
			Spec:       corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: &template}}},
			Status:     corev1.PodStatus{Phase: corev1.PodPending},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: "mistyped"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests}}}},
			Status:     corev1.PodStatus{Phase: corev1.PodPending},
		},
	}})
	var out strings.Builder
	if err := once(t, Options{Name: "a file"}, snap, 0, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Waiting 12", "No node offers the extended resource example.com/decodr", "media/mistyped", "research/unmade",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

// TestOnceIsComplete prints the causes as a status does, and an answer for each pod.
func TestOnceIsComplete(t *testing.T) {
	var out, status strings.Builder
	if err := once(t, Options{}, example(t), 0, &out); err != nil {
		t.Fatal(err)
	}
	found, err := cause.Find(t.Context(), cluster.New(example(t)), cause.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := render.Status(&status, found.Status, render.Options{}); err != nil {
		t.Fatal(err)
	}
	_, causes, _ := strings.Cut(status.String(), "Causes\n")
	if !strings.Contains(out.String(), "Causes 13\n"+strings.TrimRight(causes, "\n")+"\n") {
		t.Errorf("the causes are not those of the status:\n%s\nwant\n%s", out.String(), causes)
	}
	_, waiting, _ := strings.Cut(out.String(), "Waiting 10\n")
	waiting, _, _ = strings.Cut(waiting, "Teams\n")
	if strings.Count(waiting, "\n") != 10 || strings.Count(waiting, "cause") != 9 || strings.Count(waiting, "fits on gpu-03") != 1 {
		t.Errorf("got\n%s", waiting)
	}
}

// TestEscapeFromReason goes straight back to the line of a reason.
func TestEscapeFromReason(t *testing.T) {
	s := browse(t, 120, 50)
	s.keys("end", "up", "up", "up", "up", "up")
	line := s.selected()
	s.keys("enter")
	s.shows("overview > ")
	s.keys("esc")
	if got := s.selected(); got != line {
		t.Errorf("back at %q, want %q", got, line)
	}
}

// TestClaimsWithoutPod counts claims that no pod uses apart: nothing waits for them.
func TestClaimsWithoutPod(t *testing.T) {
	spare := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: "spare"}}
	spare.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gone"}}}
	s := newSession(t, Options{Source: live.NewFixed(example(t).With(&snapshot.Snapshot{Claims: []*resourceapi.ResourceClaim{spare}})), Fixed: true, Name: "a file"}, 120, 50)
	s.shows("10 pods wait", "1 claim without a pod", "Waiting 10")
	s.keys("6")
	s.shows("11 rows, 10 pods", "media/spare", "error, no pod uses it")
}

// TestCancelledFilter goes back to the row that was selected before.
func TestCancelledFilter(t *testing.T) {
	s := browse(t, 120, 30)
	s.keys("4", "end")
	row := s.selected()
	s.keys("/", `"decoder`, "esc")
	if got := s.selected(); got != row {
		t.Errorf("back at %q, want %q", got, row)
	}
}

// TestSmall reaches every line of the overview, and says which view it is, on a
// small screen.
func TestSmall(t *testing.T) {
	s := browse(t, 40, 10)
	lines := map[string]bool{}
	s.keys("home")
	for range 30 {
		lines[s.selected()] = true
		s.keys("down")
	}
	for _, want := range []string{"decoder", "151m  Node", "research/pretrain-0", "serving"} {
		found := false
		for line := range lines {
			found = found || strings.Contains(line, want)
		}
		if !found {
			t.Errorf("no line with %q can be selected: %v", want, lines)
		}
	}
	for number, name := range views.Names() {
		s.keys(views.ID(number).Key())
		s.shows(fmt.Sprintf("[%s %s", views.ID(number).Key(), name))
	}
}

// TestLongNames leaves room for other columns, and keeps two columns that tell
// which row it is.
func TestLongNames(t *testing.T) {
	snap := *example(t)
	snap.Slices = append([]*resourceapi.ResourceSlice{}, snap.Slices...)
	for i, slice := range snap.Slices {
		slice = slice.DeepCopy()
		slice.Spec.Pool.Name = strings.Repeat("sub.", 30) + slice.Spec.Pool.Name
		snap.Slices[i] = slice
	}
	s := newSession(t, Options{Source: newMoving(&snap)}, 80, 24)
	s.keys("4")
	s.shows("DEVICE", "STATE", "decoder-0", "Free")
	s.keys("right", "right")
	s.shows("DEVICE", "decoder-0")
}

// TestMouse selects and opens with clicks, also in the overview and the names of
// the views.
func TestMouse(t *testing.T) {
	s := browse(t, 100, 30)
	click := func(x, y int) {
		s.send(tea.MouseClickMsg{Button: tea.MouseLeft, X: x, Y: y})
		s.rest()
	}
	click(5, 6)
	if !strings.Contains(s.selected(), "gpu.example.com") {
		t.Fatalf("selected is %s", s.selected())
	}
	click(5, 6)
	s.shows("pools of class gpu.example.com")
	click(5, 6)
	click(5, 6)
	s.shows("devices of pool gpu.example.com/gpu-03")
	s.keys("1")
	click(14, 1)
	s.shows("[2 nodes]")
	for range 50 {
		s.send(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	}
	s.keys("1")
	for range 50 {
		s.send(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	}
	s.selected()
}

// TestClickWhileTyping leaves a typed filter: it is not meant for the clicked row.
func TestClickWhileTyping(t *testing.T) {
	s := browse(t, 120, 30)
	s.keys("3", "/", `"gpu-0`)
	s.shows("filter: gpu-0")
	x := strings.Index(s.lines()[1], "4 devices")
	s.send(tea.MouseClickMsg{Button: tea.MouseLeft, X: x, Y: 1})
	s.rest()
	s.shows("[4 devices]", "1/104 devices")
	s.lacks("filter:")
	s.keys("3")
	s.shows("filter gpu-0")
}

// TestHiddenClaims does not call unknown what there is none of, nor the other way
// round.
func TestHiddenClaims(t *testing.T) {
	snap := *example(t)
	snap.Claims = nil
	snap.Gaps = []snapshot.Gap{
		{Resource: snapshot.ResourceMetrics, Reason: "may not read metrics"},
		{Resource: snapshot.ResourceClaims, Reason: "may not list claims"},
	}
	s := newSession(t, Options{Source: newMoving(&snap)}, 100, 40)
	s.shows("may not list claims", "! shows 1 more", "≤")
	s.keys("!")
	s.shows("may not read metrics")
	var text bytes.Buffer
	if err := once(t, Options{}, &snap, 0, &text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Note: may not list claims\n", "Note: may not read metrics\n", "≤"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in:\n%s", want, text.String())
		}
	}
}

// TestNoNamespace says that there is none of that name, and stays where it is.
func TestNoNamespace(t *testing.T) {
	s := browse(t, 100, 30)
	s.keys("5", "n", `"nosuch`, "enter")
	s.shows("namespace nosuch does not exist", "1/35 claims")
}

// TestLoading claims nothing before the background work is done.
func TestLoading(t *testing.T) {
	m := New(t.Context(), Options{Source: newMoving(example(t)), Name: "test cluster", Env: func(string) string { return "LANG=C.UTF-8" }, Now: testTime, After: func(time.Duration, tea.Msg) tea.Cmd { return nil }})
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 40})
	_, cmd := m.Update(m.live.Take()())
	s := &session{t: t, model: m}
	s.shows("One moment…")
	s.lacks("no DeviceClasses", "no pod waits", "nothing", "no causes")
	s.run(cmd)
	s.shows("3 tainted", "research/pretrain-0  8 gpu", "cause 1")
}

// TestLastAnswer says how old the last answer of the server is, and that in color
// once it should have come. Until then the screen stays as it is: to draw it again takes
// most of what a dashboard at rest takes.
func TestLastAnswer(t *testing.T) {
	source := newMoving(example(t))
	now := testTime()
	s := newSession(t, Options{Source: source, Now: func() time.Time { return now }, Color: true}, 80, 24)
	s.shows("last answer <5s ago")
	head := func() string { return strings.Split(s.model.View().Content, "\n")[0] }
	before, screen := head(), s.model.View().Content
	now = now.Add(4 * time.Second)
	if later := s.model.View().Content; later != screen {
		t.Errorf("the screen changed while nothing happened:\n%s\nbefore:\n%s", later, screen)
	}
	now = now.Add(5 * time.Second)
	s.shows("last answer 9s ago")
	if late := head(); strings.Contains(late, s.model.look.Say(widget.Faint, "last answer 9s ago")) || !strings.Contains(before, s.model.look.Say(widget.Faint, "last answer <5s ago")) {
		t.Errorf("the late answer does not stand out: %q, before %q", late, before)
	}
}

// TestTaintedInUse draws devices that claims have and that are tainted, and counts
// them, and of the free ones those that a plain pod cannot get.
func TestTaintedInUse(t *testing.T) {
	snap := *example(t)
	snap.TaintRules = append(slices.Clone(snap.TaintRules), &resourceapi.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: "hot"},
		Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: &resourceapi.DeviceTaintSelector{Driver: ptr.To("gpu.example.com"), Pool: ptr.To("gpu-01")},
			Taint:          resourceapi.DeviceTaint{Key: "gpu.example.com/hot", Effect: resourceapi.DeviceTaintEffectNoExecute},
		},
	})
	s := newSession(t, Options{Source: live.NewFixed(&snap), Fixed: true}, 160, 40)
	s.shows("8 used and tainted", "25         13        6", "▚ used+tainted")
	s.keys("2")
	s.shows("▚▚▚▚ ▚▚▚▚")
}

// TestCausesNotKnownYet counts no causes before they are found.
func TestCausesNotKnownYet(t *testing.T) {
	m := New(t.Context(), Options{Source: newMoving(example(t)), Name: "test cluster", Env: func(string) string { return "" }, Now: testTime, Settings: Settings{View: "causes"}, After: func(time.Duration, tea.Msg) tea.Cmd { return nil }})
	s := &session{t: t, model: m}
	s.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	s.send(live.ChangedMsg{})
	s.shows("1/13 causes")
	s.keys("n", `"media`, "enter")
	s.lacks("13 causes")
}

// TestFindings reaches the findings behind the causes by name.
func TestFindings(t *testing.T) {
	s := browse(t, 100, 40)
	s.keys(":", `"findings`, "enter")
	s.shows("causes > findings", "1/7 findings", "DRA1201")
	s.keys("enter")
	s.shows("finding DRA1201", "What it means")
}

// TestEventsOpen tells equal events in one line, and opens what each is about.
func TestEventsOpen(t *testing.T) {
	before := example(t)
	source := newMoving(before)
	s := newSession(t, Options{Source: source}, 160, 50)
	after := *before
	after.Claims = slices.Clone(before.Claims)
	for i, claim := range after.Claims {
		if claim.Namespace == "serving" && claim.Status.Allocation != nil || claim.Namespace == "vision" && claim.Name == "segment-0-part-vgcw6" {
			claim = claim.DeepCopy()
			claim.Status.Allocation = nil
			after.Claims[i] = claim
		}
	}
	after.Slices = slices.DeleteFunc(slices.Clone(before.Slices), func(slice *resourceapi.ResourceSlice) bool { return slice.Spec.Pool.Name == "mig-02" })
	source.set(&after)
	s.changed()
	s.shows("claims of serving were deallocated, ", "2 slices were removed, 14 devices")
	open := func(text string) {
		t.Helper()
		s.keys("1", "home")
		for range 60 {
			if row := s.selected(); strings.HasPrefix(row, "09:30") && strings.Contains(row, text) {
				break
			}
			s.keys("down")
		}
		s.keys("enter")
	}
	open("claims of serving were deallocated")
	s.shows("claims of ", "serving", "llm-0-nic")
	s.lacks("research")
	open("were removed")
	// Claims still have its devices.
	s.shows("pools of 2 slices", "mig-02", "NoSlices")
}

// TestLongListsLetGo keeps neither the rows of a long list nor loses the selected one while
// another view is shown.
func TestLongListsLetGo(t *testing.T) {
	s := newSession(t, Options{Source: live.NewFixed(fleet.Fleet(300, 8, 100)), Fixed: true}, 120, 40)
	s.keys("4", "end", "up")
	s.shows("2,399/2,400 devices")
	row := s.selected()
	list, ok := s.model.views[views.Devices].(*listScreen)
	if !ok {
		t.Fatal("the view of devices is no list")
	}
	s.keys("5")
	content, _ := list.table.Shown()
	kept := content != nil
	if _, err := live.Once(s.model.live.Picture(), views.Devices.String(), func() (any, error) { return nil, errors.New("is not kept") }); kept || err == nil {
		t.Error("the devices are kept")
	}
	_, cmd := s.model.Update(tea.KeyPressMsg{Code: '4', Text: "4"})
	if !strings.Contains(s.screen(), strings.TrimSpace(row)) {
		t.Errorf("before the rows are there again, the screen is\n%s", s.screen())
	}
	s.run(cmd)
	s.shows("2,399/2,400 devices")
	if got := s.selected(); got != row {
		t.Errorf("%q is selected, want %q", got, row)
	}
}

// TestBlockedPods covers pods that got their devices and cannot work with them on the first
// page, and explains them.
func TestBlockedPods(t *testing.T) {
	snap := *example(t)
	snap.Slices = slices.Clone(snap.Slices)
	for i, slice := range snap.Slices {
		if slice.Spec.Pool.Name == "mig-02" {
			// The driver still runs, and has lost the devices.
			snap.Slices[i] = slice.DeepCopy()
			snap.Slices[i].Spec.Devices = nil
		}
	}
	s := newSession(t, Options{Source: live.NewFixed(&snap), Fixed: true}, 120, 50)
	s.shows("3 pods cannot work with the devices", "Waiting 13", "6 pending:13", "Device mig-02/card-0-whole of claim segment-1")
	s.keys("home")
	for !strings.Contains(s.selected(), "vision/segment-1") {
		s.keys("down")
	}
	s.keys("w")
	s.shows("why Pod vision/segment-1", "no longer in any ResourceSlice")
}
