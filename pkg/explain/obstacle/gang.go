// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package obstacle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// gangObstacles are those of the group that a pod belongs to (the plugin
// gangscheduling, pkg/scheduler/framework/plugins/gangscheduling of Kubernetes
// v1.37.1): a pod waits for its PodGroup to exist, for its pods to agree with it, for
// minCount pods of a gang to exist, and for minCount of them to fit together.
func (f *finder) gangObstacles(ctx context.Context, pod *corev1.Pod) ([]Obstacle, error) {
	if pod.Spec.SchedulingGroup == nil || pod.Spec.SchedulingGroup.PodGroupName == nil || f.target.Member {
		return nil, nil
	}
	if f.target.Hypothetical && !f.Cluster.Facts.Gates.Enabled("GenericWorkload") {
		// The API server would drop the field.
		return nil, nil
	}
	name := *pod.Spec.SchedulingGroup.PodGroupName
	group := f.Snap.PodGroup(pod.Namespace, name)
	switch {
	case group == nil && lifecycle.Hides(f.Snap, snapshot.ResourcePodGroups, pod.Namespace):
		f.unevaluated = append(f.unevaluated, Unevaluated{What: "PodGroup " + name, Why: f.Snap.Gap(snapshot.ResourcePodGroups).Reason})
		return nil, nil
	case group == nil:
		return []Obstacle{groupMissing(f.Question, pod, name)}, nil
	}
	members := members(f.Question, pod, name)
	if m := target.MismatchOf(f.Cluster.Facts, group, members); m != nil {
		return []Obstacle{groupMismatch(group, m)}, nil
	}
	if group.Spec.SchedulingPolicy.Gang == nil {
		return nil, nil
	}
	existing := len(members)
	if f.target.Gang != nil {
		existing = f.target.Gang.Existing
	}
	minCount := int(group.Spec.SchedulingPolicy.Gang.MinCount)
	if existing < minCount && (f.target.Gang != nil || !f.target.Workload || !f.target.Hypothetical) {
		o := Obstacle{Code: api.GangIncomplete, Stage: api.StageQueueing}
		o.Reason = fmt.Sprintf("PodGroup %s has %s, minCount is %d: none is scheduled before", name, english.Count(existing, "pod"), minCount)
		o.AddEvidence(whatif.Object("PodGroup", group.Namespace, name), "spec.schedulingPolicy.gang.minCount", english.Count(existing, "pod"), fmt.Sprint(minCount))
		o.Step(api.ActorUser, "create the missing pods of PodGroup %s, or lower its minCount", name)
		return []Obstacle{o}, nil
	}
	if f.verdict != api.Fits && f.verdict != api.Allocated {
		return nil, nil
	}
	fit := 0
	if f.target.Gang != nil {
		fit = f.target.Gang.Fit
	} else {
		var err error
		if fit, err = f.together(ctx, members); err != nil {
			return nil, err
		}
	}
	if fit >= minCount || existing < minCount {
		return nil, nil
	}
	o := Obstacle{Code: api.GangIncomplete, Stage: api.StageAllocation}
	o.Reason = fmt.Sprintf("%d of %s of PodGroup %s fit, minCount is %d: all of them are scheduled, or none", fit, english.Count(existing, "pod"), name, minCount)
	o.AddEvidence(whatif.Object("PodGroup", group.Namespace, name), "spec.schedulingPolicy.gang.minCount", fmt.Sprintf("%d fit", fit), fmt.Sprint(minCount))
	o.Step(api.ActorUser, "ask for fewer devices for each pod of PodGroup %s, or lower its minCount", name)
	return []Obstacle{o}, nil
}

func groupMissing(q *funnel.Question, pod *corev1.Pod, name string) Obstacle {
	names := make([]string, 0, len(q.Snap.PodGroups))
	for _, group := range inNamespace(q.Snap.PodGroups, pod.Namespace) {
		names = append(names, group.Name)
	}
	o := Obstacle{Code: api.PodGroupMissing, Stage: api.StageQueueing}
	if q.Cluster.Facts.Gates.Enabled("DRAWorkloadResourceClaims") && slices.ContainsFunc(q.PodClaims, func(pc cluster.PodClaim) bool { return pc.Generated && !pc.ExtendedResources }) {
		// The resourceclaim controller waits for the PodGroup, too.
		o.Stage = api.StageClaimGeneration
	}
	o.Reason = fmt.Sprintf("PodGroup %s does not exist%s", name, naming.DidYouMean(name, names))
	o.AddEvidence(whatif.PodObject(pod), "spec.schedulingGroup.podGroupName", name, "a PodGroup of the namespace")
	o.Step(api.ActorUser, "create PodGroup %s in namespace %s, or recreate the pod with another one", name, pod.Namespace)
	return o
}

// groupMismatch is a pod that keeps all pods of its PodGroup from being placed.
func groupMismatch(group *schedulingapi.PodGroup, m *target.GroupMismatch) Obstacle {
	object, other := whatif.Object(api.KindPodGroup, group.Namespace, group.Name), "the group"
	if m.Other != nil {
		object, other = whatif.PodObject(m.Other), "pod "+m.Other.Name
	}
	o := Obstacle{Code: api.PodGroupMismatch, Stage: api.StageQueueing}
	noun, plural := "priority", "priorities"
	switch m.Path {
	case "spec.preemptionPolicy":
		noun, plural = "preemption policy", "preemption policies"
	case "spec.schedulerName":
		noun, plural = "scheduler", "schedulers"
	}
	o.Reason = fmt.Sprintf("in PodGroup %s, pod %s has %s %s and %s has %s: kube-scheduler places no pod of a group whose %s differ", group.Name, m.Pod.Name, noun, m.Found, other, m.Required, plural)
	o.AddEvidence(whatif.PodObject(m.Pod), m.Path, m.Found, m.Required)
	o.AddEvidence(object, m.Path, m.Required, "")
	if m.Path == "spec.schedulerName" {
		o.Step(api.ActorUser, "recreate pod %s with spec.schedulerName: %s", m.Pod.Name, m.Required)
	} else {
		o.Step(api.ActorUser, "recreate the pods and PodGroup %s with the same spec.priorityClassName: both are immutable", group.Name)
	}
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

// PodGroupMissing reports whether the only problem of a claim is that of the
// pod's group.
func PodGroupMissing(pc *cluster.PodClaim) bool {
	return pc.Claim != nil && errors.Is(pc.Problem, cluster.ErrPodGroupMissing) && !errors.Is(pc.Problem, cluster.ErrClaimMissing)
}
