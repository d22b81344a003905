// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// Object names an object for edits and evidence: "Kind/namespace/name", or "Kind/name"
// without a namespace.
func Object(kind, namespace, name string) string {
	if namespace == "" {
		return kind + "/" + name
	}
	return kind + "/" + namespace + "/" + name
}

// PodObject is like [Object], for a pod.
func PodObject(pod *corev1.Pod) string { return Object(api.KindPod, pod.Namespace, pod.Name) }

// ClaimObject is like [Object], for a claim.
func ClaimObject(claim *resourceapi.ResourceClaim) string {
	return Object(api.KindClaim, claim.Namespace, claim.Name)
}

// ParseObject splits a name that [Object] made.
func ParseObject(text string) (kind, namespace, name string) {
	kind, name, _ = strings.Cut(text, "/")
	if before, after, ok := strings.Cut(name, "/"); ok {
		namespace, name = before, after
	}
	return kind, namespace, name
}
