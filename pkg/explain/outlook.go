// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/advice"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// nearNodes is how many of the most promising nodes the outlook looks at first.
const nearNodes = 4

// wantsOutlook reports whether it is worth saying under which conditions it would fit.
func (x *builder) wantsOutlook() bool {
	return x.out.Verdict == api.DoesNotFit && (!x.target.VerdictOnly || x.target.WithOutlook) && x.target.Device == nil &&
		x.Reach.Pools != nil && (x.Pod == nil || snapshot.Waits(x.Pod))
}

// beginOutlook begins to find the outlook beside what is done meanwhile.
func (x *builder) beginOutlook() {
	if x.outlook != nil || !x.wantsOutlook() {
		return
	}
	c := &advice.OutlookCase{
		Question: x.Question, Nodes: x.out.NodeCount, OneNode: x.target.Only != nil,
		Contents: x.contents, Confirmer: x.confirmer,
		Ask: func(facts *cluster.Cluster) (*funnel.Question, error) {
			return x.again(advice.WhatIf{Cluster: facts, FindAgain: true})
		},
	}
	if x.target.Workload {
		c.Members = x.target.Users
	}
	c.Begin()
	x.outlook = c
}

// findOutlook finds out under which conditions it would fit.
func (x *builder) findOutlook(ctx context.Context) error {
	if !x.wantsOutlook() {
		return nil
	}
	x.beginOutlook()
	x.outlook.Near = promising(x.out.Nodes)
	var err error
	x.out.Outlook, err = x.outlook.Find(ctx)
	if x.out.Outlook != nil && x.replaced != nil {
		x.replaced.outlook(x.out.Outlook)
	}
	return err
}

// promising names one node of each of the first groups.
func promising(groups []api.NodeGroup) []string {
	var names []string
	for i := range groups[:min(len(groups), nearNodes)] {
		names = append(names, groups[i].Names[0])
	}
	return names
}

// When is the condition under which it fits, empty where there is no outlook.
func When(e *api.Explanation) api.Condition {
	if e.Outlook == nil {
		return ""
	}
	return e.Outlook.Fits
}
