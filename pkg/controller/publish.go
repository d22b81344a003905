// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	eventsapi "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	eventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
)

// ControllerName is the reporting controller of events, and the name of the lease.
const ControllerName = "dra-controller"

const (
	// eventsPerSecond limits the requests about events in a second, eventsBurst those at once.
	eventsPerSecond, eventsBurst = 5, 5
	// heldFor is the number of pictures in which an answer has to hold before it is published.
	heldFor = 2
	// changeFirst and changeLast bound the time after which an event with the same reason is
	// replaced because its note changed. The time doubles with each event.
	changeFirst, changeLast = time.Minute, 30 * time.Minute
	// repeatAfter is the time after which an event is repeated: API servers remove events
	// after an hour.
	repeatAfter = 25 * time.Minute
	// failedFirst and failedLast bound the time without events after a request that failed.
	failedFirst, failedLast = 5 * time.Second, 5 * time.Minute
)

// Results of requests about events, for metrics.
const (
	eventPublished = "published"
	eventRemoved   = "removed"
	eventDelayed   = "delayed"
	eventFailed    = "failed"
)

// Publisher publishes answers as events on pods: on each pod at most one, which goes when the
// answer does. It is not safe for concurrent use.
type Publisher struct {
	client   eventsv1.EventsV1Interface
	metrics  *Metrics
	instance string
	limiter  *rate.Limiter
	// pods are the pods that do not run or have an event; nil until the events of an earlier
	// leader were read.
	pods map[types.UID]*told
	// failing is the time without events after the next failure, until the end of the present one.
	failing time.Duration
	until   time.Time
	// now is the time of the last request, end the time until which requests may be made.
	now, end time.Time
}

// told has the published answer about a pod, and the answers in the last pictures.
type told struct {
	// reason is the reason in the last pictures, held the number of these.
	reason string
	held   int
	// event is the event on the pod; nil if there is none.
	event *eventsapi.Event
	// changes is the least time between two events with the same reason.
	changes time.Duration
	// seen is true if there is an answer in the present picture.
	seen bool
}

// NewPublisher makes a publisher of the instance of the controller with the given name.
func NewPublisher(client eventsv1.EventsV1Interface, metrics *Metrics, instance string) *Publisher {
	return &Publisher{client: client, metrics: metrics, instance: instance, limiter: rate.NewLimiter(eventsPerSecond, eventsBurst), failing: failedFirst}
}

// Publish publishes the answers in a picture of the given time, at the pace of the limit of
// requests. What takes longer is left to the next picture. Its errors are those of the API server;
// after one, it does nothing for some time.
func (p *Publisher) Publish(ctx context.Context, answers []Answer, now time.Time, within time.Duration) error {
	if now.Before(p.until) {
		return nil
	}
	p.now, p.end = now, now.Add(within)
	err := p.publish(ctx, answers, now)
	if err != nil && ctx.Err() == nil {
		p.count(eventFailed)
		p.until = now.Add(p.failing)
		p.failing = min(2*p.failing, failedLast)
		return err
	}
	p.failing = failedFirst
	return nil
}

func (p *Publisher) publish(ctx context.Context, answers []Answer, now time.Time) error {
	if p.pods == nil {
		if err := p.recall(ctx); err != nil {
			return err
		}
	}
	for _, t := range p.pods {
		t.seen = false
	}
	for i := range answers {
		uid := answers[i].Pod.UID
		if p.pods[uid] == nil {
			p.pods[uid] = &told{changes: changeFirst}
		}
		p.pods[uid].hear(answers[i].Reason)
	}
	// What is not true any more goes first.
	for uid, t := range p.pods {
		if t.seen {
			continue
		}
		if t.hear(""); t.event != nil && t.held >= heldFor {
			if _, err := p.remove(ctx, t); err != nil {
				return err
			}
		}
		if t.event == nil {
			delete(p.pods, uid)
		}
	}
	for i := range answers {
		t := p.pods[answers[i].Pod.UID]
		if err := p.say(ctx, t, &answers[i], now); err != nil {
			return err
		}
	}
	return nil
}

// hear notes the reason in a picture, empty if there is no answer.
func (t *told) hear(reason string) {
	if t.reason != reason {
		t.reason, t.held = reason, 0
	}
	t.held++
	t.seen = reason != ""
}

// say publishes an answer that holds, unless that was done.
func (p *Publisher) say(ctx context.Context, t *told, a *Answer, now time.Time) error {
	if t.held < heldFor {
		return nil
	}
	if t.event != nil && t.event.Reason == a.Reason {
		switch since := now.Sub(lastTime(t.event)); {
		case t.event.Note == a.Note && since < repeatAfter:
			return nil
		case t.event.Note == a.Note:
			return p.repeat(ctx, t, now)
		case since < t.changes:
			return nil
		}
		t.changes = min(2*t.changes, changeLast)
	}
	if t.event != nil {
		if done, err := p.remove(ctx, t); !done || err != nil {
			return err
		}
	}
	if !p.allowed(ctx) {
		return nil
	}
	event := p.event(a, now)
	created, err := p.client.Events(a.Pod.Namespace).Create(ctx, event, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		created = event
	case apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// The namespace goes.
		return nil
	case err != nil:
		return fmt.Errorf("create an event about pod %s/%s: %w", a.Pod.Namespace, a.Pod.Name, err)
	}
	t.event = created
	p.count(eventPublished)
	return nil
}

// event returns the event for an answer. Equal answers about a pod have one name.
func (p *Publisher) event(a *Answer, now time.Time) *eventsapi.Event {
	sum := fnv.New64a()
	_, _ = fmt.Fprintf(sum, "%s\x00%s\x00%s", a.Pod.UID, a.Reason, a.Note)
	suffix := fmt.Sprintf(".%016x", sum.Sum64())
	const maxName = 253
	return &eventsapi.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: a.Pod.Namespace, Name: a.Pod.Name[:min(len(a.Pod.Name), maxName-len(suffix))] + suffix},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: ControllerName,
		ReportingInstance:   p.instance,
		Action:              "Explain",
		Reason:              a.Reason,
		Regarding:           corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: a.Pod.Namespace, Name: a.Pod.Name, UID: a.Pod.UID},
		Note:                a.Note,
		Type:                corev1.EventTypeWarning,
	}
}

// repeat makes an event the next one of its series.
func (p *Publisher) repeat(ctx context.Context, t *told, now time.Time) error {
	if !p.allowed(ctx) {
		return nil
	}
	count := int32(2)
	if t.event.Series != nil {
		count = t.event.Series.Count + 1
	}
	patch := fmt.Appendf(nil, `{"series":{"count":%d,"lastObservedTime":%q}}`, count, now.UTC().Format(metav1.RFC3339Micro))
	patched, err := p.client.Events(t.event.Namespace).Patch(ctx, t.event.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	switch {
	case apierrors.IsNotFound(err):
		t.event = nil
		return nil
	case err != nil:
		return fmt.Errorf("repeat event %s/%s: %w", t.event.Namespace, t.event.Name, err)
	}
	t.event = patched
	p.count(eventPublished)
	return nil
}

// remove removes the event on a pod, and reports whether it is gone.
func (p *Publisher) remove(ctx context.Context, t *told) (bool, error) {
	if !p.allowed(ctx) {
		return false, nil
	}
	err := p.client.Events(t.event.Namespace).Delete(ctx, t.event.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("remove event %s/%s: %w", t.event.Namespace, t.event.Name, err)
	}
	t.event = nil
	p.count(eventRemoved)
	return true, nil
}

// recall reads the events that an earlier leader has published.
func (p *Publisher) recall(ctx context.Context) error {
	list, err := p.client.Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "reportingController=" + ControllerName})
	if err != nil {
		return fmt.Errorf("read the events of an earlier leader: %w", err)
	}
	pods := map[types.UID]*told{}
	for i := range list.Items {
		event := &list.Items[i]
		if event.Regarding.Kind == "Pod" && event.ReportingController == ControllerName {
			pods[event.Regarding.UID] = &told{event: event, changes: changeFirst}
		}
	}
	p.pods = pods
	return nil
}

// allowed waits until the limit permits one more request, and reports whether it does in time.
func (p *Publisher) allowed(ctx context.Context) bool {
	next := p.limiter.ReserveN(p.now, 1)
	delay := next.DelayFrom(p.now)
	if p.now.Add(delay).After(p.end) || !pause(ctx, delay) {
		next.CancelAt(p.now)
		p.count(eventDelayed)
		return false
	}
	p.now = p.now.Add(delay)
	return true
}

func (p *Publisher) count(result string) { p.metrics.events.WithLabelValues(result).Inc() }

// lastTime returns when an event was last observed.
func lastTime(event *eventsapi.Event) time.Time {
	if event.Series != nil {
		return event.Series.LastObservedTime.Time
	}
	return event.EventTime.Time
}
