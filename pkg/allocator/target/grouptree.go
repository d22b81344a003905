// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// GroupTree is a PodGroup or, above PodGroups, a CompositePodGroup: what kube-scheduler
// places at the same time.
type GroupTree struct {
	// Group is set for a PodGroup, Composite for a CompositePodGroup.
	Group     *schedulingapi.PodGroup
	Composite *schedulingv1alpha3.CompositePodGroup
	// MinCount is how many of its pods, or of its groups, have to have a node.
	MinCount int
	// Children are the groups of a CompositePodGroup, in the order in which they are
	// decided.
	Children []*GroupTree
}

// TreeOf returns the whole that a PodGroup is placed with: the PodGroup itself if it has no
// parent, or if the scheduler does not look at parents. Otherwise it is the
// CompositePodGroup at the top, with all groups below it (buildPodGroupInfoForCPG in
// pkg/scheduler/backend/queue/workload_forest.go of Kubernetes v1.37.1). It is nil if that
// is not known: then missing names the CompositePodGroup that does not exist, or is empty
// if CompositePodGroups could not be read.
func TreeOf(facts *cluster.Cluster, group *schedulingapi.PodGroup) (tree *GroupTree, missing string) {
	if group.Spec.ParentCompositePodGroupName == nil || !facts.Gates.Enabled("CompositePodGroup") {
		return Alone(group), ""
	}
	snap := facts.Snapshot
	switch top, missing := snap.TopOf(group); {
	case top != nil:
		return compositeTree(snap, top), ""
	case snap.Unknown(snapshot.ResourceCompositePodGroups, group.Namespace) != "":
		return nil, ""
	default:
		return nil, missing
	}
}

// Alone returns a PodGroup without the groups above it.
func Alone(group *schedulingapi.PodGroup) *GroupTree {
	t := &GroupTree{Group: group, MinCount: 1}
	if gang := group.Spec.SchedulingPolicy.Gang; gang != nil {
		t.MinCount = int(gang.MinCount)
	}
	return t
}

func compositeTree(snap *snapshot.Snapshot, composite *schedulingv1alpha3.CompositePodGroup) *GroupTree {
	t := &GroupTree{Composite: composite, MinCount: 1}
	if gang := composite.Spec.SchedulingPolicy.Gang; gang != nil {
		t.MinCount = int(gang.MinGroupCount)
	}
	isChild := func(namespace string, parent *string) bool {
		return namespace == composite.Namespace && parent != nil && *parent == composite.Name
	}
	for _, group := range snap.PodGroups {
		if isChild(group.Namespace, group.Spec.ParentCompositePodGroupName) {
			t.Children = append(t.Children, Alone(group))
		}
	}
	for _, child := range snap.CompositePodGroups {
		if isChild(child.Namespace, child.Spec.ParentCompositePodGroupName) {
			t.Children = append(t.Children, compositeTree(snap, child))
		}
	}
	// GetChildGroups in pkg/scheduler/framework/types.go.
	slices.SortStableFunc(t.Children, func(a, b *GroupTree) int {
		first, second := a.object().GetCreationTimestamp(), b.object().GetCreationTimestamp()
		return cmp.Or(first.Compare(second.Time), strings.Compare(a.Name(), b.Name()))
	})
	return t
}

func (t *GroupTree) object() metav1.Object {
	if t.Composite != nil {
		return t.Composite
	}
	return t.Group
}

// Name returns the name of the group at the top.
func (t *GroupTree) Name() string { return t.object().GetName() }

// Kind returns the kind of the group at the top.
func (t *GroupTree) Kind() string {
	if t.Composite != nil {
		return api.KindCompositePodGroup
	}
	return api.KindPodGroup
}

// Whole reports whether its pods are placed at the same time or not at all: pods of a
// PodGroup that is no gang are placed one by one.
func (t *GroupTree) Whole() bool {
	return t.Composite != nil || t.Group.Spec.SchedulingPolicy.Gang != nil
}

// Groups lists the PodGroups in it, in the order in which they are decided.
func (t *GroupTree) Groups() []*schedulingapi.PodGroup {
	if t.Group != nil {
		return []*schedulingapi.PodGroup{t.Group}
	}
	var groups []*schedulingapi.PodGroup
	for _, child := range t.Children {
		groups = append(groups, child.Groups()...)
	}
	return groups
}

// required returns the priority and the preemption policy that all pods have to have, nil
// for what the group at the top does not say.
func (t *GroupTree) required(snap *snapshot.Snapshot) (priority *int32, policy *schedulingapi.PreemptionPolicy) {
	var class string
	var value *int32
	if t.Composite != nil {
		spec := &t.Composite.Spec
		class, value = spec.PriorityClassName, spec.Priority
		if spec.PreemptionPolicy != nil {
			policy = new(schedulingapi.PreemptionPolicy(*spec.PreemptionPolicy))
		}
	} else {
		spec := &t.Group.Spec
		class, value, policy = spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy
	}
	if found, known := priorityOf(snap, value, class, t.object().GetUID() == ""); known {
		priority = &found
	}
	return priority, policy
}

// priorityOf returns the priority of a pod or a group, if that is known. What exists and
// has neither priority nor class has 0. What does not exist yet may get the default class
// of the cluster, which there is not if a pod without class exists.
func priorityOf(snap *snapshot.Snapshot, priority *int32, class string, hypothetical bool) (value int32, known bool) {
	switch {
	case priority != nil:
		return *priority, true
	case class != "":
		priority = classPriority(snap, class)
		return ptr.Deref(priority, 0), priority != nil
	case !hypothetical:
		return 0, true
	}
	for _, pod := range snap.Pods {
		if !Hypothetical(pod) && pod.Spec.PriorityClassName == "" {
			return 0, true
		}
	}
	return 0, false
}

// Gang is the outcome for the pods of a PodGroup if they are decided one after another.
type Gang struct {
	// Existing counts the pods that there are, Fit those that have a node or get one.
	Existing, Fit int
	// Above has the CompositePodGroups that it belongs to, the nearest first.
	Above []CompositeFit
}

// Short names the group whose pods or groups are too few to fit: the PodGroup or the nearest
// CompositePodGroup above it; empty if enough do.
func (g *Gang) Short(group string, minCount int) string {
	if g.Fit < minCount {
		return fmt.Sprintf("%d of %s of PodGroup %s fit, minCount is %d", g.Fit, english.Count(g.Existing, "pod"), group, minCount)
	}
	for i := range g.Above {
		if above := &g.Above[i]; above.Fit < above.Tree.MinCount {
			return fmt.Sprintf("%d of %s of CompositePodGroup %s fit, minGroupCount is %d: not enough pods of %s do", above.Fit,
				english.Count(len(above.Tree.Children), "group"), above.Tree.Name(), above.Tree.MinCount, english.Sample(above.Short, 4))
		}
	}
	return ""
}

// CompositeFit is the outcome for the groups of a CompositePodGroup.
type CompositeFit struct {
	Tree *GroupTree
	// Ready counts the groups with enough pods, Fit the groups with enough pods that have a
	// node or get one.
	Ready, Fit int
	// Short lists the names of the groups that do not fit.
	Short []string
}

// GroupMismatch is a pod of a PodGroup that differs from the group at the top, or from
// another pod below it, in what has to be the same for all of them.
type GroupMismatch struct {
	Pod *corev1.Pod
	// Other is the pod that it differs from, nil for the group.
	Other *corev1.Pod
	// Path is the field, in pod and group, and Found and Required what stands there.
	Path            string
	Found, Required string
}

// MismatchOf returns why the scheduler places no pod of a PodGroup, or of a
// CompositePodGroup, whatever is available: it does not try groups whose pods have another
// priority than the group at the top, or different preemption policies or schedulers
// (validatePodGroup in pkg/scheduler/schedule_one_podgroup.go of Kubernetes v1.37.1). It is
// nil if there is no such pod, or if that is not known. The pods are all of the groups that
// have not ended.
func MismatchOf(facts *cluster.Cluster, tree *GroupTree, pods []*corev1.Pod) *GroupMismatch {
	if facts.Behaves(cluster.GroupsNotCompared) {
		return nil
	}
	first := firstWaiting(pods)
	if first == nil {
		return nil
	}
	priority, preemption := tree.required(facts.Snapshot)
	for _, pod := range pods {
		differs := func(path, found, required string) *GroupMismatch {
			return &GroupMismatch{Pod: pod, Other: first, Path: path, Found: found, Required: required}
		}
		switch scheduler := schedulerOf(pod); {
		case scheduler == schedulerOf(first):
		case pod.Spec.NodeName == "":
			// The other scheduler decides about it.
			continue
		default:
			return differs("spec.schedulerName", scheduler, schedulerOf(first))
		}
		if found, ok := priorityOf(facts.Snapshot, pod.Spec.Priority, pod.Spec.PriorityClassName, Hypothetical(pod)); priority != nil && ok && found != *priority {
			return &GroupMismatch{Pod: pod, Path: "spec.priority", Found: fmt.Sprint(found), Required: fmt.Sprint(*priority)}
		}
		found := preemptionOf(pod)
		if preemption != nil && string(*preemption) != string(found) {
			return &GroupMismatch{Pod: pod, Path: "spec.preemptionPolicy", Found: string(found), Required: string(*preemption)}
		}
		if policy := preemptionOf(first); found != policy {
			return differs("spec.preemptionPolicy", string(found), string(policy))
		}
	}
	return nil
}

// firstWaiting returns a waiting pod, which others are compared with.
func firstWaiting(pods []*corev1.Pod) *corev1.Pod {
	for _, pod := range pods {
		if snapshot.Waits(pod) {
			return pod
		}
	}
	return nil
}

func schedulerOf(pod *corev1.Pod) string {
	return cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)
}

func preemptionOf(pod *corev1.Pod) corev1.PreemptionPolicy {
	return ptr.Deref(pod.Spec.PreemptionPolicy, corev1.PreemptLowerPriority)
}
