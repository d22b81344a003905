// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyapi "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	storageapi "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Decode decodes an object of a known kind into the newest version and returns nil for
// other kinds.
func (d *Decoder) Decode(data []byte, apiVersion, kind string) (metav1.Object, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, &FieldError{"apiVersion", fmt.Errorf("expected a group and a version such as %s, found %q",
			resourceapi.SchemeGroupVersion, apiVersion)}
	}
	switch gv.Group {
	case resourceapi.GroupName:
		if gv.Version == resourceapi.SchemeGroupVersion.Version {
			switch kind {
			case "ResourceSlice":
				return untyped(decodeWith[resourceapi.ResourceSlice](data, d.options))
			case "ResourceClaim":
				return untyped(defaultedClaim(decodeWith[resourceapi.ResourceClaim](data, d.options)))
			}
		}
		return DecodeResource(data, gv.Version, kind)
	case schedulingapi.GroupName:
		if kind == "PodGroup" && gv.Version != "v1alpha1" {
			return untyped(DecodePodGroup(data, gv.Version))
		}
		if kind == "CompositePodGroup" && gv.Version == schedulingv1alpha3.SchemeGroupVersion.Version {
			return untyped(DecodeAs[schedulingv1alpha3.CompositePodGroup](data))
		}
		return nil, nil
	case eventsv1.GroupName:
		if kind == "Event" {
			return relevantEvent(decodeNewEvent(data))
		}
		return nil, nil
	case corev1.GroupName:
		switch kind {
		case "Node":
			return untyped(decodeWith[corev1.Node](data, d.options))
		case "Namespace":
			return untyped(DecodeAs[corev1.Namespace](data))
		case "Pod":
			return untyped(decodeWith[corev1.Pod](data, d.options))
		case "Event":
			return relevantEvent(DecodeAs[corev1.Event](data))
		case "ResourceQuota":
			return untyped(DecodeAs[corev1.ResourceQuota](data))
		case "LimitRange":
			return untyped(DecodeAs[corev1.LimitRange](data))
		case "PersistentVolumeClaim":
			return untyped(DecodeAs[corev1.PersistentVolumeClaim](data))
		case "PersistentVolume":
			return untyped(DecodeAs[corev1.PersistentVolume](data))
		}
	case storageapi.GroupName:
		if kind == "StorageClass" {
			return untyped(DecodeAs[storageapi.StorageClass](data))
		}
		return nil, nil
	case policyapi.GroupName:
		// policy/v1beta1, which Kubernetes 1.25 removed, has the same fields.
		if kind == "PodDisruptionBudget" {
			return untyped(DecodeAs[policyapi.PodDisruptionBudget](data))
		}
		return nil, nil
	}
	if gv.Group == snapshot.OutlineGroup && kind == snapshot.KindOutline {
		return untyped(DecodeAs[snapshot.Outline](data))
	}
	if gv.Group == snapshot.ComputeDomainGroup {
		switch kind {
		case snapshot.KindComputeDomain:
			return untyped(DecodeAs[snapshot.ComputeDomain](data))
		case snapshot.KindClique:
			return untyped(DecodeAs[snapshot.ComputeDomainClique](data))
		}
		return nil, nil
	}
	if gv.Group == snapshot.KueueGroup {
		if kind == snapshot.KindLocalQueue || kind == snapshot.KindClusterQueue {
			if outline := DecodeOutline(data, apiVersion, kind); outline != nil {
				return outline, nil
			}
		}
		if workload, err := DecodeAs[snapshot.QueuedWorkload](data); err == nil && kind == snapshot.QueuedWorkloadKind().Kind {
			return untyped(workload, nil)
		}
		return nil, nil
	}
	if (schema.GroupKind{Group: gv.Group, Kind: kind}) == snapshot.AutoscalerKind() {
		if outline := DecodeOutline(data, apiVersion, kind); outline != nil {
			return outline, nil
		}
		return nil, nil
	}
	if shape := KnownWorkload(gv.Group, kind); shape != NotWorkload {
		return orNil(DecodeWorkload(data, shape))
	}
	if LooksLikeWorkload(data) {
		if workload, err := DecodeWorkload(data, TemplateInSpec); err == nil {
			return workload, nil
		}
	}
	if outline := DecodeOutline(data, apiVersion, kind); outline != nil && ownsPods(gv.Group, outline) {
		return outline, nil
	}
	return nil, nil
}

// DecodeResource decodes an object of resource.k8s.io, nil for other kinds.
func DecodeResource(data []byte, version, kind string) (metav1.Object, error) {
	if err := checkResourceVersion(version, kind); err != nil {
		return nil, err
	}
	switch kind {
	case "ResourceSlice":
		return untyped(decodeSlice(data, version))
	case "DeviceClass":
		return untyped(decodeClass(data, version))
	case "ResourceClaim":
		return untyped(decodeClaim(data, version))
	case "ResourceClaimTemplate":
		return untyped(decodeTemplate(data, version))
	case "DeviceTaintRule":
		return untyped(DecodeTaintRule(data, version))
	case snapshot.KindPoolStatus:
		return decodePoolStatus(data, version)
	default:
		return nil, nil
	}
}

// ErrGone means that no supported release of Kubernetes has the version or the kind of an object.
var ErrGone = errors.New("gone")

// checkResourceVersion refuses what no server has any more, or none that this
// program knows, instead of leaving out objects that decide the answer.
func checkResourceVersion(version, kind string) error {
	replacement := ""
	switch kind {
	case "ResourceClass":
		replacement = "DeviceClass replaced it in Kubernetes 1.31"
	case "ResourceClassParameters":
		replacement = "spec.config of DeviceClass replaced it in Kubernetes 1.31"
	case "ResourceClaimParameters":
		replacement = "spec.devices of ResourceClaim replaced it in Kubernetes 1.31"
	case "PodSchedulingContext":
		replacement = "the scheduler allocates without it since Kubernetes 1.32"
	case "ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate":
		switch version {
		case "v1", "v1beta2", "v1beta1":
			return nil
		case "v1alpha1", "v1alpha2", "v1alpha3":
			return &FieldError{"apiVersion", fmt.Errorf("%s of resource.k8s.io/%s is %w since Kubernetes 1.32: "+
				"expected one of v1, v1beta2, v1beta1", kind, version, ErrGone)}
		}
		return &FieldError{"apiVersion", fmt.Errorf("resource.k8s.io/%s is not known: expected one of v1, v1beta2, v1beta1", version)}
	case "DeviceTaintRule":
		switch version {
		case "v1", "v1beta2", "v1alpha3":
			return nil
		}
		return &FieldError{"apiVersion", fmt.Errorf("resource.k8s.io/%s has no DeviceTaintRule: "+
			"expected one of v1, v1beta2, v1alpha3", version)}
	default:
		return nil
	}
	return fmt.Errorf("%s of resource.k8s.io/%s is %w: %s", kind, version, ErrGone, replacement)
}

// orNil makes an untyped nil of a typed one.
func orNil(workload *snapshot.Workload, err error) (metav1.Object, error) {
	if err != nil {
		return nil, err
	}
	return workload, nil
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
