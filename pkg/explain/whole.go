// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// findWhole adds to an explanation what would make all members fit, if not all do.
func findWhole(ctx context.Context, c *cluster.Cluster, t *target.Target, out *api.Explanation) error {
	m := out.Members
	if m == nil || m.FitNow >= m.Waiting || out.Verdict != api.DoesNotFit && (out.Verdict != api.Blocked || out.Code != api.GangIncomplete) {
		return nil
	}
	limited, budget := allocator.WithBudget(ctx, adviceSteps)
	defer budget.End()
	w := &whole{cluster: c, target: t, out: out}
	// An error only means that no more can be found.
	for _, look := range []func(context.Context) error{w.lowerPriorities, w.allClaims, w.moreNodes, w.changes} {
		if look(limited) != nil {
			break
		}
	}
	if m.Group != nil && len(out.Remedies) > 0 {
		out.NextSteps = withoutGangStep(out.NextSteps, m.Group.Name)
	}
	return ctx.Err()
}

// withoutGangStep leaves out of steps what remedies say.
func withoutGangStep(steps []api.NextStep, group string) []api.NextStep {
	return slices.DeleteFunc(steps, func(step api.NextStep) bool { return step.Text == verdict.AskForFewer(group).Text })
}

func (w *whole) lowerPriorities(ctx context.Context) error {
	mine := ptr.Deref(w.target.Pod.Spec.Priority, 0)
	f, ok, err := w.after(ctx, func(pod *corev1.Pod) bool { return ptr.Deref(pod.Spec.Priority, 0) < mine })
	if ok {
		w.add(api.MemberProspect{Condition: api.LowerPrioritiesGone}, f)
	}
	return err
}

func (w *whole) allClaims(ctx context.Context) error {
	f, ok, err := w.after(ctx, func(*corev1.Pod) bool { return true })
	if ok {
		w.add(api.MemberProspect{Condition: api.ClaimsReleased}, f)
	}
	return err
}

// maxLike limits how many kinds of new nodes are tried.
const maxLike = 2

// moreNodes looks for the smallest number of empty nodes, like one of the cluster, that
// is enough.
func (w *whole) moreNodes(ctx context.Context) error {
	var likes []string
	add := func(name string) {
		if name != "" && len(likes) < maxLike && !slices.Contains(likes, name) {
			likes = append(likes, name)
		}
	}
	if w.out.Outlook != nil {
		for i := range w.out.Outlook.OneMoreNode {
			if n := &w.out.Outlook.OneMoreNode[i]; n.Verdict == api.Fits {
				add(n.Like)
			}
		}
	}
	for i := range w.out.Members.Kinds {
		if kind := &w.out.Members.Kinds[i]; len(kind.Nodes) > 0 {
			add(kind.Nodes[0])
		}
	}
	for _, like := range likes {
		if err := w.moreLike(ctx, like); err != nil {
			return err
		}
	}
	return nil
}

func (w *whole) moreLike(ctx context.Context, like string) error {
	m := w.out.Members
	missing := m.Waiting - m.FitNow
	with := func(count int) (fitting, error) {
		return w.decide(ctx, whatif.AddNodes(w.cluster.Snapshot, like, count))
	}
	one, err := with(1)
	if err != nil {
		return err
	}
	gain := one.Fit - m.FitNow - (one.Total - m.Waiting)
	if gain <= 0 {
		return nil
	}
	low, high := 0, min((missing+gain-1)/gain, missing)
	var f fitting
	for {
		if f, err = with(high); err != nil {
			return err
		}
		if f.all() {
			break
		}
		if high == missing {
			// Not all of them can use such a node.
			return nil
		}
		low, high = high, min(2*high, missing)
	}
	// Mostly, one less is not enough.
	for count := high - 1; high-low > 1; count = (low + high) / 2 {
		less, err := with(count)
		switch {
		case err != nil:
			return err
		case less.all():
			high, f = count, less
		default:
			low = count
		}
	}
	w.add(api.MemberProspect{Condition: api.MoreNodes, NodeCount: high, Like: like}, f)
	return nil
}

// changes looks for changes after which the whole is scheduled. Changes that were found for one
// member keep their order, by what they take away; of a gang, they have to help all. Changes of
// the whole come after these, or in place of a change of the same field, and before changes with
// which only some more fit.
func (w *whole) changes(ctx context.Context) error {
	whole, err := w.changesOfWhole(ctx)
	if err != nil {
		return err
	}
	var all, some []api.Remedy
	for i := range w.out.Remedies {
		r := w.out.Remedies[i]
		same := func(have api.Remedy) bool { return sameFields(have.Edits, r.Edits) }
		if slices.ContainsFunc(all, same) || slices.ContainsFunc(some, same) {
			continue
		}
		if at := slices.IndexFunc(whole, same); at >= 0 {
			all, whole = append(all, whole[at]), slices.Delete(whole, at, at+1)
			continue
		}
		f, err := w.afterwards(ctx, &r)
		if err != nil {
			return err
		}
		if group := w.out.Members.Group; group != nil && group.MinCount != nil && !f.all() {
			continue
		}
		if f.Fit <= w.out.Members.WithDevices+w.out.Members.FitNow && (!f.all() || !slices.ContainsFunc(r.Edits, whatif.ReplacesPods)) {
			// The old pods of a rolling update are no members any more once they are deleted.
			continue
		}
		r.Change += fitText(f)
		if f.all() {
			all = append(all, r)
		} else {
			some = append(some, r)
		}
	}
	w.out.Remedies = slices.Concat(all, whole, some)
	return nil
}

// changesOfWhole returns changes of the request with which all remaining members fit.
func (w *whole) changesOfWhole(ctx context.Context) ([]api.Remedy, error) {
	var found []api.Remedy
	if r, err := w.lowerMinCount(ctx); err != nil {
		return nil, err
	} else if r != nil {
		found = append(found, *r)
	}
	reordered, err := w.otherOrder(ctx)
	if err != nil {
		return nil, err
	}
	found = append(reordered, found...)
	fewer, err := w.fewerDevices(ctx)
	if err != nil {
		return nil, err
	}
	found = append(found, fewer...)
	if r, err := w.fewerPods(ctx); err != nil {
		return nil, err
	} else if r != nil {
		found = append(found, *r)
	}
	return found, nil
}

// afterwards says how many of the members fit after a remedy and its commands.
func (w *whole) afterwards(ctx context.Context, r *api.Remedy) (fitting, error) {
	gates := []string{}
	if r.FeatureGate != "" {
		gates = append(gates, r.FeatureGate)
	}
	snap, err := whatif.Amend(w.cluster.Snapshot, w.reaching(r.Edits), gates...)
	if err != nil {
		return fitting{}, nil //nolint:nilerr // it is a change of something that is not there
	}
	return w.decide(ctx, snap)
}

// lowerMinCount proposes the number of pods of a gang that fit as its minCount.
func (w *whole) lowerMinCount(ctx context.Context) (*api.Remedy, error) {
	group := w.out.Members.Group
	if group == nil || group.MinCount == nil || group.Fit >= int(*group.MinCount) || group.Fit == 0 {
		return nil, nil
	}
	object := api.Ref(api.KindPodGroup, w.target.Object.Namespace, group.Name)
	edits := []api.Edit{whatif.NewEdit(object, "replace", "/spec/schedulingPolicy/gang/minCount", group.Fit)}
	return w.remedy(ctx, edits, fmt.Sprintf("lower minCount of PodGroup %s to %d: so many of its pods fit", group.Name, group.Fit),
		func(f fitting) bool { return f.GroupFits })
}
