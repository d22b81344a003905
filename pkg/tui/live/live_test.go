// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tc "github.com/kubectl-dra/kubectl-dra/internal/testcluster"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui/widget"
)

// source is a cluster that a test has trouble with.
type source struct {
	Fixed
	trouble error
	since   time.Time
}

func (s *source) Trouble() (time.Time, error) { return s.since, s.trouble }
func (s *source) Answered() time.Time         { return s.since }

// TestPace takes one picture at a time, and the next one only after a pause and only if
// something changed.
func TestPace(t *testing.T) {
	c, _, _ := follow(t)
	first := c.Take()
	if first == nil || c.Take() != nil {
		t.Fatal("two pictures are taken at a time, or none")
	}
	if _, news := c.Update(arrival(t, first), Seen{}); news != NewPicture {
		t.Errorf("the picture is no news: %v", news)
	}
	if c.Update(ChangedMsg{}, Seen{}); c.taking {
		t.Error("there is no pause")
	}
	if c.Update(restedMsg{}, Seen{}); !c.taking {
		t.Error("what changed during the pause is forgotten")
	}
}

// TestKept keeps the picture while nothing changes but the readiness of a pod and heartbeats, and
// takes another one once something else changes, or ages have to go on.
func TestKept(t *testing.T) {
	c, from, now := follow(t)
	snap := func(pod corev1.PodCondition) *snapshot.Snapshot {
		return &snapshot.Snapshot{Clock: snapshot.Clock{TakenAt: *now}, Pods: []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "server"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{pod}}}}}
	}
	look := func() News {
		t.Helper()
		c.Update(restedMsg{}, Seen{})
		_, news := c.Update(arrival(t, c.Take()), Seen{})
		return news
	}
	from.Fixed = NewFixed(snap(corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}))
	look()
	c.Worked(time.Minute, Seen{})
	kept := c.Picture()
	for range 2 {
		*now = now.Add(time.Second)
		from.Fixed = NewFixed(snap(corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}))
		if news := look(); news != NoNews || c.Picture() != kept {
			t.Error("another picture is taken because a pod is ready")
		}
	}
	from.Fixed = NewFixed(snap(corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}))
	if news := look(); news != NewPicture || c.Picture() == kept || c.Picture().Change() == kept.Change() {
		t.Error("a change of a pod is not seen")
	}
	kept = c.Picture()
	*now = now.Add(agedMost)
	from.Fixed = NewFixed(snap(corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}))
	if news := look(); news != NewPicture || c.Picture() == kept || c.Picture().Change() != kept.Change() {
		t.Error("the clock stands still while pods get ready")
	}
}

// TestFirstScreen looks for causes once the first screen is worked out.
func TestFirstScreen(t *testing.T) {
	c, _, _ := follow(t)
	seen := Seen{Causes: true}
	c.Update(arrival(t, c.Take()), seen)
	if c.Work(seen) != nil {
		t.Error("causes are looked for before there is a screen")
	}
	if c.Worked(time.Second, seen) == nil {
		t.Error("causes are not looked for")
	}
	if c.Worked(time.Second, seen) != nil {
		t.Error("causes are looked for twice at a time")
	}
}

// TestAges takes a picture where nothing happens: the more rarely, the longer it takes, but not
// so rarely that the clock seems to stand still.
func TestAges(t *testing.T) {
	c, _, now := follow(t)
	c.Update(arrival(t, c.Take()), Seen{})
	c.Update(restedMsg{}, Seen{})
	c.Worked(time.Minute, Seen{})
	taken := c.Picture().Cluster.Snapshot.Now()
	if *now = taken.Add(agedMost - time.Second); c.aged() != nil {
		t.Error("an expensive picture is taken often")
	}
	if *now = taken.Add(agedMost); c.aged() == nil {
		t.Error("the clock stands still")
	}
}

// TestExplainInTurn gives a pod that fits the node that is left for it by the pods before it, as
// the list of pods that wait does.
func TestExplainInTurn(t *testing.T) {
	objects := []any{tc.Nodes("n1", "n2"), tc.Pool("n1", tc.Devices(1)...), tc.Pool("n2", tc.Devices(1)...)}
	for i, name := range []string{"first", "second"} {
		objects = append(objects, tc.Claim(name+"-claim", tc.GPUs("gpu", 1)), tc.Pod(name, tc.Using(name+"-claim"), func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(tc.Taken().Add(time.Duration(i-5) * time.Minute))
		}))
	}
	c := cluster.New(tc.Cluster(objects...))
	for name, node := range map[string]string{"first": "n1", "second": "n2"} {
		answer, err := answerIn(t.Context(), c, explain.Options{Object: api.Ref(api.KindPod, tc.Namespace, name)})
		if err != nil || answer.Placement == nil || answer.Placement.Node != node {
			t.Errorf("%s: %+v, %v, want node %s", name, answer, err, node)
		}
	}
}

// TestStatus says what keeps the picture from being newer: a server without an answer before
// anything else.
func TestStatus(t *testing.T) {
	c, from, now := follow(t)
	c.Update(arrival(t, c.Take()), Seen{})
	l := widget.NewLook(func(string) string { return "" })
	if _, text := c.Status("space"); text != "" {
		t.Errorf("status %q", text)
	}
	c.Freeze(Seen{})
	*now = now.Add(20 * time.Second)
	if _, text := c.Status("space"); text != "frozen, 20s old; space continues" {
		t.Errorf("status %q", text)
	}
	if c.Update(ChangedMsg{}, Seen{}); c.taking {
		t.Error("a picture is taken while the dashboard is frozen")
	}
	from.trouble = errors.New("connection refused")
	if tone, text := c.Status("space"); tone != widget.Bad || text != "! for 20s: connection refused" {
		t.Errorf("status %q", text)
	}
	if text := ansi.Strip(c.Taken(&l)); !strings.HasPrefix(text, "last answer 20s ago") {
		t.Errorf("taken %q", text)
	}
	if brief := strings.Join(c.Brief(""), ", "); brief != "no answer" {
		t.Errorf("in brief %q", brief)
	}
}

// follow follows an empty cluster with a clock that stands still.
func follow(t *testing.T) (c *Cluster, from *source, now *time.Time) {
	t.Helper()
	at := time.Date(2026, 9, 15, 9, 30, 0, 0, time.UTC)
	from = &source{Fixed: NewFixed(&snapshot.Snapshot{Clock: snapshot.Clock{TakenAt: at}}), since: at}
	current := at
	now = &current
	return New(t.Context(), Options{
		Source: from, Now: func() time.Time { return current },
		After: func(time.Duration, tea.Msg) tea.Cmd { return nil },
	}), from, now
}

// arrival returns the message that a command brings.
func arrival(t *testing.T, cmd tea.Cmd) Message {
	t.Helper()
	msg, ok := cmd().(Message)
	if !ok {
		t.Fatal("it brings no message")
	}
	return msg
}
