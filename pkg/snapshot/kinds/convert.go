// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
	convertv1beta1 "k8s.io/dynamic-resource-allocation/api/v1beta1"
	convertv1beta2 "k8s.io/dynamic-resource-allocation/api/v1beta2"
)

// decodeConverted decodes an object of an older version and converts it.
func decodeConverted[From, To any](data []byte, convert func(*From, *To, conversion.Scope) error) (*To, error) {
	from, err := DecodeAs[From](data)
	if err != nil {
		return nil, err
	}
	to := new(To)
	if err := convert(from, to, nil); err != nil {
		return nil, fmt.Errorf("convert to the newest version: %w", err)
	}
	return to, nil
}

func decodeSlice(data []byte, version string) (*resourceapi.ResourceSlice, error) {
	switch version {
	case "v1beta1":
		return decodeConverted(data, convertv1beta1.Convert_v1beta1_ResourceSlice_To_v1_ResourceSlice)
	case "v1beta2":
		return decodeConverted(data, convertv1beta2.Convert_v1beta2_ResourceSlice_To_v1_ResourceSlice)
	default:
		return DecodeAs[resourceapi.ResourceSlice](data)
	}
}

func decodeClass(data []byte, version string) (*resourceapi.DeviceClass, error) {
	switch version {
	case "v1beta1":
		return decodeConverted(data, convertv1beta1.Convert_v1beta1_DeviceClass_To_v1_DeviceClass)
	case "v1beta2":
		return decodeConverted(data, convertv1beta2.Convert_v1beta2_DeviceClass_To_v1_DeviceClass)
	default:
		return DecodeAs[resourceapi.DeviceClass](data)
	}
}

func decodeClaim(data []byte, version string) (claim *resourceapi.ResourceClaim, err error) {
	switch version {
	case "v1beta1":
		claim, err = decodeConverted(data, convertv1beta1.Convert_v1beta1_ResourceClaim_To_v1_ResourceClaim)
	case "v1beta2":
		claim, err = decodeConverted(data, convertv1beta2.Convert_v1beta2_ResourceClaim_To_v1_ResourceClaim)
	default:
		claim, err = DecodeAs[resourceapi.ResourceClaim](data)
	}
	return defaultedClaim(claim, err)
}

func decodeTemplate(data []byte, version string) (template *resourceapi.ResourceClaimTemplate, err error) {
	switch version {
	case "v1beta1":
		template, err = decodeConverted(data, convertv1beta1.Convert_v1beta1_ResourceClaimTemplate_To_v1_ResourceClaimTemplate)
	case "v1beta2":
		template, err = decodeConverted(data, convertv1beta2.Convert_v1beta2_ResourceClaimTemplate_To_v1_ResourceClaimTemplate)
	default:
		template, err = DecodeAs[resourceapi.ResourceClaimTemplate](data)
	}
	if err != nil {
		return nil, err
	}
	defaultClaimSpec(&template.Spec.Spec)
	return template, nil
}

// ErrDroppedSelector is a DeviceTaintRule that cannot be kept: without the
// selectors it would taint more devices than it says.
var ErrDroppedSelector = errors.New("it selects devices by class or CEL expression, which DeviceTaintRules " +
	"cannot since Kubernetes 1.35")

// DecodeTaintRule decodes a DeviceTaintRule. All versions have the same fields
// but for the selectors that v1alpha3 had before Kubernetes 1.35.
func DecodeTaintRule(data []byte, version string) (*resourceapi.DeviceTaintRule, error) {
	if version == "v1alpha3" {
		var old struct {
			Spec struct {
				DeviceSelector struct {
					DeviceClassName *string           `json:"deviceClassName"`
					Selectors       []json.RawMessage `json:"selectors"`
				} `json:"deviceSelector"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(data, &old); err == nil &&
			(old.Spec.DeviceSelector.DeviceClassName != nil || len(old.Spec.DeviceSelector.Selectors) > 0) {
			return nil, ErrDroppedSelector
		}
	}
	if version == "v1beta2" {
		return decodeConverted(data, convertv1beta2.Convert_v1beta2_DeviceTaintRule_To_v1_DeviceTaintRule)
	}
	return DecodeAs[resourceapi.DeviceTaintRule](data)
}

// podGroupV1alpha2 has the fields of scheduling.k8s.io/v1alpha2 (Kubernetes
// 1.36) that differ from later versions.
type podGroupV1alpha2 struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		PodGroupTemplateRef *struct {
			Workload *struct {
				WorkloadName         string `json:"workloadName"`
				PodGroupTemplateName string `json:"podGroupTemplateName"`
			} `json:"workload"`
		} `json:"podGroupTemplateRef"`
		SchedulingPolicy      schedulingapi.PodGroupSchedulingPolicy       `json:"schedulingPolicy"`
		SchedulingConstraints *schedulingapi.PodGroupSchedulingConstraints `json:"schedulingConstraints"`
		ResourceClaims        []schedulingapi.PodGroupResourceClaim        `json:"resourceClaims"`
		DisruptionMode        *string                                      `json:"disruptionMode"`
		PriorityClassName     string                                       `json:"priorityClassName"`
		Priority              *int32                                       `json:"priority"`
	} `json:"spec"`
	Status schedulingapi.PodGroupStatus `json:"status"`
}

// DecodePodGroup decodes a PodGroup. v1alpha3 and v1beta1 have the same fields.
func DecodePodGroup(data []byte, version string) (*schedulingapi.PodGroup, error) {
	if version != "v1alpha2" {
		return DecodeAs[schedulingapi.PodGroup](data)
	}
	old, err := DecodeAs[podGroupV1alpha2](data)
	if err != nil {
		return nil, err
	}
	group := &schedulingapi.PodGroup{ObjectMeta: old.ObjectMeta, Status: old.Status}
	group.Spec = schedulingapi.PodGroupSpec{
		SchedulingPolicy:      old.Spec.SchedulingPolicy,
		SchedulingConstraints: old.Spec.SchedulingConstraints,
		ResourceClaims:        old.Spec.ResourceClaims,
		PriorityClassName:     old.Spec.PriorityClassName,
		Priority:              old.Spec.Priority,
	}
	if ref := old.Spec.PodGroupTemplateRef; ref != nil && ref.Workload != nil {
		group.Spec.WorkloadRef = &schedulingapi.WorkloadReference{
			WorkloadName: ref.Workload.WorkloadName,
			TemplateName: ref.Workload.PodGroupTemplateName,
		}
	}
	if mode := old.Spec.DisruptionMode; mode != nil {
		group.Spec.DisruptionMode = &schedulingapi.DisruptionMode{}
		if *mode == "PodGroup" {
			group.Spec.DisruptionMode.All = &schedulingapi.AllDisruptionMode{}
		} else {
			group.Spec.DisruptionMode.Single = &schedulingapi.SingleDisruptionMode{}
		}
	}
	return group, nil
}

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

// untyped removes apiVersion and kind, as a client does: all objects are of
// the newest version anyway.
func untyped[T any, P interface {
	*T
	metav1.Object
	GetObjectKind() schema.ObjectKind
}](object *T, err error) (metav1.Object, error) {
	if err != nil {
		return nil, err
	}
	P(object).GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return P(object), nil
}

// decodePoolStatus decodes a request that has been answered. Those without an
// answer say nothing.
func decodePoolStatus(data []byte, version string) (metav1.Object, error) {
	if version != resourcev1alpha3.SchemeGroupVersion.Version {
		return nil, nil
	}
	request, err := DecodeAs[resourcev1alpha3.ResourcePoolStatusRequest](data)
	if err != nil || request.Status == nil {
		return nil, err
	}
	return untyped(request, nil)
}
