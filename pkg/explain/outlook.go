// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/advice"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
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

// maxReplaced limits how many old pods are taken away to see whether a new one fits then.
const maxReplaced = 4

// heedRollout finds out whether a pod that does not fit waits for the devices of the pods that it
// replaces, which belong to an earlier revision of its Deployment or DaemonSet. A rolling update
// deletes an old pod only when a new one is ready, unless pods may be unavailable. heedRollout
// returns the reason, empty if the pod waits for something else, and puts the remedy before the
// others.
func (x *builder) heedRollout(ctx context.Context) (reason, error) {
	pod := x.Pod
	if pod == nil || x.Target.Hypothetical || x.Target.Only != nil || x.out.Verdict != api.DoesNotFit {
		return reason{}, nil
	}
	m, old := whatif.OldPods(x.Cluster.Snapshot, pod)
	uses := func(p *corev1.Pod) bool { return p.Spec.NodeName != "" && len(x.Cluster.Claims.OfPod(p)) > 0 }
	old = slices.DeleteFunc(old, func(p *corev1.Pod) bool { return !uses(p) })
	var leaving []*corev1.Pod
	for _, p := range old {
		if p.DeletionTimestamp != nil {
			leaving = append(leaving, p)
		}
	}
	if len(leaving) > 0 {
		fits, err := fitsWithout(ctx, x.Question, leaving)
		if err != nil || fits == nil {
			return reason{}, err
		}
		x.replaced = &replaced{node: fits.Node, when: "when " + podNames(leaving) + english.Plural(len(leaving), " is", " are") + " gone"}
		return reason{what: fmt.Sprintf("the devices are still allocated to %s, which %s terminating: the pod gets them when %s gone",
			oldPods(leaving, m), english.Plural(len(leaving), "is", "are"), english.Plural(len(leaving), "it is", "they are"))}, nil
	}
	for count := 1; count <= min(len(old), maxReplaced); count++ {
		fits, err := fitsWithout(ctx, x.Question, old[:count])
		if err != nil {
			return reason{}, err
		}
		if fits == nil {
			continue
		}
		x.replaced = &replaced{node: fits.Node, when: "once the " + m.Kind + " deletes " + podNames(old[:count])}
		x.out.Remedies = slices.DeleteFunc(x.out.Remedies, func(r api.Remedy) bool { return r.Actor == api.ActorNobody && waitsFor(x.Cluster.Snapshot, &r, old) })
		text := fmt.Sprintf("the devices are allocated to %s, and the %s deletes an old pod only when a new one is ready", oldPods(old[:count], m), m.Kind)
		if strategy := m.Strategy(); strategy == nil || strategy.RollingUpdate == nil || strategy.RollingUpdate.MaxSurge == nil || strategy.RollingUpdate.MaxSurge.String() != "0" {
			x.replaceFirst(m, count, fits)
		}
		return reason{what: text}, nil
	}
	return reason{}, nil
}

// outlook puts it into an outlook: the answers for more nodes stay.
func (r *replaced) outlook(out *api.Outlook) {
	out.Fits, out.ClaimsReleased = api.ClaimsReleased, api.Prospect{Verdict: api.Fits, Node: r.node}
	out.Message = fmt.Sprintf("It fits on %s %s.", r.node, r.when)
}

// waitsFor reports whether a remedy waits for claims of some pods alone.
func waitsFor(snap *snapshot.Snapshot, r *api.Remedy, pods []*corev1.Pod) bool {
	return len(r.Edits) > 0 && !slices.ContainsFunc(r.Edits, func(e api.Edit) bool {
		claim := snap.Claim(e.Object.Namespace, e.Object.Name)
		return whatif.KindOf(&e) != whatif.EditAllocation || claim == nil || slices.ContainsFunc(lifecycle.PodsUsing(snap, claim), func(pod *corev1.Pod) bool { return !slices.Contains(pods, pod) })
	})
}

// podNames names some pods.
func podNames(pods []*corev1.Pod) string {
	names := make([]string, 0, len(pods))
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return english.Plural(len(pods), "pod ", "pods ") + english.Sample(names, 3)
}

// oldPods names pods that a Deployment replaces.
func oldPods(pods []*corev1.Pod, m whatif.Workload) string {
	return fmt.Sprintf("%s of the earlier revision of %s %s", podNames(pods), m.Kind, m.Name)
}

// fitsWithout returns what the pod gets once others were deleted, nil if it does not fit.
func fitsWithout(ctx context.Context, q *eligibility.Question, gone []*corev1.Pod) (*api.Placement, error) {
	snap := whatif.WithoutPods(q.Cluster.Snapshot, gone)
	amended := q.Cluster.Amended(snap)
	t, err := target.Find(amended, target.Options{Object: api.Ref(api.KindPod, q.Pod.Namespace, q.Pod.Name)})
	if err != nil {
		return nil, err
	}
	selectors, back := amended.Evaluators.Lend()
	defer back()
	v, err := verdict.Decide(ctx, amended, t, selectors)
	if err != nil || v.Outcome != api.Fits {
		return nil, err
	}
	return placementOf(v), nil
}

// replaceFirst puts the remedy before the others that the workload deletes so many pods
// before it creates new ones.
func (x *builder) replaceFirst(m whatif.Workload, count int, fits *api.Placement) {
	r := api.Remedy{
		Actor: api.ActorUser, Edits: []api.Edit{whatif.Replacing(m, count)}, Node: fits.Node, Nodes: 1, Devices: []api.AllocatedDevice{},
		Change: fmt.Sprintf("let %s %s delete an old pod before it creates a new one: maxSurge 0 and maxUnavailable %d", m.Kind, m.Name, count),
	}
	if m.Kind == snapshot.KindDeployment {
		r.Change += ", or strategy Recreate"
	}
	for i := range fits.Claims {
		r.Devices = append(r.Devices, fits.Claims[i].Devices...)
	}
	x.conflictCase().Complete(&r, false)
	x.out.Remedies = slices.Insert(x.out.Remedies, 0, r)
}
