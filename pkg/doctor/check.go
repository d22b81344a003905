// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"slices"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
)

// Check is one thing that can be wrong with a cluster.
type Check struct {
	// Code is stable: "DRA", the number of the group and that of the check in it.
	Code string
	// Title says in a few words what is wrong.
	Title string
	// Severity is that of its findings.
	Severity api.Severity
	// Needs are the resources without which the check cannot be made, by the names
	// that gaps have.
	Needs []string
	// About says what it means, Advice what can be done, both for the documents.
	About, Advice string

	find func(context.Context, *cluster) ([]api.Finding, error)
}

// Group is what checks are about.
type Group struct {
	// Number is the one that the codes of its checks begin with: 12 of DRA1201.
	Number string
	// Title is what the checks are about.
	Title string
}

// Groups lists them in their order.
func Groups() []Group {
	return []Group{
		{"10", "API and versions"},
		{"11", "Drivers"},
		{"12", "Slices and pools"},
		{"13", "Classes"},
		{"14", "Claims"},
		{"15", "Taints"},
		{"16", "Waiting pods"},
		{"19", "Known bugs of Kubernetes"},
	}
}

// Checks lists all checks by their codes.
func Checks() []Check {
	return slices.Concat(versionChecks(), driverChecks(), poolChecks(), classChecks(), claimChecks(), taintChecks(), waitingChecks(), bugChecks())
}

// Codes lists the codes of all checks.
func Codes() []string {
	var codes []string
	for _, check := range Checks() {
		codes = append(codes, check.Code)
	}
	return codes
}
