// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Reasons of events about the claims of pods.
const (
	reasonFailedScheduling = "FailedScheduling"
	// reasonClaimCreation is from pkg/controller/resourceclaim.
	reasonClaimCreation = "FailedResourceClaimCreation"
	// The others are from pkg/kubelet/events.
	reasonPrepare   = "FailedPrepareDynamicResources"
	reasonSandbox   = "FailedCreatePodSandBox"
	reasonKillPod   = "FailedKillPod"
	reasonContainer = "Failed"
)

// SchedulerMessage returns the scheduler's last message about a pod: the condition if it is
// set, else the newest event.
func SchedulerMessage(snap *snapshot.Snapshot, pod *corev1.Pod) *api.SchedulerMessage {
	if pod.Spec.NodeName != "" {
		return nil
	}
	if c := PodCondition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse && c.Message != "" {
		message := &api.SchedulerMessage{Text: c.Message, Source: "condition PodScheduled"}
		if !c.LastTransitionTime.IsZero() {
			message.Time = &c.LastTransitionTime
		}
		return message
	}
	newest := newestEvent(podEvents(snap, pod), func(e *corev1.Event) bool { return e.Reason == reasonFailedScheduling })
	if newest == nil {
		return nil
	}
	message := &api.SchedulerMessage{Text: newest.Message, Source: "event " + reasonFailedScheduling}
	if t := EventTime(newest); !t.IsZero() {
		message.Time = &t
	}
	return message
}

// podEvents lists the events of a pod, without events of other pods of the same name.
func podEvents(snap *snapshot.Snapshot, pod *corev1.Pod) []*corev1.Event {
	return eventsAbout(snap, api.KindPod, pod.Namespace, pod.Name, pod.UID)
}

func eventsAbout(snap *snapshot.Snapshot, kind, namespace, name string, uid types.UID) []*corev1.Event {
	var found []*corev1.Event
	for _, event := range snap.Events {
		about := &event.InvolvedObject
		if about.Kind == kind && about.Namespace == namespace && about.Name == name && (about.UID == "" || uid == "" || about.UID == uid) {
			found = append(found, event)
		}
	}
	return found
}

// LastWarning returns the newest warning about an object of that kind, as evidence. It is
// nil if there is none.
func LastWarning(snap *snapshot.Snapshot, kind string, o metav1.Object) *api.Evidence {
	newest := newestEvent(eventsAbout(snap, kind, o.GetNamespace(), o.GetName(), o.GetUID()), func(e *corev1.Event) bool { return e.Type == corev1.EventTypeWarning })
	if newest == nil {
		return nil
	}
	return new(eventEvidence(newest))
}

// containerProgress lists the kubelet's events about a container, in their order.
var containerProgress = []string{"Pulling", "Pulled", "Created", "Started"} //nolint:gochecknoglobals // a constant

// newestEvent returns the last reported event, nil if there is none. Times are in seconds:
// of two events in the same second, the one later in the life of a container is newer.
func newestEvent(events []*corev1.Event, wanted func(*corev1.Event) bool) *corev1.Event {
	var newest *corev1.Event
	for _, event := range events {
		if !wanted(event) {
			continue
		}
		if newest == nil || cmp.Or(EventTime(event).Compare(EventTime(newest).Time),
			cmp.Compare(slices.Index(containerProgress, event.Reason), slices.Index(containerProgress, newest.Reason))) > 0 {
			newest = event
		}
	}
	return newest
}

// kubeletEvent returns the newest warning about a pod that shows the kubelet's progress.
// Warnings from before its sandbox came or went are history, and so are warnings about
// earlier steps than its containers have reached.
func kubeletEvent(snap *snapshot.Snapshot, pod *corev1.Pod) *corev1.Event {
	progress := progressEvent(snap, pod)
	return newestEvent(podEvents(snap, pod), func(e *corev1.Event) bool {
		if e.Type == corev1.EventTypeNormal || e.Reason == reasonFailedScheduling || e.Reason == reasonClaimCreation || !sinceSandbox(pod, e) {
			return false
		}
		return progress == nil || afterPreparation(e) || EventTime(e).After(EventTime(progress).Time)
	})
}

// progressEvent returns the kubelet's newest event about the containers of a pod, which
// shows that its devices are prepared.
func progressEvent(snap *snapshot.Snapshot, pod *corev1.Pod) *corev1.Event {
	return newestEvent(podEvents(snap, pod), func(e *corev1.Event) bool {
		return e.Type == corev1.EventTypeNormal && slices.Contains(containerProgress, e.Reason) && sinceSandbox(pod, e)
	})
}

// sinceSandbox reports whether an event belongs to the current sandbox of a pod, or to the
// attempts to create another one.
func sinceSandbox(pod *corev1.Pod, e *corev1.Event) bool {
	c := cmp.Or(sandboxReady(pod), sandboxLost(pod))
	return c == nil || !EventTime(e).Time.Before(c.LastTransitionTime.Time)
}

// EventTime returns the time of the last report.
func EventTime(event *corev1.Event) metav1.Time {
	switch {
	case event.Series != nil && !event.Series.LastObservedTime.IsZero():
		return metav1.NewTime(event.Series.LastObservedTime.Time)
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp
	case !event.EventTime.IsZero():
		return metav1.NewTime(event.EventTime.Time)
	default:
		return event.CreationTimestamp
	}
}

// reports counts the reports.
func reports(event *corev1.Event) int32 {
	if event.Series != nil {
		return event.Series.Count
	}
	return event.Count
}

// firstTime returns the time of the first report, zero if unknown.
func firstTime(event *corev1.Event) time.Time {
	return cmp.Or(event.FirstTimestamp.Time, event.EventTime.Time)
}

// often says how often an event was reported, and when last: " (12 times, last 30s ago)". Neither
// is said with [snapshot.Snapshot.AbsoluteTimes]: both change with each report.
func often(snap *snapshot.Snapshot, event *corev1.Event) string {
	if snap.AbsoluteTimes {
		return ""
	}
	var parts []string
	if count := reports(event); count > 1 {
		parts = append(parts, fmt.Sprintf("%d times", count))
	}
	if t := EventTime(event); !t.IsZero() {
		parts = append(parts, "last "+snap.Ago(t.Time))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// repeated says since when an event was reported, how often, and when last: " (12 times in
// 8m, last 30s ago)".
func repeated(snap *snapshot.Snapshot, event *corev1.Event) string {
	count, first, last := reports(event), firstTime(event), EventTime(event).Time
	switch {
	case snap.AbsoluteTimes && !first.IsZero():
		return " (" + snap.Lasting("for", first) + ")"
	case first.IsZero(), last.IsZero(), count <= 1:
		return often(snap, event)
	default:
		return fmt.Sprintf(" (%d times %s, last %s)", count, snap.Lasting("in", first), snap.Ago(last))
	}
}

func eventEvidence(event *corev1.Event) api.Evidence {
	about := event.InvolvedObject
	return api.Evidence{
		Object: api.Ref("Event", event.Namespace, cmp.Or(event.Name, event.GenerateName)), Path: "message", Found: event.Message,
		Required: "no event " + event.Reason + " of " + api.Ref(about.Kind, about.Namespace, about.Name).String(),
	}
}

// between returns the text between two texts.
func between(text, before, after string) (string, bool) {
	_, rest, found := strings.Cut(text, before)
	if !found {
		return "", false
	}
	middle, _, found := strings.Cut(rest, after)
	return middle, found && middle != ""
}

// saidOnce drops a repetition in an error, as of errors that were wrapped with the same
// words.
func saidOnce(message string) string {
	return strings.Join(slices.Compact(strings.Split(strings.Join(strings.Fields(message), " "), ": ")), ": ")
}

// afterPreparation reports whether the kubelet reports such an event only after the devices
// are prepared: about the sandbox, a container or its image.
func afterPreparation(event *corev1.Event) bool {
	return event.Reason == reasonSandbox || event.Reason == reasonContainer && event.InvolvedObject.FieldPath != "" || len(cdiDevices(event.Message)) > 0
}
