// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Diagnosis lists the findings of "doctor" in a cluster.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Diagnosis struct {
	metav1.TypeMeta `json:",inline"`

	// Source names the cluster or files in a few words.
	Source string `json:"source"`
	// Namespace limits the findings to its objects, cluster-wide objects and drivers; it is
	// left out for all namespaces.
	Namespace string `json:"namespace,omitempty"`
	// KubernetesVersion is the version of the API server, empty if it is not known.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Checks lists the codes of the checks that were made, in their order.
	Checks []string `json:"checks"`
	// Counts has the findings by severity.
	Counts FindingCounts `json:"counts"`
	// Findings are in the order of the checks.
	Findings []Finding `json:"findings"`
	// Ignored counts the findings that annotations of their objects suppress.
	Ignored int `json:"ignored,omitempty"`
}

// FindingCounts counts findings by severity.
type FindingCounts struct {
	// Error counts the findings of severity Error.
	Error int `json:"error"`
	// Warning counts the findings of severity Warning.
	Warning int `json:"warning"`
	// Info counts the findings of severity Info.
	Info int `json:"info"`
	// Unknown counts the checks that could not be made.
	Unknown int `json:"unknown"`
}

// Finding is one finding of a check.
type Finding struct {
	// Code is the code of the check, such as "DRA1201". It is stable; docs/checks has a
	// page for each.
	Code string `json:"code"`
	// Title names the problem in a few words.
	Title string `json:"title"`
	// Severity is the severity of the finding.
	Severity Severity `json:"severity"`
	// Objects are the objects of the finding, at most ten. ObjectCount counts all.
	Objects     []ObjectRef `json:"objects,omitempty"`
	ObjectCount int         `json:"objectCount,omitempty"`
	// File is the file as it was named to the program; empty for a finding in a cluster.
	File string `json:"file,omitempty"`
	// Line is the line of the file, counted from 1; it is left out if it is not known.
	Line int `json:"line,omitempty"`
	// Column is the position in the line, counted from 1.
	Column int `json:"column,omitempty"`
	// Message describes the finding in one sentence.
	Message string `json:"message"`
	// Evidence proves it.
	Evidence []Evidence `json:"evidence,omitempty"`
	// Remedy is the next step.
	Remedy *NextStep `json:"remedy,omitempty"`
	// Fix is the correction of the object in the file, if there is only one.
	Fix []Edit `json:"fix,omitempty"`
}

// Severity is the severity of a finding.
type Severity string

const (
	// SeverityError means that something does not work.
	SeverityError Severity = "Error"
	// SeverityWarning means that something will not work for some, or hides something.
	SeverityWarning Severity = "Warning"
	// SeverityInfo means that something is worth knowing.
	SeverityInfo Severity = "Info"
	// SeverityUnknown means that a check could not be made.
	SeverityUnknown Severity = "Unknown"
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
