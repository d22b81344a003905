// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/internal/fleet"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/live"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// TestPendingByPod lists pods, the longest waiting first, and explains them with Enter.
func TestPendingByPod(t *testing.T) {
	s := browse(t, 160, 50)
	s.keys("6")
	if row := s.selected(); !strings.Contains(row, "151m") || !strings.Contains(row, "research/pretrain-0") || !strings.Contains(row, "8 gpu") || !strings.Contains(row, "cause 1") {
		t.Errorf("the first row is %q", row)
	}
	s.shows("60 ", "devices of the class", "-18", "What would make it fit", "kubectl")
	s.send(tea.WindowSizeMsg{Width: 200, Height: 60})
	s.shows("available, at most 8 on one node (gpu-03)")
	s.keys("enter")
	s.shows("why Pod research/pretrain-0")
}

// TestWaitingIsNoChange marks no row because it has waited longer.
func TestWaitingIsNoChange(t *testing.T) {
	before := example(t)
	source := newMoving(before)
	s := newSession(t, Options{Source: source}, 120, 40)
	for _, view := range []string{"6", "0"} {
		s.keys(view)
		later := *source.Snapshot()
		later.TakenAt = later.TakenAt.Add(5 * time.Minute)
		source.set(&later)
		s.changed()
		s.lacks("•")
	}
	s.shows("27m")
}

// TestPendingGroups covers one row for the pods of a Job that wait for the same, and
// narrows the list down to an outlook.
func TestPendingGroups(t *testing.T) {
	base := example(t)
	var pods []*corev1.Pod
	first := base.Pod("research", "pretrain-0")
	for i := range 12 {
		pod := first.DeepCopy()
		pod.Name, pod.UID = fmt.Sprintf("train-%d", i), ""
		pod.Status.ResourceClaimStatuses = nil
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "train", Controller: ptr.To(true)}}
		pods = append(pods, pod)
	}
	s := newSession(t, Options{Source: live.NewFixed(base.With(&snapshot.Snapshot{Pods: pods})), Fixed: true, Name: "a file"}, 120, 40)
	s.keys("6")
	s.shows("PODS", "research/job/train     12")
	s.keys("/", `"answer:never`, "enter")
	s.shows("notebook-0")
	s.lacks("embed-2")
	s.keys("n", `"media`, "enter", "esc")
	s.shows("upscale-0")
	s.lacks("research/")
}

// TestCopyCommand sends a command to the clipboard of the terminal.
func TestCopyCommand(t *testing.T) {
	s := browse(t, 120, 40)
	s.keys("6", "c")
	s.shows("copy the command to:", "you")
	s.keys("enter")
	s.shows("sent to the clipboard of the terminal: kubectl ")
	s.keys("/", `"finetune`, "enter", "c")
	s.shows("no command is known that would help")
}

// TestPaneUnderList shows more about the selected row under a list on a screen that is
// narrow and high, beside it on a wide one, and in a line where the pane is closed.
func TestPaneUnderList(t *testing.T) {
	s := browse(t, 80, 40)
	s.keys("6")
	s.shows("1 you   request 4 devices", "Request gpus: 8 devices of gpu.example.com", "research/finetune-0")
	if at := strings.Index(s.screen(), "1 you   request"); at < strings.Index(s.screen(), "research/finetune-0") {
		t.Errorf("the pane is not under the list:\n%s", s.screen())
	}
	s.keys("down")
	s.shows("Request nic: 1 device of nic.example.com")
	if got := len(s.lines()); got != 40 {
		t.Errorf("%d lines", got)
	}
	s.keys("4", "end")
	s.shows("104/104 devices")
	s.lacks("Attributes")
	s.keys("p")
	s.shows("104/104 devices", "Attributes")
	s.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	s.rest()
	s.keys("6", "home", "p")
	s.shows("request gpus\nneeds 8 devices", "1/10 rows, 10 pods")
	s.lacks("1 you   request 4 devices")
}

// TestFitsButWaits says why pods wait that fit, and what to do, in the color of the cause.
func TestFitsButWaits(t *testing.T) {
	snap := fleet.Mixed(120)
	fleet.AddWaiting(snap, 20)
	snap.TakenAt = snap.TakenAt.Add(time.Hour)
	s := newSession(t, Options{Source: live.NewFixed(snap), Fixed: true}, 120, 40)
	s.keys("6")
	s.shows("cause 1: fit", "kube-scheduler has not looked at", "What to do", "1 admin see whether kube-scheduler runs")
	for line := range strings.SplitSeq(s.model.View().Content, "\n") {
		if strings.Contains(line, "cause 1: fit") && !strings.Contains(line, strings.TrimSuffix(s.model.look.Say(widget.Bad, "cause 1: fit"), "\x1b[m")) {
			t.Errorf("the color of the cause is missing: %q", line)
		}
	}
	s.keys("c")
	s.shows("sent to the clipboard of the terminal: kubectl get pods -n kube-system")
	s.keys("w")
	s.shows("kube-scheduler has not looked at", "admin: see whether kube-scheduler runs", "The allocator picks")
	s.keys("esc", "1")
	for !strings.Contains(s.selected(), "team-00/waits") {
		s.keys("j")
	}
	s.shows("admin: see whether kube-scheduler runs")
}

// TestStepSaysWaitOnce does not say "wait" before a step that begins with it.
func TestStepSaysWaitOnce(t *testing.T) {
	s := browse(t, 120, 40)
	for !strings.Contains(s.selected(), "vision/segment-3") {
		s.keys("j")
	}
	s.shows("\nwait until claim vision/segment-1-part")
	s.lacks("wait: wait")
}
