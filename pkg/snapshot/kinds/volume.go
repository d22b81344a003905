// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	corev1 "k8s.io/api/core/v1"
	storageapi "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func redactedVolumes() []Redaction {
	return []Redaction{
		redacted[corev1.PersistentVolumeClaimSpec](`
			volumeName                 name PersistentVolume
			storageClassName           name StorageClass
			volumeAttributesClassName  drop`),
		redacted[corev1.PersistentVolumeClaimStatus](`
			currentVolumeAttributesClassName  drop
			modifyVolumeStatus                drop
			healthStatus                      drop`),
		redacted[corev1.PersistentVolume](`metadata  meta PersistentVolume`),
		redacted[corev1.PersistentVolumeSpec](`
			storageClassName           name StorageClass
			volumeAttributesClassName  drop`),
		redacted[corev1.PersistentVolumeStatus](`message  text`),
		redacted[corev1.CSIPersistentVolumeSource](`driver  keep`),
		redacted[storageapi.StorageClass](`
			metadata     meta StorageClass
			provisioner  keep`),
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
