// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// Object names an object for edits and evidence: "Kind/namespace/name", or
// "Kind/name" for what has no namespace.
func Object(kind, namespace, name string) string {
	if namespace == "" {
		return kind + "/" + name
	}
	return kind + "/" + namespace + "/" + name
}

// PodObject names a pod as [Object] does.
func PodObject(pod *corev1.Pod) string { return Object(api.KindPod, pod.Namespace, pod.Name) }

// ClaimObject names a claim as [Object] does.
func ClaimObject(claim *resourceapi.ResourceClaim) string {
	return Object(api.KindClaim, claim.Namespace, claim.Name)
}

// ParseObject takes a name that [Object] made apart.
func ParseObject(text string) (kind, namespace, name string) {
	kind, name, _ = strings.Cut(text, "/")
	if before, after, ok := strings.Cut(name, "/"); ok {
		namespace, name = before, after
	}
	return kind, namespace, name
}
