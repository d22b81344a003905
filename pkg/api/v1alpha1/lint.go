// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LintReport lists the findings of "lint" in manifests.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type LintReport struct {
	metav1.TypeMeta `json:",inline"`

	// Files counts the files that were read.
	Files int `json:"files"`
	// Objects counts the objects in them that were checked, Skipped the others.
	Objects int `json:"objects"`
	Skipped int `json:"skipped,omitempty"`
	// Source names the cluster that they were checked against in a few words; it is left
	// out if there was none.
	Source string `json:"source,omitempty"`
	// Checks lists the codes of the checks that were made, in their order.
	Checks []string `json:"checks"`
	// NotChecked lists the codes of the chosen checks that take a cluster, if there is none.
	NotChecked []string `json:"notChecked,omitempty"`
	// Counts has the findings by severity.
	Counts FindingCounts `json:"counts"`
	// Findings are in the order of the files. Each has the file, line and column of its
	// field.
	Findings []Finding `json:"findings"`
	// Ignored counts the findings that annotations of their objects suppress.
	Ignored int `json:"ignored,omitempty"`
}
