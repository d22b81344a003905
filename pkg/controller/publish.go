// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	eventsapi "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	eventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// ControllerName is the reporting controller of events, and the name of the lease.
const ControllerName = snapshot.ControllerName

const (
	// eventsPerSecond limits the requests about events in a second, eventsBurst those at once.
	eventsPerSecond, eventsBurst = 5, 5
	// heldFor is the number of snapshots in which an answer has to hold before it is published.
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
	pods map[types.UID]*record
	// first is the index of the answer to begin with, since the snapshot before left it out.
	first int
	// failing is the time without events after the next failure, until the end of the present one.
	failing time.Duration
	until   time.Time
	// now is the time of the last request, end the time until which requests may be made. late is
	// true after it.
	now, end time.Time
	late     bool
}

// record has the published answer about a pod, and the answers in the last snapshots.
type record struct {
	// reason is the reason in the last snapshots, held the number of these.
	reason string
	held   int
	// event is the event on the pod; nil if there is none.
	event *eventsapi.Event
	// changes is the least time between two events with the same reason.
	changes time.Duration
	// refused is the time until which no event is published, since the API server refused one.
	refused time.Time
	// seen is true if there is an answer in the present snapshot.
	seen bool
}

// NewPublisher makes a publisher of the instance of the controller with the given name.
func NewPublisher(client eventsv1.EventsV1Interface, metrics *Metrics, instance string) *Publisher {
	return &Publisher{client: client, metrics: metrics, instance: instance, limiter: rate.NewLimiter(eventsPerSecond, eventsBurst), failing: failedFirst}
}

// Publish publishes the answers in a snapshot of the given time, at the pace of the limit of
// requests. What takes longer is left to the next snapshot. It returns errors of the API server:
// after a failure, it does nothing for some time, and an event that is refused concerns one pod
// alone.
func (p *Publisher) Publish(ctx context.Context, answers []Answer, now time.Time, within time.Duration) error {
	if now.Before(p.until) {
		return nil
	}
	p.now, p.end, p.late = now, now.Add(within), false
	err := p.publish(ctx, answers, now)
	if err != nil && !isRefusal(err) && ctx.Err() == nil {
		p.count(eventFailed)
		p.until = now.Add(p.failing)
		p.failing = min(2*p.failing, failedLast)
		return err
	}
	p.failing = failedFirst
	return err
}

func (p *Publisher) publish(ctx context.Context, answers []Answer, now time.Time) error {
	if p.pods == nil {
		if err := p.recall(ctx); err != nil {
			return err
		}
	}
	for _, r := range p.pods {
		r.seen = false
	}
	for i := range answers {
		uid := answers[i].Pod.UID
		if p.pods[uid] == nil {
			p.pods[uid] = &record{changes: changeFirst}
		}
		p.pods[uid].hear(answers[i].Reason)
	}
	var refusal error
	do := func(r *record, request func() error) error {
		if p.late || now.Before(r.refused) {
			return nil
		}
		err := request()
		if err == nil || !isRefusal(err) {
			return err
		}
		p.count(eventFailed)
		r.refused, refusal = now.Add(failedLast), cmp.Or(refusal, err)
		return nil
	}
	// What is not true any more goes first.
	for uid, r := range p.pods {
		if r.seen {
			continue
		}
		if r.hear(""); r.event != nil && r.held >= heldFor {
			if err := do(r, func() error { return p.remove(ctx, r) }); err != nil {
				return err
			}
		}
		if r.event == nil {
			delete(p.pods, uid)
		}
	}
	for i := range answers {
		at := (p.first + i) % len(answers)
		r := p.pods[answers[at].Pod.UID]
		if err := do(r, func() error { return p.say(ctx, r, &answers[at], now) }); err != nil {
			return err
		}
		if p.late {
			p.first = at
			break
		}
	}
	return refusal
}

// hear notes the reason in a snapshot, empty if there is no answer.
func (r *record) hear(reason string) {
	if r.reason != reason {
		r.reason, r.held = reason, 0
	}
	r.held++
	r.seen = reason != ""
}

// say publishes an answer that holds, unless that was done. The event before it is removed after
// that, with the next snapshot.
func (p *Publisher) say(ctx context.Context, r *record, a *Answer, now time.Time) error {
	if r.held < heldFor {
		return nil
	}
	if r.event != nil {
		same, since := r.event.Reason == a.Reason, now.Sub(lastTime(r.event))
		switch {
		case same && r.event.Note == a.Note && since < repeatAfter:
			return nil
		case same && r.event.Note == a.Note:
			return p.repeat(ctx, r, now)
		case since < changeFirst || same && since < r.changes:
			return nil
		case same:
			r.changes = min(2*r.changes, changeLast)
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
	p.abandon(r.event)
	r.event = created
	p.count(eventPublished)
	return nil
}

// abandon leaves an event to be removed, if there is one.
func (p *Publisher) abandon(event *eventsapi.Event) {
	if event != nil {
		p.pods[types.UID(event.Namespace+"/"+event.Name)] = &record{event: event, held: heldFor}
	}
}

// event returns the event for an answer. Equal answers about a pod have one name.
func (p *Publisher) event(a *Answer, now time.Time) *eventsapi.Event {
	sum := fnv.New64a()
	_, _ = fmt.Fprintf(sum, "%s\x00%s\x00%s", a.Pod.UID, a.Reason, a.Note)
	suffix := fmt.Sprintf(".%016x", sum.Sum64())
	const maxName = 253
	name := strings.TrimRight(a.Pod.Name[:min(len(a.Pod.Name), maxName-len(suffix))], "-.") + suffix
	return &eventsapi.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: a.Pod.Namespace, Name: name},
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
func (p *Publisher) repeat(ctx context.Context, r *record, now time.Time) error {
	if !p.allowed(ctx) {
		return nil
	}
	count := int32(2)
	if r.event.Series != nil {
		count = r.event.Series.Count + 1
	}
	patch := fmt.Appendf(nil, `{"series":{"count":%d,"lastObservedTime":%q}}`, count, now.UTC().Format(metav1.RFC3339Micro))
	patched, err := p.client.Events(r.event.Namespace).Patch(ctx, r.event.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	switch {
	case apierrors.IsNotFound(err):
		r.event = nil
		return nil
	case err != nil:
		return fmt.Errorf("repeat event %s/%s: %w", r.event.Namespace, r.event.Name, err)
	}
	r.event = patched
	p.count(eventPublished)
	return nil
}

// remove removes the event on a pod.
func (p *Publisher) remove(ctx context.Context, r *record) error {
	if !p.allowed(ctx) {
		return nil
	}
	err := p.client.Events(r.event.Namespace).Delete(ctx, r.event.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove event %s/%s: %w", r.event.Namespace, r.event.Name, err)
	}
	r.event = nil
	p.count(eventRemoved)
	return nil
}

// recall reads the events that an earlier leader has published. Of several on a pod one stays.
func (p *Publisher) recall(ctx context.Context) error {
	list, err := p.client.Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "reportingController=" + ControllerName})
	if err != nil {
		return fmt.Errorf("read the events of an earlier leader: %w", err)
	}
	p.pods = map[types.UID]*record{}
	for i := range list.Items {
		event := &list.Items[i]
		about := &event.Regarding
		if about.Kind != "Pod" || about.Namespace != event.Namespace || event.ReportingController != ControllerName {
			continue
		}
		if before := p.pods[about.UID]; before != nil {
			p.abandon(before.event)
		}
		p.pods[about.UID] = &record{event: event, changes: changeFirst}
	}
	return nil
}

// allowed waits until the limit permits one more request, and reports whether it does in time.
func (p *Publisher) allowed(ctx context.Context) bool {
	next := p.limiter.ReserveN(p.now, 1)
	delay := next.DelayFrom(p.now)
	if p.now.Add(delay).After(p.end) || !pause(ctx, delay) {
		next.CancelAt(p.now)
		p.late = true
		p.count(eventDelayed)
		return false
	}
	p.now = p.now.Add(delay)
	return true
}

func (p *Publisher) count(result string) { p.metrics.events.WithLabelValues(result).Inc() }

// isRefusal reports whether the API server works, and refuses one request alone.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.IsUnauthorized(err) || apierrors.IsTooManyRequests(err) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError
}

// lastTime returns when an event was last observed.
func lastTime(event *eventsapi.Event) time.Time {
	if event.Series != nil {
		return event.Series.LastObservedTime.Time
	}
	return event.EventTime.Time
}

// Answer says why a pod does not run.
type Answer struct {
	Pod *corev1.Pod
	// Reason is a reason code, Note the decisive fact and the first change that mends it.
	Reason, Note string
}

const (
	// leastAge is the age of a pod before which nothing is said about it: most are scheduled by
	// then.
	leastAge = 30 * time.Second
	// maxNote is the largest note of an event in bytes
	// (k8s.io/kubernetes/pkg/apis/core/validation, NoteLengthLimit).
	maxNote = 1024
)

// answersOf returns the answers about the pods that do not run at a time. There is none for a pod that is
// young, that fits, or about which the allocator is not sure.
func answersOf(c *cluster.Cluster, found *cause.Found, now time.Time) []Answer {
	var list []Answer
	add := func(pod *corev1.Pod, reason, fact, fix string) {
		if reason != "" && now.Sub(pod.CreationTimestamp.Time) >= leastAge {
			list = append(list, Answer{Pod: pod, Reason: reason, Note: note(fact, fix)})
		}
	}
	full := map[api.ObjectRef]*api.Explanation{}
	for _, answer := range found.Examination.Answers {
		if e := answer.Explanation; e != nil {
			full[e.Target] = e
		}
	}
	for i, pod := range c.Waiting() {
		e := found.Examination.Answers[i].Explanation
		if e == nil || e.OtherScheduler != nil || len(e.SchedulingGates) > 0 {
			continue
		}
		switch e.Verdict {
		case api.DoesNotFit, api.Error, api.Blocked:
			advice := e
			if first := full[e.SameAs]; first != nil {
				advice = first
			}
			add(pod, string(e.Code), fact(e), fix(advice))
		default:
		}
	}
	for i := range found.Examination.Blocked {
		b := &found.Examination.Blocked[i]
		if pod := c.Snapshot.Pod(b.Namespace, b.Name); pod != nil && pod.Spec.NodeName != "" {
			step := ""
			if len(b.Steps) > 0 {
				step = by(b.Steps[0].Actor, b.Steps[0].Text)
			}
			fact := b.Summary
			if b.Code == api.DeviceAllocatedTwice {
				fact = "Another claim has a device of this pod, too."
			}
			add(pod, string(b.Code), fact, step)
		}
	}
	return list
}

// fact returns the decisive fact of an answer. Who may read the events of a pod may not be
// permitted to read the pods before it in the queue.
func fact(e *api.Explanation) string {
	if e.Code == api.PodsCompete {
		return "Pods before it in the queue get the devices."
	}
	return cmp.Or(e.Headline, e.Summary)
}

// fix returns the first change that lets a pod fit, in the order of `kubectl dra why`. Claims of
// others are not named.
func fix(e *api.Explanation) string {
	const wait = "It fits when claims of other pods are released."
	switch {
	case len(e.Remedies) > 0 && e.Remedies[0].Actor == api.ActorNobody:
		return wait
	case len(e.Remedies) > 0:
		return by(e.Remedies[0].Actor, e.Remedies[0].Change)
	case explain.When(e) == api.LowerPrioritiesGone || explain.When(e) == api.ClaimsReleased:
		return wait
	case len(e.NextSteps) > 0 && e.NextSteps[0].Actor != api.ActorNobody:
		return by(e.NextSteps[0].Actor, e.NextSteps[0].Text)
	default:
		return ""
	}
}

// by returns a change as a sentence that names who can make it.
func by(actor, change string) string {
	who := map[string]string{api.ActorUser: "Fix: ", api.ActorAdmin: "Fix (cluster admin): "}[actor]
	return who + strings.TrimSuffix(change, ".") + "."
}

// note joins a fact and a fix into the note of an event. What is too long is cut between words.
func note(fact, fix string) string {
	text := strings.TrimSpace(render.Escape(strings.TrimSpace(fact) + " " + fix))
	if len(text) <= maxNote {
		return text
	}
	cut := maxNote - len(" …")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	if space := strings.LastIndexByte(text[:cut], ' '); space > 0 {
		cut = space
	}
	return text[:cut] + " …"
}
