// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"

	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
)

// Numbers of groups of checks of cluster components.
const (
	groupVersions = "10"
	groupDrivers  = "11"
)

// servingAll returns the groups whose findings matter in each namespace, wherever the pods
// of the component are.
func servingAll() []string { return []string{groupVersions, groupDrivers} }

// Groups lists the groups in their order.
func Groups() []checks.Group {
	return []checks.Group{
		{Number: groupVersions, Title: "API and versions"},
		{Number: groupDrivers, Title: "Drivers"},
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
	return slices.Concat(versionChecks(), probeChecks(), servedChecks(), componentChecks(), []Check{controllerCheck()}, driverChecks(), poolChecks(), storedChecks(), pluginChecks(), []Check{partsCheck()}, classChecks(), claimChecks(), taintChecks(), waitingChecks(), nodeChecks(), bugChecks())
}

// Descriptions lists the descriptions of all checks.
func Descriptions() []checks.Description {
	var list []checks.Description
	for _, check := range Checks() {
		list = append(list, checks.Description{Code: check.Code, Title: check.Title, Severity: check.Severity, About: check.About, Advice: check.Advice, Needs: check.Needs})
	}
	return list
}
