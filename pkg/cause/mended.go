// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// mendedMost limits the causes for which the queue is decided again: each takes about as long as
// the verdicts about all pods that wait.
const mendedMost = 4

// mend says what changes when each cause is mended. For the first conditions of the cluster, the
// allocator decides all pods that wait again. Changes of what a pod asks were decided before, for
// each pod alone.
func mend(ctx context.Context, of *cluster.Cluster, causes []*cause) error {
	asked := 0
	var now map[api.ObjectRef]bool
	for _, c := range causes {
		m := &api.Mended{Edits: slices.Clip(c.edits), Safe: c.safe}
		decides := len(c.edits) > 0 && asked < mendedMost && slices.ContainsFunc(c.stuck, func(s *stuck) bool { return s.answer != nil })
		switch {
		case c.fitsOn != "":
			m.Message = c.fitsOn
			c.Mended = m
			continue
		case !decides && c.safe == 0:
			continue
		case decides:
			asked++
			after, err := whatif.Amend(of.Snapshot, c.edits)
			if err != nil {
				// The edits of several pods do not go together.
				continue
			}
			if now == nil {
				if now, err = decided(ctx, of); err != nil {
					return err
				}
			}
			then, err := decided(ctx, of.Amended(after))
			if err != nil {
				return err
			}
			m.Waiting, m.Starts, m.Stops = len(of.Waiting()), without(then, now), without(now, then)
		}
		m.Message = message(m)
		c.Mended = m
	}
	return nil
}

// decided returns the waiting pods that fit, one after another.
func decided(ctx context.Context, c *cluster.Cluster) (map[api.ObjectRef]bool, error) {
	waiting := slices.DeleteFunc(slices.Clone(c.Waiting()), func(pod *corev1.Pod) bool { return len(pod.Spec.SchedulingGates) > 0 })
	decisions, _, err := explain.DecideQueue(ctx, c, waiting, explain.QueueOptions{})
	if err != nil {
		return nil, fmt.Errorf("decide the pods that wait: %w", err)
	}
	fits := map[api.ObjectRef]bool{}
	for i := range decisions {
		if decisions[i].Reservation != nil {
			fits[api.RefTo(api.KindPod, decisions[i].Pod)] = true
		}
	}
	return fits, nil
}

// without counts the pods that fit in one case and not in another one.
func without(fits, others map[api.ObjectRef]bool) int {
	n := 0
	for ref := range fits {
		if !others[ref] {
			n++
		}
	}
	return n
}

// message says in a few words what changes.
func message(m *api.Mended) string {
	var parts []string
	if m.Safe > 0 {
		parts = append(parts, english.Count(m.Safe, "pod")+" safe")
	}
	switch {
	case m.Waiting > 0 && m.Starts == 0:
		parts = append(parts, "none of "+english.Count(m.Waiting, "waiting pod")+" starts")
	case m.Waiting > 0:
		parts = append(parts, fmt.Sprintf("%d of %s %s", m.Starts, english.Count(m.Waiting, "waiting pod"), english.Plural(m.Starts, "starts", "start")))
	}
	if m.Stops > 0 {
		parts = append(parts, fmt.Sprintf("%d that would start %s", m.Stops, english.Plural(m.Stops, "does not", "do not")))
	}
	return english.JoinAnd(parts)
}

// mendOwn gives a cause that pods are by themselves the remedy of the first of them. Equal pods
// have the same; a pod with another one leaves it open what mends the cause.
func (c *cause) mendOwn(s *stuck) {
	r := c.remedy(s)
	if r == nil {
		c.edits, c.fitsOn = nil, ""
		return
	}
	switch {
	case len(c.stuck) == 1:
		c.edits, c.fitsOn = r.Edits, "it fits on "+r.Node
	case c.fitsOn != "":
		c.fitsOn = "each of them fits by itself on " + r.Node
	}
}

// remedy returns the remedy of a pod that is the next step of a cause, nil if it has another one.
func (c *cause) remedy(s *stuck) *api.Remedy {
	i := slices.IndexFunc(s.full.Remedies, func(r api.Remedy) bool {
		return c.NextStep != nil && r.Change == c.NextStep.Text && r.Actor == c.NextStep.Actor
	})
	if i < 0 {
		return nil
	}
	return &s.full.Remedies[i]
}

// changes reports whether the commands of a cause, which are for its first pod, bring the change to
// another pod of it, too.
func (c *cause) changes(s *stuck) bool {
	first := c.stuck[0]
	r := c.remedy(first)
	if r == nil || s.owner() == first.owner() {
		return true
	}
	return slices.ContainsFunc(r.UsedBy, func(p api.RemedyPod) bool {
		return p.Changed && p.Namespace == s.pod.Namespace && p.Name == s.pod.Name
	}) || !slices.ContainsFunc(r.Edits, func(e api.Edit) bool {
		return e.Object.Namespace != "" && !slices.ContainsFunc(s.pod.Spec.ResourceClaims, func(entry corev1.PodResourceClaim) bool {
			return entry.ResourceClaimName != nil && e.Object == api.Ref(api.KindClaim, s.pod.Namespace, *entry.ResourceClaimName)
		})
	})
}
