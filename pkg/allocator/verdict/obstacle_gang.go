// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// gangObstacles returns the obstacles of the group that a pod belongs to (the plugin
// gangscheduling, pkg/scheduler/framework/plugins/gangscheduling of Kubernetes v1.37.1): a
// pod waits for its PodGroup to exist, and the CompositePodGroups above it, for its pods to
// agree with them, for minCount pods of a gang to exist, and for minCount of them to fit
// together.
func (f *finder) gangObstacles(ctx context.Context, pod *corev1.Pod) ([]Obstacle, error) {
	if pod.Spec.SchedulingGroup == nil || pod.Spec.SchedulingGroup.PodGroupName == nil || f.Target.Member {
		return nil, nil
	}
	if f.Target.Hypothetical && !f.Cluster.Gates.Enabled("GenericWorkload") {
		// The API server would drop the field.
		return nil, nil
	}
	name := *pod.Spec.SchedulingGroup.PodGroupName
	group := f.Cluster.Snapshot.PodGroup(pod.Namespace, name)
	switch {
	case group == nil && lifecycle.Hides(f.Cluster.Snapshot, snapshot.ResourcePodGroups, pod.Namespace):
		f.unevaluated = append(f.unevaluated, Unevaluated{What: "PodGroup " + name, Why: f.Cluster.Snapshot.Gap(snapshot.ResourcePodGroups).Reason})
		return nil, nil
	case group == nil:
		return []Obstacle{groupMissing(f.Question, pod, name)}, nil
	}
	tree, missing := target.TreeOf(f.Cluster, group)
	if missing != "" {
		return []Obstacle{compositeMissing(group, missing)}, nil
	}
	if tree == nil {
		// That is an assumption of the answer.
		tree = target.Alone(group)
	}
	pods := tree.Pods(f.Cluster.Snapshot)
	if !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Name == pod.Name }) {
		pods = append(pods, pod)
	}
	if m := target.MismatchOf(f.Cluster, tree, pods); m != nil {
		return []Obstacle{groupMismatch(tree, m)}, nil
	}
	if !tree.Whole() {
		return nil, nil
	}
	gang := f.Target.Gang
	if gang == nil {
		if f.Target.Workload && f.Target.Hypothetical {
			return nil, nil
		}
		var err error
		if gang, err = decideGang(ctx, f.Cluster, pod); err != nil || gang == nil {
			return nil, err
		}
	}
	if o := tooFew(group, gang); o != nil {
		return []Obstacle{*o}, nil
	}
	if f.Devices != api.Fits && f.Devices != api.Allocated {
		return nil, nil
	}
	if o := tooLarge(group, gang); o != nil {
		return []Obstacle{*o}, nil
	}
	return nil, nil
}

// tooFew returns a gang of which not enough pods exist, or a CompositePodGroup of which not
// enough groups have as many pods as they need: the pods wait outside of the queue.
func tooFew(group *schedulingapi.PodGroup, gang *target.Gang) *Obstacle {
	o := &Obstacle{Code: api.GangIncomplete, Stage: api.StageQueueing}
	var top *target.CompositeFit
	if len(gang.Above) > 0 {
		top = &gang.Above[len(gang.Above)-1]
	}
	if minCount := minCountOf(group); gang.Existing < minCount {
		if top != nil && top.Ready >= top.Tree.MinCount {
			// It is tried with the other groups.
			o.Stage = api.StageAllocation
		}
		o.Reason = fmt.Sprintf("PodGroup %s has %s, minCount is %d: none is scheduled before", group.Name, english.Count(gang.Existing, "pod"), minCount)
		o.AddEvidence(api.RefTo(api.KindPodGroup, group), "spec.schedulingPolicy.gang.minCount", english.Count(gang.Existing, "pod"), fmt.Sprint(minCount))
		o.Step(api.ActorUser, "create the missing pods of PodGroup %s, or lower its minCount", group.Name)
		return o
	}
	if top == nil || top.Ready >= top.Tree.MinCount {
		return nil
	}
	groups := english.Count(top.Ready, "group")
	o.Reason = fmt.Sprintf("CompositePodGroup %s has %s with enough pods, minGroupCount is %d: no pod of it is scheduled before", top.Tree.Name(), groups, top.Tree.MinCount)
	o.AddEvidence(api.Ref(api.KindCompositePodGroup, group.Namespace, top.Tree.Name()), "spec.schedulingPolicy.gang.minGroupCount", groups+" with enough pods", fmt.Sprint(top.Tree.MinCount))
	o.Step(api.ActorUser, "create the missing groups of CompositePodGroup %s and their pods", top.Tree.Name())
	return o
}

// tooLarge returns a gang of which not enough pods fit at the same time, or a
// CompositePodGroup of which not enough groups do.
func tooLarge(group *schedulingapi.PodGroup, gang *target.Gang) *Obstacle {
	short := gang.Short(group.Name, minCountOf(group))
	if short == "" {
		return nil
	}
	o := &Obstacle{Code: api.GangIncomplete, Stage: api.StageAllocation}
	if minCount := minCountOf(group); gang.Fit < minCount {
		o.Reason = short + ": all of them are scheduled, or none"
		o.AddEvidence(api.RefTo(api.KindPodGroup, group), "spec.schedulingPolicy.gang.minCount", fmt.Sprintf("%d fit", gang.Fit), fmt.Sprint(minCount))
		o.Steps = append(o.Steps, AskForFewer(group.Name))
		return o
	}
	o.Reason = short
	for i := range gang.Above {
		if above := &gang.Above[i]; above.Fit < above.Tree.MinCount {
			o.AddEvidence(api.Ref(api.KindCompositePodGroup, group.Namespace, above.Tree.Name()), "spec.schedulingPolicy.gang.minGroupCount", fmt.Sprintf("%d fit", above.Fit), fmt.Sprint(above.Tree.MinCount))
			o.Step(api.ActorUser, "find out why too few pods of %s fit (kubectl dra why podgroup/NAME)", english.JoinOr(above.Short))
			break
		}
	}
	return o
}

// AskForFewer returns the step for a gang whose pods do not fit, where no remedy says more.
func AskForFewer(group string) api.NextStep {
	return api.NextStep{Actor: api.ActorUser, Text: fmt.Sprintf("ask for fewer devices for each pod of PodGroup %s, or lower its minCount", group)}
}

func minCountOf(group *schedulingapi.PodGroup) int { return target.Alone(group).MinCount }

// compositeMissing returns a PodGroup whose parent, or one above that, does not exist.
func compositeMissing(group *schedulingapi.PodGroup, missing string) Obstacle {
	o := Obstacle{Code: api.PodGroupMissing, Stage: api.StageQueueing}
	o.Reason = fmt.Sprintf("CompositePodGroup %s, above PodGroup %s, does not exist", missing, group.Name)
	o.AddEvidence(api.RefTo(api.KindPodGroup, group), "spec.parentCompositePodGroupName", *group.Spec.ParentCompositePodGroupName, "a CompositePodGroup of the namespace")
	o.Step(api.ActorUser, "create CompositePodGroup %s in namespace %s", missing, group.Namespace)
	return o
}

func groupMissing(q *eligibility.Question, pod *corev1.Pod, name string) Obstacle {
	names := make([]string, 0, len(q.Cluster.Snapshot.PodGroups))
	for _, group := range inNamespace(q.Cluster.Snapshot.PodGroups, pod.Namespace) {
		names = append(names, group.Name)
	}
	o := Obstacle{Code: api.PodGroupMissing, Stage: api.StageQueueing}
	if q.Cluster.Gates.Enabled("DRAWorkloadResourceClaims") && slices.ContainsFunc(q.PodClaims, func(pc cluster.PodClaim) bool { return pc.Generated && !pc.ExtendedResources }) {
		// The resourceclaim controller waits for the PodGroup, too.
		o.Stage = api.StageClaimGeneration
	}
	o.Reason = fmt.Sprintf("PodGroup %s does not exist%s", name, english.DidYouMean(name, names))
	o.AddEvidence(api.RefTo(api.KindPod, pod), "spec.schedulingGroup.podGroupName", name, "a PodGroup of the namespace")
	o.Step(api.ActorUser, "create PodGroup %s in namespace %s, or recreate the pod with another one", name, pod.Namespace)
	return o
}

// groupMismatch returns a pod that keeps all pods of its PodGroup from being placed.
func groupMismatch(tree *target.GroupTree, m *target.GroupMismatch) Obstacle {
	object, other := api.Ref(tree.Kind(), m.Pod.Namespace, tree.Name()), "the group"
	if m.Other != nil {
		object, other = api.RefTo(api.KindPod, m.Other), "pod "+m.Other.Name
	}
	o := Obstacle{Code: api.PodGroupMismatch, Stage: api.StageQueueing}
	noun, plural := "priority", "priorities"
	switch m.Path {
	case "spec.preemptionPolicy":
		noun, plural = "preemption policy", "preemption policies"
	case "spec.schedulerName":
		noun, plural = "scheduler", "schedulers"
	}
	o.Reason = fmt.Sprintf("in %s %s, pod %s has %s %s and %s has %s: kube-scheduler places no pod of a group whose %s differ", tree.Kind(), tree.Name(), m.Pod.Name, noun, m.Found, other, m.Required, plural)
	o.AddEvidence(api.RefTo(api.KindPod, m.Pod), m.Path, m.Found, m.Required)
	o.AddEvidence(object, m.Path, m.Required, "")
	if m.Path == "spec.schedulerName" {
		o.Step(api.ActorUser, "recreate pod %s with spec.schedulerName: %s", m.Pod.Name, m.Required)
	} else {
		o.Step(api.ActorUser, "recreate the pods and %s %s with the same spec.priorityClassName: both are immutable", tree.Kind(), tree.Name())
	}
	return o
}

// PodGroupMissing reports whether the only problem of a claim is the pod's missing group.
func PodGroupMissing(pc *cluster.PodClaim) bool {
	return pc.Claim != nil && errors.Is(pc.Problem, cluster.ErrPodGroupMissing) && !errors.Is(pc.Problem, cluster.ErrClaimMissing)
}
