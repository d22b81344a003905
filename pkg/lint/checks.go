// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
)

// Groups lists what checks are about, in their order.
func Groups() []checks.Group {
	return []checks.Group{
		{Number: "20", Title: "Form and versions"},
		{Number: "21", Title: "Pods and workloads"},
		{Number: "22", Title: "Claims and templates"},
		{Number: "23", Title: "CEL expressions"},
		{Number: "24", Title: "Classes, slices, taint rules and quotas"},
		{Number: "25", Title: "Against a cluster"},
	}
}

// Checks lists all checks by their codes.
func Checks() []Check {
	return slices.Concat(formChecks(), podChecks(), claimChecks(), celChecks(), adminChecks(), clusterChecks())
}

// Descriptions lists what all checks say of themselves.
func Descriptions() []checks.Description {
	var list []checks.Description
	for _, check := range Checks() {
		list = append(list, checks.Description{Code: check.Code, Title: check.Title, Severity: check.Severity, About: check.About, Advice: check.Advice})
	}
	return list
}
