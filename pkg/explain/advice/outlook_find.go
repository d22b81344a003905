// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Find decides the outlook that was begun. It is nil if the question cannot be asked about a
// cluster without claims. The errors are from ctx, and what keeps the allocator
// from being set up.
func (c *OutlookCase) Find(ctx context.Context) (*api.Outlook, error) {
	out := &api.Outlook{Now: api.Prospect{Verdict: api.DoesNotFit}}
	begun, err := c.begun()
	if err != nil || begun.released == nil {
		return nil, err
	}
	users, all := begun.users, begun.released
	released, err := all.decide(ctx, false)
	if err != nil {
		return nil, err
	}
	out.ClaimsReleased, out.HardwareAlone = released, released
	var blocked []string
	if released.Verdict != api.Fits {
		if out.HardwareAlone, err = all.decide(ctx, true); err != nil {
			return nil, err
		}
		if out.HardwareAlone.Verdict == api.Fits {
			blocked = all.inTheWay(ctx, out.HardwareAlone.Node)
		}
	}
	if c.Pod != nil {
		lower, err := c.lowerPriorities(ctx, users, released)
		if err != nil {
			return nil, err
		}
		out.LowerPrioritiesGone = &lower
	}
	if !c.OneNode {
		// A new node is empty.
		if len(c.Members) > 0 {
			if all, err = c.released(users, nil); err != nil || all == nil {
				return nil, err
			}
		}
		if out.OneMoreNode, err = c.oneMoreNode(ctx, all); err != nil {
			return nil, err
		}
	}
	c.conclude(out, blocked)
	return out, nil
}

// lowerPriorities returns the answer after pods of lower priority that have devices are
// gone. Where all claims together are not enough, some of them are not either.
func (c *OutlookCase) lowerPriorities(ctx context.Context, users consumersOfClaims, all api.Prospect) (api.Prospect, error) {
	if all.Verdict == api.DoesNotFit {
		return all, nil
	}
	mine := ptr.Deref(c.Pod.Spec.Priority, 0)
	lower := func(pod *corev1.Pod) bool {
		return ptr.Deref(pod.Spec.Priority, 0) < mine && !c.isOwn(pod) && !slices.Contains(c.Members, pod)
	}
	left, unknown := users.only(lower)
	if c.Cluster.Snapshot.Gap(snapshot.ResourceClaims) != nil || c.Cluster.Snapshot.Gap(snapshot.ResourcePods) != nil {
		unknown = true
	}
	answer := api.Prospect{Verdict: api.DoesNotFit, Message: "no pod of lower priority has devices that it could get"}
	if len(left) > 0 {
		a, err := c.after(func(pod *corev1.Pod) bool { return users.has(pod) && lower(pod) }, func(claim *resourceapi.ResourceClaim) bool { return left[claim] })
		if err != nil || a == nil {
			return api.Prospect{Verdict: api.Undetermined}, err
		}
		if answer, err = a.decide(ctx, false); err != nil {
			return answer, err
		}
	}
	if answer.Verdict == api.DoesNotFit && unknown {
		answer.Verdict, answer.Message = api.Undetermined, "the priority of some pods that use claims is not known"
	}
	return answer, nil
}

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
