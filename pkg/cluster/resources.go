// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// extendedFromDRA lists the extended resources that the scheduler has given a pod from
// devices. If it does so for one container, it does so for all.
func extendedFromDRA(pod *corev1.Pod) []corev1.ResourceName {
	if pod.Status.ExtendedResourceClaimStatus == nil {
		return nil
	}
	var names []corev1.ResourceName
	for _, mapping := range pod.Status.ExtendedResourceClaimStatus.RequestMappings {
		if name := corev1.ResourceName(mapping.ResourceName); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// isDRAExtendedResource reports whether the name of a resource can stand for a
// DeviceClass: an extended resource, or the implicit name of a class.
func isDRAExtendedResource(name corev1.ResourceName) bool {
	return IsExtendedResource(name) || strings.HasPrefix(string(name), resourceapi.ResourceDeviceClassPrefix)
}

// IsExtendedResource reports whether a name is an extended resource, as
// IsExtendedResourceName of pkg/apis/core/v1/helper of Kubernetes does.
func IsExtendedResource(name corev1.ResourceName) bool {
	text := string(name)
	if !strings.Contains(text, "/") || strings.Contains(text, corev1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+text)) == 0
}

// isScalarResource reports whether the scheduler counts a resource as a whole
// number besides cpu, memory and ephemeral storage.
func isScalarResource(name corev1.ResourceName) bool {
	text := string(name)
	return IsExtendedResource(name) ||
		strings.HasPrefix(text, corev1.ResourceHugePagesPrefix) ||
		strings.Contains(text, corev1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(text, corev1.ResourceAttachableVolumesPrefix)
}
