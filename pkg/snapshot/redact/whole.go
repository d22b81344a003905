// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// wholeTypes lists functions for the types in which one field decides how another is redacted.
func wholeTypes() map[reflect.Type]func(*redactor, any) {
	whole := map[reflect.Type]func(*redactor, any){}
	of(whole, func(r *redactor, o *snapshot.Workload) { r.meta(&o.ObjectMeta, o.Kind) })
	of(whole, func(r *redactor, o *snapshot.Outline) { r.meta(&o.ObjectMeta, o.Of.Kind) })
	of(whole, func(r *redactor, ref *snapshot.ScaleTarget) { ref.Name = r.swap(ref.Kind, ref.Name) })
	of(whole, (*redactor).reference)
	of(whole, (*redactor).opaque)
	of(whole, (*redactor).nodeTerm)
	of(whole, (*redactor).volumeClaim)
	of(whole, func(r *redactor, device *resourceapi.Device) {
		for name, attribute := range device.Attributes {
			r.keep(string(name))
			if attribute.StringValue != nil {
				*attribute.StringValue = r.attribute(string(name), *attribute.StringValue)
			}
			for k := range attribute.StringValues {
				attribute.StringValues[k] = r.attribute(string(name), attribute.StringValues[k])
			}
		}
	})
	of(whole, func(r *redactor, summary *resourcev1alpha3.PartitionTypeStatus) {
		summary.Type = r.attribute(summary.Attribute, summary.Type)
	})
	of(whole, func(r *redactor, consumer *resourceapi.ResourceClaimConsumerReference) {
		consumer.Name = r.swap(consumerKind(consumer.Resource), consumer.Name)
		consumer.UID = types.UID(r.swap(tableUID, string(consumer.UID)))
	})
	of(whole, func(r *redactor, address *corev1.NodeAddress) {
		table := tableIP
		if address.Type == corev1.NodeHostName {
			table = tableNode
		}
		address.Address = r.swap(table, address.Address)
	})
	of(whole, func(r *redactor, requirement *metav1.LabelSelectorRequirement) {
		r.labelValues(requirement.Key, requirement.Values)
	})
	of(whole, func(r *redactor, requirement *corev1.TopologySelectorLabelRequirement) {
		r.labelValues(requirement.Key, requirement.Values)
	})
	return whole
}

func of[T any](whole map[reflect.Type]func(*redactor, any), redact func(*redactor, *T)) {
	whole[reflect.TypeFor[T]()] = func(r *redactor, v any) {
		if value, ok := v.(*T); ok {
			redact(r, value)
		}
	}
}

// consumerKind returns the table for a plural resource name.
func consumerKind(resource string) string {
	switch resource {
	case "pods":
		return "Pod"
	case "podgroups":
		return "PodGroup"
	default:
		return strings.TrimSuffix(resource, "s")
	}
}

// volumeClaim redacts the metadata of a claim. The claim of an ephemeral volume is found by the
// names of pod and volume.
func (r *redactor) volumeClaim(claim *corev1.PersistentVolumeClaim) {
	name, owner := claim.Name, metav1.GetControllerOfNoCopy(claim)
	ephemeral := owner != nil && owner.Kind == "Pod" && strings.HasPrefix(name, owner.Name+"-")
	if ephemeral {
		name = r.swap("Pod", owner.Name) + "-" + r.swap(tableVolume, strings.TrimPrefix(name, owner.Name+"-"))
	}
	r.meta(&claim.ObjectMeta, "PersistentVolumeClaim")
	if ephemeral {
		claim.Name = name
	}
}

// quantities replaces the StorageClasses in names of resources.
func (r *redactor) quantities(list corev1.ResourceList) {
	const suffix = ".storageclass.storage.k8s.io/"
	for name, quantity := range maps.Clone(list) {
		class, resource, found := strings.Cut(string(name), suffix)
		if !found {
			continue
		}
		pseudonym := r.swap(tableStorageClass, class)
		if r.stage == rewrite {
			delete(list, name)
			list[corev1.ResourceName(pseudonym+suffix+resource)] = quantity
		}
	}
}

// claimOfPod redacts "claim:POD_CLAIM/REQUEST".
func (r *redactor) claimOfPod(name string) string {
	claim, ok := strings.CutPrefix(name, "claim:")
	if !ok {
		return name
	}
	claim, request, hasRequest := strings.Cut(claim, "/")
	claim = "claim:" + r.swap(tablePodClaim, claim)
	if hasRequest {
		claim += "/" + request
	}
	return claim
}

// deviceInPool redacts "DRIVER/POOL/DEVICE".
func (r *redactor) deviceInPool(id string) string {
	parts := strings.Split(id, "/")
	if len(parts) != 3 {
		return r.text(id)
	}
	return parts[0] + "/" + r.swap(tableNode, parts[1]) + "/" + r.device(parts[2])
}

// eventMessage redacts what an event says. Names of the claims in a pod are no
// names in other texts: they are often plain words. The resourceclaim
// controller begins with one.
func (r *redactor) eventMessage(message string) string {
	const before = "PodResourceClaim "
	rest, found := strings.CutPrefix(message, before)
	if name, said, complete := strings.Cut(rest, ": "); found && complete {
		return before + r.swap(tablePodClaim, name) + ": " + r.text(said)
	}
	return r.text(message)
}

func (r *redactor) scheduler(name string) string {
	if name == corev1.DefaultSchedulerName {
		return name
	}
	return r.swap("Scheduler", name)
}
