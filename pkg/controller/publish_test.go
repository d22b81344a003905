// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	eventsapi "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// published is a publisher at a store of events. TestController in test publishes to a real API
// server; here the clock is of the test.
type published struct {
	*Publisher
	t     *testing.T
	store *fake.Clientset
	now   time.Time
}

func newPublished(t *testing.T) *published {
	t.Helper()
	store := fake.NewClientset()
	return &published{Publisher: NewPublisher(store.EventsV1(), NewMetrics(0), "test"), t: t, store: store, now: time.Now()}
}

// snapshot publishes answers five seconds later, and returns the notes of all events.
func (p *published) snapshot(answers ...Answer) []string {
	p.t.Helper()
	p.now = p.now.Add(5 * time.Second)
	if err := p.Publish(p.t.Context(), answers, p.now, 0); err != nil {
		p.t.Log(err)
	}
	var notes []string
	for _, event := range p.events() {
		notes = append(notes, event.Regarding.Name+" "+event.Reason+": "+event.Note)
	}
	return notes
}

func (p *published) events() []eventsapi.Event {
	p.t.Helper()
	list, err := p.store.EventsV1().Events("").List(p.t.Context(), metav1.ListOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	return list.Items
}

// expect compares the notes of all events.
func (p *published) expect(what string, got []string, want ...string) {
	p.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func about(name, reason, note string) Answer {
	return Answer{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-" + name)}}, Reason: reason, Note: note}
}

// TestPublish publishes an answer that holds in two snapshots, once, and removes it when it does not
// hold any more.
func TestPublish(t *testing.T) {
	p := newPublished(t)
	few := about("train", "CountUnsatisfiable", "2 of 8")
	p.expect("in one snapshot", p.snapshot(few))
	p.expect("with another reason", p.snapshot(about("train", "DeviceAllocated", "all in use")))
	p.expect("back again", p.snapshot(few))
	p.expect("in two snapshots", p.snapshot(few), "train CountUnsatisfiable: 2 of 8")
	for range 3 {
		p.expect("later", p.snapshot(few), "train CountUnsatisfiable: 2 of 8")
	}
	if got := testutil.ToFloat64(p.metrics.events.WithLabelValues(eventPublished)); got != 1 {
		t.Errorf("%v events were published, want 1", got)
	}
	p.expect("missing in one snapshot", p.snapshot(), "train CountUnsatisfiable: 2 of 8")
	p.expect("back after one snapshot", p.snapshot(few), "train CountUnsatisfiable: 2 of 8")
	p.expect("missing", p.snapshot(), "train CountUnsatisfiable: 2 of 8")
	p.expect("gone", p.snapshot())
	if len(p.pods) != 0 {
		t.Errorf("%d pods are remembered", len(p.pods))
	}
}

// TestPublishChanges replaces an event whose reason changes at once, and one whose note changes ever
// more rarely.
func TestPublishChanges(t *testing.T) {
	p := newPublished(t)
	p.snapshot(about("train", "DeviceAllocated", "0 free"))
	p.snapshot(about("train", "DeviceAllocated", "0 free"))
	replaced := 0
	last := ""
	for i := range 60 * 12 {
		got := p.snapshot(about("train", "DeviceAllocated", fmt.Sprint(i, " free")))
		if len(got) > 2 {
			t.Fatalf("%d events: %q", len(got), got)
		}
		// The one before goes with the next snapshot.
		if len(got) == 1 && got[0] != last {
			replaced++
			last = got[0]
		}
	}
	if replaced < 4 || replaced > 8 {
		t.Errorf("a note that changed each five seconds for an hour was replaced %d times", replaced)
	}
	p.now = p.now.Add(changeFirst)
	p.snapshot(about("train", "ClassNotFound", "no class"))
	p.snapshot(about("train", "ClassNotFound", "no class"))
	p.expect("another reason", p.snapshot(about("train", "ClassNotFound", "no class")), "train ClassNotFound: no class")
}

// TestPublishSeries repeats an event before API servers remove it.
func TestPublishSeries(t *testing.T) {
	p := newPublished(t)
	few := about("train", "CountUnsatisfiable", "2 of 8")
	p.snapshot(few)
	p.snapshot(few)
	p.now = p.now.Add(repeatAfter)
	p.snapshot(few)
	p.now = p.now.Add(repeatAfter)
	p.snapshot(few)
	p.snapshot(few)
	events := p.events()
	if len(events) != 1 || events[0].Series == nil || events[0].Series.Count != 3 || !events[0].Series.LastObservedTime.After(events[0].EventTime.Time) {
		t.Errorf("events %+v", events)
	}
}

// TestPublishLimit publishes at most five events at once and five a second, and all in the end.
func TestPublishLimit(t *testing.T) {
	p := newPublished(t)
	var answers []Answer
	for i := range 80 {
		answers = append(answers, about(fmt.Sprint("pod-", i), "ClassNotFound", "no class"))
	}
	p.snapshot(answers...)
	before := 0
	for range 2 {
		got := len(p.snapshot(answers...))
		if got-before > eventsBurst {
			t.Errorf("%d events at once", got-before)
		}
		before = got
	}
	if got := testutil.ToFloat64(p.metrics.events.WithLabelValues(eventDelayed)); got == 0 {
		t.Error("no event counts as delayed")
	}
	for range 20 {
		p.snapshot(answers...)
	}
	if got := len(p.events()); got != len(answers) {
		t.Errorf("%d events in the end, want %d", got, len(answers))
	}
}

// TestPublishFailures gives a server that fails time, and publishes when it works.
func TestPublishFailures(t *testing.T) {
	p := newPublished(t)
	failures := 0
	works := false
	p.store.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		if works {
			return false, nil, nil
		}
		failures++
		return true, nil, errors.New("the server is on fire")
	})
	few := about("train", "CountUnsatisfiable", "2 of 8")
	for range 12 * 10 {
		p.expect("while it fails", p.snapshot(few))
	}
	if failures < 3 || failures > 9 {
		t.Errorf("%d attempts in ten minutes", failures)
	}
	works = true
	p.now = p.now.Add(failedLast)
	p.expect("when it works", p.snapshot(few), "train CountUnsatisfiable: 2 of 8")
}

// TestPublishRefused goes on with other pods where the API server refuses an event.
func TestPublishRefused(t *testing.T) {
	p := newPublished(t)
	attempts := 0
	p.store.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetNamespace() != "quota" {
			return false, nil, nil
		}
		attempts++
		return true, nil, apierrors.NewForbidden(eventsapi.Resource("events"), "x", errors.New("exceeded quota"))
	})
	refused, other := about("a", "ClassNotFound", "no class"), about("b", "ClassNotFound", "no class")
	refused.Pod.Namespace = "quota"
	for range 24 {
		p.snapshot(refused, other)
	}
	p.expect("where one is refused", p.snapshot(refused, other), "b ClassNotFound: no class")
	if attempts != 1 {
		t.Errorf("%d attempts in two minutes", attempts)
	}
	p.snapshot()
	p.expect("afterwards", p.snapshot())
}

// TestEventName makes names that the API server accepts of all names of pods.
func TestEventName(t *testing.T) {
	p := newPublished(t)
	for _, name := range []string{"train", strings.Repeat("a", 253), strings.Repeat("a", 235) + "-." + strings.Repeat("b", 16), strings.Repeat("a-", 126) + "b"} {
		a := about(name, "ClassNotFound", "no class")
		if problems := validation.IsDNS1123Subdomain(p.event(&a, p.now).Name); len(problems) > 0 {
			t.Errorf("pod %s: %v", name, problems)
		}
	}
}

// TestPublishAfterOther goes on where an earlier leader ended: it repeats no event, and removes those
// that are not true.
func TestPublishAfterOther(t *testing.T) {
	first := newPublished(t)
	few, gone := about("train", "CountUnsatisfiable", "2 of 8"), about("gone", "ClassNotFound", "no class")
	first.snapshot(few, gone)
	first.snapshot(few, gone)
	other := &eventsapi.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "other"}, ReportingController: "kubelet", Reason: "Failed", Regarding: corev1.ObjectReference{Kind: "Pod", Name: "other", UID: "uid-other"}}
	if _, err := first.store.EventsV1().Events("ml").Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	second := &published{Publisher: NewPublisher(first.store.EventsV1(), NewMetrics(0), "second"), t: t, store: first.store, now: first.now}
	second.snapshot(few)
	second.expect("afterwards", second.snapshot(few), "other Failed: ", "train CountUnsatisfiable: 2 of 8")
	if got := testutil.ToFloat64(second.metrics.events.WithLabelValues(eventPublished)); got != 0 {
		t.Errorf("%v events were published again", got)
	}
}

// TestAnswers makes events of the answers in the example cluster.
func TestAnswers(t *testing.T) {
	c, found := example(t)
	var text strings.Builder
	for _, a := range answersOf(c, found, c.Snapshot.Now()) {
		fmt.Fprintf(&text, "%s/%s\n  %s: %s\n", a.Pod.Namespace, a.Pod.Name, a.Reason, a.Note)
	}
	same(t, "testdata/events.txt", []byte(text.String()))
	young := c.Snapshot.Now()
	for _, pod := range c.Waiting() {
		if pod.CreationTimestamp.Time.Before(young) {
			young = pod.CreationTimestamp.Time
		}
	}
	for _, a := range answersOf(c, found, young.Add(leastAge-time.Second)) {
		if a.Pod.Spec.NodeName == "" {
			t.Errorf("pod %s is too young for an event", a.Pod.Name)
		}
	}
}

// TestNote keeps notes as short as the API server wants them, and text without control characters.
func TestNote(t *testing.T) {
	for _, fact := range []string{strings.Repeat("word ", 400), strings.Repeat("wörd ", 400), strings.Repeat("ö", 2000), "a\x1b[31mb\u202ec"} {
		got := note(fact, by(api.ActorUser, "remove it"))
		if len(got) > maxNote || !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\u202e") {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
}
