// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	storageapi "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Strip removes from an object, in place, what nothing in this program reads:
// the history of its fields, what containers run, pictures of images. That is
// most of a large cluster's bytes. What decides about scheduling stays.
func Strip(object metav1.Object) {
	object.SetManagedFields(nil)
	object.SetSelfLink("")
	stripImpossible(object)
	if annotations := object.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		noteDropped(object, annotations[corev1.LastAppliedConfigAnnotation])
		annotations = object.GetAnnotations()
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		if len(annotations) == 0 {
			object.SetAnnotations(nil)
		}
	}
	stripVolumeObject(object)
	switch object := object.(type) {
	case *corev1.Node:
		object.Status.Images = nil
		object.Status.VolumesAttached = nil
		object.Status.VolumesInUse = nil
	case *corev1.Pod:
		noteComponent(object)
		stripPodSpec(&object.Spec)
		stripPodStatus(&object.Status)
	case *snapshot.Workload:
		notePlugin(object)
		stripPodSpec(&object.Template.Spec)
	case *resourceapi.ResourceClaim:
		for i := range object.Spec.Devices.Config {
			canonicalOpaque(object.Spec.Devices.Config[i].Opaque)
		}
		if object.Status.Allocation != nil {
			for i := range object.Status.Allocation.Devices.Config {
				canonicalOpaque(object.Status.Allocation.Devices.Config[i].Opaque)
			}
		}
		for i := range object.Status.Devices {
			if data := object.Status.Devices[i].Data; data != nil {
				canonicalRaw(data)
			}
		}
	case *resourceapi.ResourceClaimTemplate:
		for i := range object.Spec.Spec.Devices.Config {
			canonicalOpaque(object.Spec.Spec.Devices.Config[i].Opaque)
		}
	case *resourceapi.DeviceClass:
		for i := range object.Spec.Config {
			canonicalOpaque(object.Spec.Config[i].Opaque)
		}
	}
}

func stripPodSpec(spec *corev1.PodSpec) {
	for i := range spec.InitContainers {
		stripContainer(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		stripContainer(&spec.Containers[i])
	}
	spec.EphemeralContainers = nil
	spec.SecurityContext = nil
	spec.ImagePullSecrets = nil
	spec.HostAliases = nil
	spec.DNSConfig = nil
	for i := range spec.Volumes {
		stripVolume(&spec.Volumes[i])
	}
}

func stripContainer(c *corev1.Container) {
	*c = corev1.Container{
		Name:          c.Name,
		Image:         c.Image,
		Ports:         c.Ports,
		Resources:     c.Resources,
		RestartPolicy: c.RestartPolicy,
	}
}

// stripVolume keeps the name and kind of a volume, and of a claim which one.
func stripVolume(v *corev1.Volume) {
	source := corev1.VolumeSource{
		HostPath:              empty(v.HostPath),
		EmptyDir:              empty(v.EmptyDir),
		NFS:                   empty(v.NFS),
		DownwardAPI:           empty(v.DownwardAPI),
		Projected:             empty(v.Projected),
		Image:                 empty(v.Image),
		PersistentVolumeClaim: v.PersistentVolumeClaim,
	}
	if v.ConfigMap != nil {
		source.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: v.ConfigMap.LocalObjectReference}
	}
	if v.Secret != nil {
		source.Secret = &corev1.SecretVolumeSource{SecretName: v.Secret.SecretName}
	}
	if v.CSI != nil {
		source.CSI = &corev1.CSIVolumeSource{Driver: v.CSI.Driver}
	}
	if v.Ephemeral != nil {
		source.Ephemeral = v.Ephemeral
	}
	*v = corev1.Volume{Name: v.Name, VolumeSource: source}
}

// empty keeps that something is set and drops what it is set to.
func empty[T any](pointer *T) *T {
	if pointer == nil {
		return nil
	}
	return new(T)
}

func stripPodStatus(status *corev1.PodStatus) {
	status.EphemeralContainerStatuses = nil
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range list {
			list[i].ImageID = ""
			list[i].ContainerID = ""
			list[i].VolumeMounts = nil
			list[i].User = nil
		}
	}
}

func canonicalOpaque(opaque *resourceapi.OpaqueDeviceConfiguration) {
	if opaque != nil {
		canonicalRaw(&opaque.Parameters)
	}
}

// canonicalRaw writes embedded JSON in one form, whatever the file had, so
// that equal objects are equal.
func canonicalRaw(raw *runtime.RawExtension) {
	var value any
	if len(raw.Raw) == 0 || kjson.UnmarshalCaseSensitivePreserveInts(raw.Raw, &value) != nil {
		return
	}
	if canonical, err := json.Marshal(value); err == nil {
		raw.Raw = canonical
	}
}

// unknownName stands for what cannot be the name of a kind, a resource or an
// object.
const unknownName = "unknown"

// stripImpossible removes from an object references that refer to nothing. The
// API server stores them, since it does not look at the form of these names.
func stripImpossible(object metav1.Object) {
	owners := object.GetOwnerReferences()
	impossible := func(owner metav1.OwnerReference) bool { return Owner(&owner, 0) != nil }
	if slices.ContainsFunc(owners, impossible) {
		object.SetOwnerReferences(slices.DeleteFunc(slices.Clone(owners), impossible))
	}
	switch object := object.(type) {
	case *resourceapi.ResourceClaim:
		for i := range object.Status.ReservedFor {
			// It stays: somebody has the claim.
			consumer := &object.Status.ReservedFor[i]
			if Consumer(consumer, i) != nil {
				consumer.APIGroup, consumer.Resource, consumer.Name = "", unknownName, unknownName
			}
		}
	case *corev1.Event:
		if Reference(&object.InvolvedObject, "") != nil {
			object.InvolvedObject = corev1.ObjectReference{Kind: unknownName, Name: unknownName}
		}
	}
}

// stripVolumeObject removes what decides nothing about where a pod can run.
func stripVolumeObject(object metav1.Object) {
	switch object := object.(type) {
	case *corev1.PersistentVolumeClaim:
		object.Spec.DataSource, object.Spec.DataSourceRef = nil, nil
		object.Status.Conditions = nil
	case *corev1.PersistentVolume:
		var csi *corev1.CSIPersistentVolumeSource
		if object.Spec.CSI != nil {
			csi = &corev1.CSIPersistentVolumeSource{Driver: object.Spec.CSI.Driver}
		}
		object.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: csi}
		object.Spec.MountOptions = nil
	case *storageapi.StorageClass:
		object.Parameters, object.MountOptions = nil, nil
	}
}
