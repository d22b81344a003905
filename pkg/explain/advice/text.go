// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"fmt"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
)

// conclude finds the first condition under which it fits, and says so. What is in
// the way is that on the node where only the hardware would do.
func (c *OutlookCase) conclude(out *api.Outlook, blocked []string) {
	lower := api.Prospect{Verdict: api.DoesNotFit}
	if out.LowerPrioritiesGone != nil {
		lower = *out.LowerPrioritiesGone
	}
	var more *api.NewNode
	if len(out.OneMoreNode) > 0 && out.OneMoreNode[0].Verdict == api.Fits {
		more = &out.OneMoreNode[0]
	}
	alternative := ""
	if more != nil {
		alternative = ", or on one more node like " + more.Like
	}
	never := "even with all claims released"
	if c.kept() {
		never = "even with the claims of all other pods released"
	}
	switch {
	case lower.Verdict == api.Fits:
		out.Fits = api.LowerPrioritiesGone
		out.Message = fmt.Sprintf("It fits on %s when the claims of pods of lower priority are released%s. The scheduler does not preempt pods for devices.", lower.Node, alternative)
	case out.ClaimsReleased.Verdict == api.Fits:
		out.Fits = api.ClaimsReleased
		out.Message = fmt.Sprintf("It fits on %s when claims of other pods are released%s.", out.ClaimsReleased.Node, alternative)
	case out.HardwareAlone.Verdict == api.Fits:
		out.Fits = api.HardwareAlone
		out.Message = fmt.Sprintf("Not by waiting for claims to be released. Node %s has the devices, but: %s.", out.HardwareAlone.Node, english.JoinAnd(blocked))
		if len(blocked) == 0 {
			out.Message = fmt.Sprintf("Not by waiting for claims to be released. Node %s has the devices, and other pods are in the way.", out.HardwareAlone.Node)
		}
		if more != nil {
			out.Message += fmt.Sprintf(" It fits on one more node like %s.", more.Like)
		}
	case more != nil:
		out.Fits = api.OneMoreNode
		out.Message = fmt.Sprintf("It fits on one more node like %s. On the present nodes it does not, %s.", more.Like, never)
		if out.ClaimsReleased.Verdict == api.Undetermined {
			out.Message = fmt.Sprintf("It fits on one more node like %s. On the present nodes %s.", more.Like, out.ClaimsReleased.Message)
		}
	case out.HardwareAlone.Verdict == api.Undetermined:
		out.Fits = api.ConditionUnknown
		out.Message = fmt.Sprintf("Not known. %s", c.on(out.HardwareAlone))
		if out.ClaimsReleased.Verdict == api.DoesNotFit {
			out.Message = fmt.Sprintf("Not by waiting for claims to be released. %s", c.on(out.HardwareAlone))
		}
	default:
		out.Fits = api.Never
		out.Message = fmt.Sprintf("Never on %s, %s, without taints and without other pods. %s", c.theNodes(), never, c.on(out.HardwareAlone))
	}
}

// theNodes names the nodes of the answer.
func (c *OutlookCase) theNodes() string {
	switch {
	case c.OneNode:
		return "this node"
	case c.Nodes == 1:
		return "the only node"
	default:
		return fmt.Sprintf("these %d nodes", c.Nodes)
	}
}

// on returns a message with its node, if there are several.
func (c *OutlookCase) on(p api.Prospect) string {
	if p.Node == "" || c.OneNode || c.Nodes == 1 {
		return english.Sentence(p.Message)
	}
	return english.Sentence(fmt.Sprintf("Node %s, the nearest: %s", p.Node, p.Message))
}
