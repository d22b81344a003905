// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// anyManifest has the fields of objects of all kinds, and of most kinds of jobs.
type anyManifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		snapshot.OutlineSpec `json:",inline"`
		// RunPolicy has the field in the jobs of Kubeflow.
		RunPolicy struct {
			Suspend bool `json:"suspend,omitempty"`
		} `json:"runPolicy"`
	} `json:"spec"`
	Status snapshot.OutlineStatus `json:"status"`
}

// DecodeOutline decodes an object of any kind as far as it says whether pods are
// created, and nil if its fields mean something else.
func DecodeOutline(data []byte, apiVersion, kind string) *snapshot.Outline {
	manifest, err := DecodeAs[anyManifest](data)
	if err != nil {
		// A status of another form says nothing here.
		header, err := DecodeAs[metav1.PartialObjectMetadata](data)
		if err != nil {
			return nil
		}
		manifest = &anyManifest{ObjectMeta: header.ObjectMeta}
	}
	outline := &snapshot.Outline{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: manifest.Namespace, Name: manifest.Name, UID: manifest.UID, CreationTimestamp: manifest.CreationTimestamp,
			OwnerReferences: manifest.OwnerReferences,
		},
		Of: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}, Spec: manifest.Spec.OutlineSpec, Status: manifest.Status,
	}
	if manifest.Spec.RunPolicy.Suspend {
		outline.Spec.Suspend = true
	}
	if outline.GroupKind() != snapshot.AutoscalerKind() {
		outline.Spec.ScaleTargetRef = nil
	}
	if queue := manifest.Labels[snapshot.KueueQueueLabel]; queue != "" {
		outline.Labels = map[string]string{snapshot.KueueQueueLabel: queue}
	}
	return outline
}

// ownsPods reports whether an object of an unknown kind looks as if it owned pods: it has
// an owner itself, can be suspended, or waits for Kueue. Built-in kinds are known.
func ownsPods(group string, outline *snapshot.Outline) bool {
	if !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && !strings.HasSuffix(group, ".x-k8s.io") {
		return false
	}
	return outline.Spec.Suspend || outline.Labels[snapshot.KueueQueueLabel] != "" ||
		slices.ContainsFunc(outline.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.Controller != nil && *owner.Controller })
}
