// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/advice"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// nearNodes is how many of the most promising nodes the outlook looks at first.
const nearNodes = 4

// wantsOutlook reports whether it is worth saying under which conditions it would fit.
func (x *builder) wantsOutlook() bool {
	return x.out.Verdict == api.DoesNotFit && x.depth >= withOutlook && x.Target.Device == nil &&
		x.Reach.Pools != nil && (x.Pod == nil || snapshot.Waits(x.Pod))
}

// beginOutlook begins to find the outlook in the background.
func (x *builder) beginOutlook() {
	if x.outlook != nil || !x.wantsOutlook() {
		return
	}
	c := &advice.OutlookCase{
		Verdict: x.Verdict, Nodes: x.out.NodeCount, OneNode: x.Target.Only != nil,
		Contents: x.contents, Confirmer: x.confirmer,
	}
	if x.Target.Workload {
		c.Members = x.Target.Users
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

// When returns the condition under which it fits, empty where there is no outlook.
func When(e *api.Explanation) api.Condition {
	if e.Outlook == nil {
		return ""
	}
	return e.Outlook.Fits
}
