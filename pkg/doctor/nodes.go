// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/nodeprobe/node"
)

func nodeChecks() []Check {
	return []Check{{
		Code: "DRA1701", Title: "problem on a node", Severity: api.SeverityError,
		About:  "With --node-report, what 'kubectl dra node-probe' has found on a node: a GPU, a driver's socket, a checkpoint, a CDI file, a pod or the health of a device is not in order.",
		Advice: "'kubectl dra node-probe' on the node shows all of the part.",
		Flag:   "node-report",
		given:  func(opts *Options) bool { return len(opts.NodeReports) > 0 },
		find:   findNodeProblems,
	}}
}

// findNodeProblems repeats what node-probe has found on nodes.
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
					Evidence: []api.Evidence{{Object: nodeObject(name), Path: check.Path, Found: cmp.Or(check.Found, check.Message), Required: check.Required}},
					Remedy:   &api.NextStep{Actor: api.ActorAdmin, Text: "see all of this part of the node", Commands: []string{probeCommand(section.Name)}},
				}
				if report.Node != "" {
					f.Objects = []string{nodeObject(report.Node)}
				}
				found = append(found, f)
			}
		}
	}
	return found, nil
}

// probeCommand shows all of a part of a node, to be run on it.
func probeCommand(section string) string {
	if section == "host" {
		return "kubectl dra node-probe"
	}
	return "kubectl dra node-probe " + section
}
