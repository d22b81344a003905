// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExplanationList is printed when several targets were asked for.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ExplanationList struct {
	metav1.TypeMeta `json:",inline"`

	// Items has one explanation for each target, in the order asked.
	Items []Explanation `json:"items"`
}
