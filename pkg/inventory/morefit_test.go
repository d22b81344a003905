// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// TestMoreFitForOrdinaryRequests leaves out tainted devices, and numbers that depend on
// unknown nodes.
func TestMoreFitForOrdinaryRequests(t *testing.T) {
	local := partitionedPool(true)
	everywhere := strings.ReplaceAll(local, "nodeName: a", "allNodes: true")
	noNodes := func(s *snapshot.Snapshot) {
		s.Nodes, s.Gaps = nil, append(slices.Clone(s.Gaps), snapshot.Gap{Resource: snapshot.ResourceNodes})
	}
	for name, test := range map[string]struct {
		documents string
		change    func(*snapshot.Snapshot)
		want      string
	}{
		"all":                 {local, nil, "7g 2, 3g 4, 1g 12"},
		"some tainted":        {strings.ReplaceAll(local, "- name: c0-u1-0\n", "- name: c0-u1-0\n    taints: [{key: broken, effect: NoSchedule}]\n"), nil, "7g 2, 3g 4, 1g 11"},
		"one card tainted":    {strings.ReplaceAll(local, "- name: c0-", "- taints: [{key: broken, effect: NoExecute}]\n    name: c0-"), nil, "7g 1, 3g 2, 1g 6"},
		"told only":           {strings.ReplaceAll(local, "- name: c0-", "- taints: [{key: broken, effect: None}]\n    name: c0-"), nil, "7g 2, 3g 4, 1g 12"},
		"nodes hidden":        {everywhere, noNodes, "7g unknown, 3g unknown, 1g unknown"},
		"own node hidden":     {local, noNodes, "7g 2, 3g 4, 1g 12"},
		"node does not exist": {strings.ReplaceAll(local, "nodeName: a", "nodeName: z"), nil, "7g 0, 3g 0, 1g 0"},
		"rules hidden": {local, func(s *snapshot.Snapshot) {
			s.Gaps = append(slices.Clone(s.Gaps), snapshot.Gap{Resource: snapshot.ResourceTaintRules})
		}, "7g ≤2, 3g ≤4, 1g ≤12"},
	} {
		t.Run(name, func(t *testing.T) {
			snap := *take(t, test.documents+"---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaimList, items: []}\n").cluster.Snapshot
			snap.Gaps = slices.DeleteFunc(slices.Clone(snap.Gaps), func(g snapshot.Gap) bool {
				return g.Resource == snapshot.ResourceTaintRules || g.Resource == snapshot.ResourceClaims
			})
			if test.change != nil {
				test.change(&snap)
			}
			var got []string
			for _, p := range poolsOf(t, takeOf(t, &snap))["a"].Partitions {
				text := "unknown"
				if p.MoreFit != nil {
					text = fmt.Sprint(*p.MoreFit)
				}
				if p.MoreFitIsUpperBound {
					text = "≤" + text
				}
				got = append(got, p.Type+" "+text)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
