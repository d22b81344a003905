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

// Finding is one thing that a check found.
type Finding struct {
	// Code is the code of the check, such as "DRA1201". It is stable; docs/checks has a
	// page for each.
	Code string `json:"code"`
	// Title says in a few words what the check looks for.
	Title string `json:"title"`
	// Severity is how bad it is.
	Severity Severity `json:"severity"`
	// Objects are the objects of the finding, as "Kind/name" or "Kind/namespace/name": at
	// most ten. ObjectCount counts all.
	Objects     []string `json:"objects,omitempty"`
	ObjectCount int      `json:"objectCount,omitempty"`
	// File is where it was found, as it was named to the program; empty for a finding
	// in a cluster.
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
	// Fix is the change of the object in the file that puts it right, where there is
	// only one.
	Fix []Edit `json:"fix,omitempty"`
}

// Severity is how bad a finding is.
type Severity string

const (
	// SeverityError is something that does not work.
	SeverityError Severity = "Error"
	// SeverityWarning is something that will not work for some, or hides something.
	SeverityWarning Severity = "Warning"
	// SeverityInfo is something worth knowing.
	SeverityInfo Severity = "Info"
	// SeverityUnknown is a check that could not be made.
	SeverityUnknown Severity = "Unknown"
)
