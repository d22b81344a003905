// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// maxReplaced is how many old pods are taken away to see whether a new one fits then.
const maxReplaced = 4

// heedRollout looks whether a pod that does not fit waits for the devices of pods that it
// replaces: those of an earlier revision of its Deployment. A rolling update deletes one
// only when a new pod is ready, unless pods may be unavailable. It returns that as the reason,
// empty if it is not so, and puts the remedy before the others.
func (x *builder) heedRollout(ctx context.Context) (reason, error) {
	pod := x.Pod
	if pod == nil || x.target.Hypothetical || x.target.Only != nil || x.out.Verdict != api.DoesNotFit {
		return reason{}, nil
	}
	m, old := whatif.OldPods(x.Snap, pod)
	uses := func(p *corev1.Pod) bool { return p.Spec.NodeName != "" && len(x.Cluster.Facts.Claims.OfPod(p)) > 0 }
	old = slices.DeleteFunc(old, func(p *corev1.Pod) bool { return !uses(p) })
	var leaving []*corev1.Pod
	for _, p := range old {
		if p.DeletionTimestamp != nil {
			leaving = append(leaving, p)
		}
	}
	if len(leaving) > 0 {
		fits, err := x.fitsWithout(ctx, leaving)
		if err != nil || fits == nil {
			return reason{}, err
		}
		return reason{what: fmt.Sprintf("the devices are still allocated to %s, which %s terminating: the pod gets them when %s gone",
			oldPods(leaving, m), english.Plural(len(leaving), "is", "are"), english.Plural(len(leaving), "it is", "they are"))}, nil
	}
	for count := 1; count <= min(len(old), maxReplaced); count++ {
		fits, err := x.fitsWithout(ctx, old[:count])
		if err != nil {
			return reason{}, err
		}
		if fits == nil {
			continue
		}
		text := fmt.Sprintf("the devices are allocated to %s, and the Deployment deletes an old pod only when a new one is ready", oldPods(old[:count], m))
		if strategy := m.Strategy(); strategy == nil || strategy.RollingUpdate == nil || strategy.RollingUpdate.MaxSurge == nil || strategy.RollingUpdate.MaxSurge.String() != "0" {
			x.replaceFirst(m, count, fits)
		}
		return reason{what: text}, nil
	}
	return reason{}, nil
}

// oldPods names pods that a Deployment replaces.
func oldPods(pods []*corev1.Pod, m whatif.Workload) string {
	names := make([]string, 0, len(pods))
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return fmt.Sprintf("%s %s of the earlier revision of %s %s", english.Plural(len(pods), "pod", "pods"), english.Sample(names, 3), m.Kind, m.Name)
}

// fitsWithout is what the pod gets once others were deleted, nil if it does not fit.
func (x *builder) fitsWithout(ctx context.Context, gone []*corev1.Pod) (*api.Placement, error) {
	snap := whatif.WithoutPods(x.Snap, gone)
	alloc, err := x.Cluster.Alloc.Amended(ctx, snap)
	if err != nil {
		return nil, fmt.Errorf("set up the allocator: %w", err)
	}
	t, err := target.Find(snap, alloc, target.Options{Kind: api.KindPod, Namespace: x.Pod.Namespace, Name: x.Pod.Name})
	if err != nil {
		return nil, err
	}
	t.VerdictOnly = true
	answer, err := explainTarget(ctx, alloc, snap, t)
	if err != nil || answer.Verdict != api.Fits {
		return nil, err
	}
	return answer.Placement, nil
}

// replaceFirst puts the remedy before the others that the Deployment deletes so many pods
// before it creates new ones.
func (x *builder) replaceFirst(m whatif.Workload, count int, fits *api.Placement) {
	r := api.Remedy{
		Actor: api.ActorUser, Edits: []api.Edit{whatif.Replacing(m, count)}, Node: fits.Node, Nodes: 1, Devices: []api.AllocatedDevice{},
		Change: fmt.Sprintf("let Deployment %s delete an old pod before it creates a new one: maxSurge 0 and maxUnavailable %d, or strategy Recreate", m.Name, count),
	}
	for i := range fits.Claims {
		r.Devices = append(r.Devices, fits.Claims[i].Devices...)
	}
	x.conflictCase().Complete(&r, false)
	x.out.Remedies = slices.Insert(x.out.Remedies, 0, r)
}
