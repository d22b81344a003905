// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	convertv1beta1 "k8s.io/dynamic-resource-allocation/api/v1beta1"
	convertv1beta2 "k8s.io/dynamic-resource-allocation/api/v1beta2"
)

// api is where the objects of one resource come from, in the version of the
// API that the server has.
type api[P metav1.Object] struct {
	list  listFunc
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// example is of the type that the server's objects get, nil for any.
	example any
	// convert makes the object of a snapshot. One that is not for a snapshot
	// is errNotKept, one that should be but cannot has another error.
	convert func(object any) (P, error)
}

// apiOf is one that reads with a client, typed or not.
func apiOf[P metav1.Object, L runtime.Object](client interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}, example any, convert func(object any) (P, error),
) api[P] {
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		found, err := client.List(ctx, options)
		if err != nil {
			return nil, err
		}
		return found, nil
	}
	return api[P]{list: list, watch: client.Watch, example: example, convert: convert}
}

// as keeps an object as it is, without the dead weight.
func as[P metav1.Object](object any) (P, error) {
	kept, ok := object.(P)
	if !ok {
		return kept, otherType(object)
	}
	strip(kept)
	return kept, nil
}

// from converts an object of an older version with a function of
// k8s.io/dynamic-resource-allocation/api.
func from[Old, New any, P interface {
	*New
	metav1.Object
}](convert func(*Old, *New, conversion.Scope) error) func(object any) (P, error) {
	return func(object any) (P, error) {
		old, ok := object.(*Old)
		if !ok {
			return nil, otherType(object)
		}
		converted := P(new(New))
		if err := convert(old, converted, nil); err != nil {
			return nil, fmt.Errorf("convert to the newest version: %w", err)
		}
		strip(converted)
		return converted, nil
	}
}

func otherType(object any) error {
	return fmt.Errorf("read the answer of the server: %T is not expected", object)
}

func nodeAPI(c Clients) api[*corev1.Node] {
	return apiOf(c.Nodes(), &corev1.Node{}, as[*corev1.Node])
}

func namespaceAPI(c Clients) api[*corev1.Namespace] {
	return apiOf(c.namespaces(), &corev1.Namespace{}, as[*corev1.Namespace])
}

func podAPI(c Clients, namespace string) api[*corev1.Pod] {
	return apiOf(c.Pods(namespace), &corev1.Pod{}, as[*corev1.Pod])
}

func eventAPI(c Clients, namespace string) api[*corev1.Event] {
	return apiOf(typed[corev1.Event, corev1.EventList](c, corev1.SchemeGroupVersion, "events", namespace), &corev1.Event{}, as[*corev1.Event])
}

// pluginAPI gives the DaemonSets with a plugin for the kubelet.
func pluginAPI(c Clients) api[*Workload] {
	return apiOf(typed[appsv1.DaemonSet, appsv1.DaemonSetList](c, appsv1.SchemeGroupVersion, "daemonsets", metav1.NamespaceAll), &appsv1.DaemonSet{}, asPlugin)
}

func sliceAPI(c Clients, version string) api[*resourceapi.ResourceSlice] {
	const resource = "resourceslices"
	switch version {
	case "v1beta1":
		return apiOf(typed[resourcev1beta1.ResourceSlice, resourcev1beta1.ResourceSliceList](c, resourcev1beta1.SchemeGroupVersion, resource, ""),
			&resourcev1beta1.ResourceSlice{}, from(convertv1beta1.Convert_v1beta1_ResourceSlice_To_v1_ResourceSlice))
	case "v1beta2":
		return apiOf(typed[resourcev1beta2.ResourceSlice, resourcev1beta2.ResourceSliceList](c, resourcev1beta2.SchemeGroupVersion, resource, ""),
			&resourcev1beta2.ResourceSlice{}, from(convertv1beta2.Convert_v1beta2_ResourceSlice_To_v1_ResourceSlice))
	default:
		return apiOf(typed[resourceapi.ResourceSlice, resourceapi.ResourceSliceList](c, resourceapi.SchemeGroupVersion, resource, ""),
			&resourceapi.ResourceSlice{}, as[*resourceapi.ResourceSlice])
	}
}

func classAPI(c Clients, version string) api[*resourceapi.DeviceClass] {
	const resource = "deviceclasses"
	switch version {
	case "v1beta1":
		return apiOf(typed[resourcev1beta1.DeviceClass, resourcev1beta1.DeviceClassList](c, resourcev1beta1.SchemeGroupVersion, resource, ""),
			&resourcev1beta1.DeviceClass{}, from(convertv1beta1.Convert_v1beta1_DeviceClass_To_v1_DeviceClass))
	case "v1beta2":
		return apiOf(typed[resourcev1beta2.DeviceClass, resourcev1beta2.DeviceClassList](c, resourcev1beta2.SchemeGroupVersion, resource, ""),
			&resourcev1beta2.DeviceClass{}, from(convertv1beta2.Convert_v1beta2_DeviceClass_To_v1_DeviceClass))
	default:
		return apiOf(typed[resourceapi.DeviceClass, resourceapi.DeviceClassList](c, resourceapi.SchemeGroupVersion, resource, ""),
			&resourceapi.DeviceClass{}, as[*resourceapi.DeviceClass])
	}
}

func claimAPI(c Clients, version, namespace string) api[*resourceapi.ResourceClaim] {
	const resource = "resourceclaims"
	switch version {
	case "v1beta1":
		return apiOf(typed[resourcev1beta1.ResourceClaim, resourcev1beta1.ResourceClaimList](c, resourcev1beta1.SchemeGroupVersion, resource, namespace),
			&resourcev1beta1.ResourceClaim{}, from(convertv1beta1.Convert_v1beta1_ResourceClaim_To_v1_ResourceClaim))
	case "v1beta2":
		return apiOf(typed[resourcev1beta2.ResourceClaim, resourcev1beta2.ResourceClaimList](c, resourcev1beta2.SchemeGroupVersion, resource, namespace),
			&resourcev1beta2.ResourceClaim{}, from(convertv1beta2.Convert_v1beta2_ResourceClaim_To_v1_ResourceClaim))
	default:
		return apiOf(typed[resourceapi.ResourceClaim, resourceapi.ResourceClaimList](c, resourceapi.SchemeGroupVersion, resource, namespace),
			&resourceapi.ResourceClaim{}, as[*resourceapi.ResourceClaim])
	}
}

func templateAPI(c Clients, version, namespace string) api[*resourceapi.ResourceClaimTemplate] {
	const resource = "resourceclaimtemplates"
	switch version {
	case "v1beta1":
		return apiOf(typed[resourcev1beta1.ResourceClaimTemplate, resourcev1beta1.ResourceClaimTemplateList](c, resourcev1beta1.SchemeGroupVersion, resource, namespace),
			&resourcev1beta1.ResourceClaimTemplate{}, from(convertv1beta1.Convert_v1beta1_ResourceClaimTemplate_To_v1_ResourceClaimTemplate))
	case "v1beta2":
		return apiOf(typed[resourcev1beta2.ResourceClaimTemplate, resourcev1beta2.ResourceClaimTemplateList](c, resourcev1beta2.SchemeGroupVersion, resource, namespace),
			&resourcev1beta2.ResourceClaimTemplate{}, from(convertv1beta2.Convert_v1beta2_ResourceClaimTemplate_To_v1_ResourceClaimTemplate))
	default:
		return apiOf(typed[resourceapi.ResourceClaimTemplate, resourceapi.ResourceClaimTemplateList](c, resourceapi.SchemeGroupVersion, resource, namespace),
			&resourceapi.ResourceClaimTemplate{}, as[*resourceapi.ResourceClaimTemplate])
	}
}

func taintRuleAPI(c Clients, version string) api[*resourceapi.DeviceTaintRule] {
	const resource = "devicetaintrules"
	switch version {
	case oldTaintRules:
		return apiOf(c.oldTaintRuleAPI(), nil, asOldTaintRule)
	case "v1beta2":
		return apiOf(typed[resourcev1beta2.DeviceTaintRule, resourcev1beta2.DeviceTaintRuleList](c, resourcev1beta2.SchemeGroupVersion, resource, ""),
			&resourcev1beta2.DeviceTaintRule{}, from(convertv1beta2.Convert_v1beta2_DeviceTaintRule_To_v1_DeviceTaintRule))
	default:
		return apiOf(typed[resourceapi.DeviceTaintRule, resourceapi.DeviceTaintRuleList](c, resourceapi.SchemeGroupVersion, resource, ""),
			&resourceapi.DeviceTaintRule{}, as[*resourceapi.DeviceTaintRule])
	}
}

func podGroupAPI(c Clients, version, namespace string) api[*schedulingapi.PodGroup] {
	if version != schedulingapi.SchemeGroupVersion.Version {
		return apiOf(c.oldPodGroupAPI(version, namespace), nil, asOldPodGroup(version))
	}
	return apiOf(typed[schedulingapi.PodGroup, schedulingapi.PodGroupList](c, schedulingapi.SchemeGroupVersion, "podgroups", namespace),
		&schedulingapi.PodGroup{}, as[*schedulingapi.PodGroup])
}
