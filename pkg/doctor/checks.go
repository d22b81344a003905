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
		{Number: "10", Title: "API and versions"},
		{Number: "11", Title: "Drivers"},
		{Number: "12", Title: "Slices and pools"},
		{Number: "13", Title: "Classes"},
		{Number: "14", Title: "Claims"},
		{Number: "15", Title: "Taints"},
		{Number: "16", Title: "Waiting pods"},
		{Number: "17", Title: "Nodes"},
		{Number: "19", Title: "Known bugs of Kubernetes"},
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
