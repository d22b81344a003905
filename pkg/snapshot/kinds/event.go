// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// decodeNewEvent decodes an event of events.k8s.io/v1, which is the same
// object as one of the core group under other names.
func decodeNewEvent(data []byte) (*corev1.Event, error) {
	event, err := DecodeAs[eventsv1.Event](data)
	if err != nil {
		return nil, err
	}
	return &corev1.Event{
		ObjectMeta:          event.ObjectMeta,
		InvolvedObject:      event.Regarding,
		Reason:              event.Reason,
		Message:             event.Note,
		Source:              event.DeprecatedSource,
		FirstTimestamp:      event.DeprecatedFirstTimestamp,
		LastTimestamp:       event.DeprecatedLastTimestamp,
		Count:               event.DeprecatedCount,
		Type:                event.Type,
		EventTime:           event.EventTime,
		Series:              eventSeries(event.Series),
		Action:              event.Action,
		Related:             event.Related,
		ReportingController: event.ReportingController,
		ReportingInstance:   event.ReportingInstance,
	}, nil
}

func eventSeries(series *eventsv1.EventSeries) *corev1.EventSeries {
	if series == nil {
		return nil
	}
	return &corev1.EventSeries{Count: series.Count, LastObservedTime: series.LastObservedTime}
}

// relevantEvent drops events about things that have nothing to do with claims, and answers.
func relevantEvent(event *corev1.Event, err error) (metav1.Object, error) {
	if err != nil {
		return nil, err
	}
	if snapshot.IsAnswer(event) {
		return nil, nil
	}
	switch event.InvolvedObject.Kind {
	case "Node", "Namespace", "ConfigMap", "Secret", "Service", "Endpoints", "EndpointSlice", "Ingress",
		"PersistentVolume", "PersistentVolumeClaim", "HorizontalPodAutoscaler", "PodDisruptionBudget",
		"ServiceAccount", "Lease":
		return nil, nil
	}
	return untyped(event, nil)
}

func redactedEvents() []Redaction {
	return []Redaction{
		redacted[corev1.Event](`
			metadata            meta Event
			message             eventMessage
			action              text
			reportingComponent  component
			reportingInstance   text`),
		redacted[corev1.EventSource](`
			host       name Node
			component  component`),
	}
}
