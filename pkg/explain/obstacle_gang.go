// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// gangObstacles are those of the group that a pod belongs to (the plugin
// gangscheduling, pkg/scheduler/framework/plugins/gangscheduling of Kubernetes
// v1.37.1): a pod waits for its PodGroup to exist, for minCount pods of a gang to
// exist, and for minCount of them to fit together.
func (x *inquiry) gangObstacles(ctx context.Context, pod *corev1.Pod) ([]obstacle, error) {
	if pod.Spec.SchedulingGroup == nil || pod.Spec.SchedulingGroup.PodGroupName == nil || x.target.Member {
		return nil, nil
	}
	if x.target.Hypothetical && !x.Cluster.Alloc.Facts.Gates.Enabled("GenericWorkload") {
		// The API server would drop the field.
		return nil, nil
	}
	name := *pod.Spec.SchedulingGroup.PodGroupName
	group := x.Snap.PodGroup(pod.Namespace, name)
	switch {
	case group == nil && lifecycle.Hides(x.Snap, snapshot.ResourcePodGroups, pod.Namespace):
		x.unevaluated = append(x.unevaluated, unevaluated{what: "PodGroup " + name, why: x.Snap.Gap(snapshot.ResourcePodGroups).Reason})
		return nil, nil
	case group == nil:
		return []obstacle{groupMissing(x.Question, pod, name)}, nil
	case group.Spec.SchedulingPolicy.Gang == nil:
		return nil, nil
	}
	members := members(x.Question, pod, name)
	minCount := int(group.Spec.SchedulingPolicy.Gang.MinCount)
	if len(members) < minCount && (!x.target.Workload || !x.target.Hypothetical) {
		o := obstacle{code: api.GangIncomplete, stage: api.StageQueueing}
		o.Reason = fmt.Sprintf("PodGroup %s has %s, minCount is %d: none is scheduled before", name, english.Count(len(members), "pod"), minCount)
		o.Prove(whatif.Object("PodGroup", group.Namespace, name), "spec.schedulingPolicy.gang.minCount", english.Count(len(members), "pod"), fmt.Sprint(minCount))
		o.Step(api.ActorUser, "create the missing pods of PodGroup %s, or lower its minCount", name)
		return []obstacle{o}, nil
	}
	if x.out.Verdict != api.Fits && x.out.Verdict != api.Allocated {
		return nil, nil
	}
	if len(group.Spec.ResourceClaims) > len(group.Status.ResourceClaimStatuses) {
		x.unevaluated = append(x.unevaluated, unevaluated{
			what: fmt.Sprintf("whether the pods of PodGroup %s fit together", name), why: "claims that they share do not exist yet",
		})
		return nil, nil
	}
	fit, err := fitTogether(ctx, x.Question, members)
	if err != nil || fit >= minCount || len(members) < minCount {
		return nil, err
	}
	o := obstacle{code: api.GangIncomplete, stage: api.StageAllocation}
	o.Reason = fmt.Sprintf("%d of %s of PodGroup %s fit, minCount is %d: all of them are scheduled, or none", fit, english.Count(len(members), "pod"), name, minCount)
	o.Prove(whatif.Object("PodGroup", group.Namespace, name), "spec.schedulingPolicy.gang.minCount", fmt.Sprintf("%d fit", fit), fmt.Sprint(minCount))
	o.Step(api.ActorUser, "ask for fewer devices for each pod of PodGroup %s, or lower its minCount", name)
	return []obstacle{o}, nil
}

func groupMissing(q *funnel.Question, pod *corev1.Pod, name string) obstacle {
	names := make([]string, 0, len(q.Snap.PodGroups))
	for _, group := range inNamespace(q.Snap.PodGroups, pod.Namespace) {
		names = append(names, group.Name)
	}
	o := obstacle{code: api.PodGroupMissing, stage: api.StageQueueing}
	if q.Cluster.Alloc.Facts.Gates.Enabled("DRAWorkloadResourceClaims") && slices.ContainsFunc(q.PodClaims, func(pc cluster.PodClaim) bool { return pc.Generated && !pc.ExtendedResources }) {
		// The resourceclaim controller waits for the PodGroup, too.
		o.stage = api.StageClaimGeneration
	}
	o.Reason = fmt.Sprintf("PodGroup %s does not exist%s", name, naming.DidYouMean(name, names))
	o.Prove(whatif.PodObject(pod), "spec.schedulingGroup.podGroupName", name, "a PodGroup of the namespace")
	o.Step(api.ActorUser, "create PodGroup %s in namespace %s, or recreate the pod with another one", name, pod.Namespace)
	return o
}

// members are the pods of a group that are not finished, with the pod of the
// question among them.
func members(q *funnel.Question, pod *corev1.Pod, group string) []*corev1.Pod {
	members := []*corev1.Pod{}
	found := false
	for _, other := range inNamespace(q.Snap.Pods, pod.Namespace) {
		if g := other.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil && *g.PodGroupName == group && !lifecycle.Finished(other) {
			members = append(members, other)
			found = found || other.Name == pod.Name
		}
	}
	if !found {
		members = append(members, pod)
	}
	return members
}

// fitTogether counts the pods of a gang that have a node, or get one, if they are
// decided one after another.
func fitTogether(ctx context.Context, asked *funnel.Question, members []*corev1.Pod) (int, error) {
	q := &queue{
		snap: asked.Snap, alloc: asked.Cluster.Alloc, after: asked.Snap, afterAlloc: asked.Cluster.Alloc,
		kinds: map[string]*podKind{}, pods: map[types.NamespacedName]*queuedPod{}, members: true,
	}
	fit := 0
	members = slices.SortedStableFunc(slices.Values(members), compareQueued)
	for _, pod := range members {
		switch {
		case pod.Spec.NodeName != "":
			fit++
		case lifecycle.Waits(pod):
			p := q.add(pod, pod.UID == "" && pod.CreationTimestamp.IsZero())
			if err := q.sortKind(ctx, p); err != nil {
				return 0, err
			}
			if p.kind.answer.Verdict == api.Allocated {
				fit++
				continue
			}
			if p.kind.answer.Verdict != api.Fits {
				continue
			}
			if err := q.reserve(ctx, p); err != nil {
				return 0, err
			}
			if p.reservation != nil {
				fit++
			}
		}
	}
	return fit, nil
}
