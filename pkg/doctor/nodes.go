// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	facts "github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func nodeChecks() []Check {
	return []Check{{
		Code: "DRA1701", Title: "problem on a node", Severity: api.SeverityError,
		About:  "With --node-report, what 'kubectl dra node-probe' has found on a node: a GPU, a driver's socket, a checkpoint, a CDI file, a pod or the health of a device is not in order.",
		Advice: "'kubectl dra node-probe' on the node shows all of the part.",
		Flag:   "node-report",
		given:  func(opts *Options) bool { return len(opts.NodeReports) > 0 },
		find:   findNodeProblems,
	}, {
		Code: codeStopped, Title: "node with devices that is not ready", Severity: api.SeverityError, Needs: []string{snapshot.ResourceNodes, snapshot.ResourceSlices},
		About:  "A node with devices is not ready, mostly because its kubelet stopped. Pods there are neither started nor stopped, and their devices neither prepared nor unprepared. The taint of the node that keeps other pods away goes when the kubelet reports again.",
		Advice: "Look at the kubelet and the container runtime of the node. While the node is away, its pods may still run: do not delete them by force, or their devices may be used twice.",
		find:   findStoppedNodes,
	}}
}

// findStoppedNodes returns nodes that are not ready and have published or allocated
// devices.
func findStoppedNodes(_ context.Context, in *cluster) ([]api.Finding, error) {
	devices := map[string]int{}
	for _, d := range in.cluster.Pools.Devices() {
		node, _ := inventory.DeviceScope(&d)
		devices[node]++
	}
	claims := map[string]int{}
	for _, claim := range in.cluster.Snapshot.Claims {
		claims[facts.AllocatedNode(claim.Status.Allocation)]++
	}
	var found []api.Finding
	for _, node := range in.cluster.Snapshot.Nodes {
		trouble := lifecycle.NotReady(in.cluster.Snapshot, node)
		if trouble == nil || devices[node.Name]+claims[node.Name] == 0 {
			continue
		}
		trouble.Reason += fmt.Sprintf("; it has %s, and %s %s allocated there", english.Count(devices[node.Name], "device"), english.Count(claims[node.Name], "claim"), english.Plural(claims[node.Name], "is", "are"))
		f := said(trouble, nil, api.RefTo(api.KindNode, node))
		f.Remedy.Commands = []string{"kubectl describe " + shell.KubectlObjects("node", "", node.Name)}
		found = append(found, f)
	}
	return found, nil
}

// findNodeProblems repeats the problems in node-probe's reports.
func findNodeProblems(_ context.Context, in *cluster) ([]api.Finding, error) {
	var found []api.Finding
	for _, report := range in.opts.NodeReports {
		name := cmp.Or(report.Node, "of the report")
		for _, section := range report.Sections() {
			for i := range section.Checks {
				check := &section.Checks[i]
				if check.State != node.Problem {
					continue
				}
				f := api.Finding{
					Message:  fmt.Sprintf("node %s, %s: %s", name, check.Name, check.Message),
					Evidence: []api.Evidence{{Object: api.Ref(api.KindNode, "", name), Path: check.Path, Found: cmp.Or(check.Found, check.Message), Required: check.Required}},
					Remedy:   &api.NextStep{Actor: api.ActorAdmin, Text: "this shows all of the part of the node", Commands: []string{probeCommand(section.Name)}},
				}
				if report.Node != "" {
					f.Objects = []api.ObjectRef{api.Ref(api.KindNode, "", report.Node)}
				}
				found = append(found, f)
			}
		}
	}
	return found, nil
}

// probeCommand returns the command that shows a part of a node, to be run on it.
func probeCommand(section string) string {
	if section == "host" {
		return "kubectl dra node-probe"
	}
	return "kubectl dra node-probe " + section
}
