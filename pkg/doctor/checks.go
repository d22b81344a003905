// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/checks"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
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

// RepeatsOf returns what says the same as the findings of a code.
func RepeatsOf(code string) Repeats {
	all := Checks()
	if i := slices.IndexFunc(all, func(c Check) bool { return c.Code == code }); i >= 0 {
		return all[i].Repeats
	}
	return RepeatsNothing
}

func waitingChecks() []Check {
	needs := waitingNeeds()
	checks := []Check{
		{
			Code: codeNever, Title: "pod that can never fit", Severity: api.SeverityError, Needs: needs, Repeats: RepeatsPods,
			About:  "A pod waits for devices that the nodes of the cluster could not give it if all other claims were released. Waiting does not help.",
			Advice: "'kubectl dra why' says which conditions conflict, and which changes make the pod fit.",
			find:   waitingCheck(neverFits),
		},
		{
			Code: codeFails, Title: "pod whose scheduling fails", Severity: api.SeverityError, Needs: needs, Repeats: RepeatsPods,
			About:  "The scheduler ends each attempt for a pod with an error before it has looked at all nodes: a selector fails, a class or a feature gate is missing.",
			Advice: "'kubectl dra why' names the error and what causes it.",
			find:   waitingCheck(failsToSchedule),
		},
		{
			Code: "DRA1603", Title: "pod that has devices and does not work", Severity: api.SeverityError, Needs: []string{snapshot.ResourcePods, snapshot.ResourceClaims}, Repeats: RepeatsPods,
			About:  "A pod has its devices allocated and is stuck after that: the driver does not prepare them, the runtime does not inject them, a taint is about to evict it.",
			Advice: "Follow the remedy. 'kubectl dra why' names the stage, the evidence and all that can be done.",
			find:   findBlockedPods,
		},
		{
			Code: "DRA1605", Title: "pods that wait for the devices of one claim", Severity: api.SeverityInfo, Needs: needs, Repeats: RepeatsPods,
			About:  "Several pods would fit if one claim were released, and that claim alone. They get the devices one after another.",
			Advice: "'kubectl dra tree claim/NAME' lists the pods that use the claim. It is released when the last of them ends.",
			find:   findQueues,
		},
		{
			Code: "DRA1608", Title: "workload whose pods the API server refuses", Severity: api.SeverityError, Needs: []string{snapshot.ResourceEvents}, Repeats: RepeatsPods,
			About:  "The controller of a workload with devices cannot create its pods: a ServiceAccount or a PriorityClass is missing, a quota or a LimitRange does not allow them, or an admission webhook or policy refuses them. There is no pod that waits, so that nothing else shows it.",
			Advice: "The message is that of the API server. 'kubectl dra why' says who can act, with the commands.",
			find:   findRefusedWorkloads,
		},
		{
			Code: codeUnheard, Title: "pods that no scheduler has looked at", Severity: api.SeverityError, Needs: needs,
			About:  "Pods fit, have waited for more than a minute, and have no condition PodScheduled: kube-scheduler has not tried to place them, nor any pod that was created after the first of them.",
			Advice: "Look at the pods, the lease and the log of kube-scheduler.",
			find:   findUnheard,
		},
	}
	checks = append(checks, quotaChecks()...)
	slices.SortFunc(checks, func(a, b Check) int { return strings.Compare(a.Code, b.Code) })
	return checks
}
