// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
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
