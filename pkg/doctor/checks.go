// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"

	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
)

// Groups lists them in their order.
func Groups() []checks.Group {
	return []checks.Group{
		{"10", "API and versions"},
		{"11", "Drivers"},
		{"12", "Slices and pools"},
		{"13", "Classes"},
		{"14", "Claims"},
		{"15", "Taints"},
		{"16", "Waiting pods"},
		{"17", "Nodes"},
		{"19", "Known bugs of Kubernetes"},
	}
}

// Checks lists all checks by their codes.
func Checks() []Check {
	return slices.Concat(versionChecks(), probeChecks(), driverChecks(), poolChecks(), classChecks(), claimChecks(), taintChecks(), waitingChecks(), nodeChecks(), bugChecks())
}

// Codes lists the codes of all checks.
func Codes() []string {
	var codes []string
	for _, check := range Checks() {
		codes = append(codes, check.Code)
	}
	return codes
}
