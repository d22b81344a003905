// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/kinds"
)

// meetObstacles turns "it fits" into [api.Blocked] if something else than devices is in the way.
func (v *Verdict) meetObstacles(ctx context.Context) error {
	f := &finder{Verdict: v}
	v.Obstacles = f.refusals()
	if v.Pod != nil && snapshot.Waits(v.Pod) {
		gang, err := f.gangObstacles(ctx, v.Pod)
		if err != nil {
			return err
		}
		v.Obstacles = append(append(v.Obstacles, gang...), f.volumeObstacles(v.Pod)...)
	}
	v.Unevaluated = f.unevaluated
	if v.Blocked() {
		v.Outcome, v.Code = api.Blocked, v.Obstacles[0].Code
	}
	return nil
}

// finder collects the obstacles of one pod, and the possible ones.
type finder struct {
	*Verdict
	unevaluated []Unevaluated
}

// refusals returns the ResourceQuotas and LimitRanges that refuse objects not yet created:
// the claims of a pod, and with -f the pod or the claim itself. Quota is enforced at
// creation only: existing objects are not affected.
func (f *finder) refusals() []Obstacle {
	namespace := f.Target.Object.Namespace
	created, stage := toBeCreated(f.Question)
	pod := f.Pod
	newPod := pod != nil && f.Target.Hypothetical
	if len(created) == 0 && !newPod {
		return nil
	}
	var obstacles []Obstacle
	note := func(code api.Code, stage api.Stage, refusals []kinds.Refusal) {
		for _, r := range refusals {
			o := Obstacle{Code: code, Stage: stage}
			o.Reason = r.Reason
			o.AddEvidence(api.Ref(r.Object, namespace, r.Name), r.Path, r.Found, r.Wanted)
			switch {
			case r.Exceeded != "":
				o.Steps = append(o.Steps, lifecycle.NewQuotaRaise(namespace, r.Name, r.Exceeded, r.Used, r.Hard, r.Need).Steps()...)
			case code == api.QuotaExceeded:
				o.Step(api.ActorUser, "give each container the requests and limits that ResourceQuota %s counts", r.Name)
			default:
				o.Step(api.ActorUser, "change the requests and limits of the pod so that %s %s allows them", r.Object, r.Name)
			}
			obstacles = append(obstacles, o)
		}
	}
	if newPod {
		ranges := inNamespace(f.Cluster.Snapshot.LimitRanges, namespace)
		pod = kinds.WithLimitDefaults(ranges, pod)
		f.unknownAdmission(snapshot.ResourceLimitRanges, "LimitRanges", namespace)
		note(api.LimitRangeViolated, "", kinds.LimitRefusals(ranges, pod))
	}
	f.unknownAdmission(snapshot.ResourceQuotas, "ResourceQuotas", namespace)
	quotas := inNamespace(f.Cluster.Snapshot.Quotas, namespace)
	if newPod {
		note(api.QuotaExceeded, "", kinds.PodQuotaRefusals(quotas, pod))
	}
	if len(created) > 0 {
		note(api.QuotaExceeded, stage, kinds.ClaimQuotaRefusals(quotas, extendedNames(f.Question), created...))
	}
	return obstacles
}

// unknownAdmission notes that something may refuse the object that was not read.
func (f *finder) unknownAdmission(resource, what, namespace string) {
	if why := f.Cluster.Snapshot.Unknown(resource, namespace); why != "" {
		gap := f.Cluster.Snapshot.Gap(resource) != nil
		f.unevaluated = append(f.unevaluated, Unevaluated{What: what, Why: why, Always: gap, Quiet: !gap})
	}
}

// toBeCreated returns what the claims count for that do not exist yet, and the stage in
// which they are created.
func toBeCreated(q *eligibility.Question) ([]corev1.ResourceList, api.Stage) {
	var usages []corev1.ResourceList
	stage := api.StageClaimGeneration
	pod := q.Pod
	for i := range q.PodClaims {
		pc := &q.PodClaims[i]
		switch {
		case pc.Claim == nil || pc.Claim.UID != "" || pc.Problem != nil && !errors.Is(pc.Problem, cluster.ErrClaimNotCreated):
		case pc.ExtendedResources && pod != nil && snapshot.Waits(pod):
			if len(usages) == 0 {
				// The scheduler creates it.
				stage = api.StageAllocation
			}
			usages = append(usages, kinds.ClaimQuotaUsage(&pc.Claim.Spec, extendedNames(q), kinds.PodQuotaUsage(pod)))
		case pc.ExtendedResources, !pc.Generated && (!pc.Claim.CreationTimestamp.IsZero() || q.Cluster.Snapshot.Claim(pc.Claim.Namespace, pc.Claim.Name) == nil):
		case pc.Generated && pod == nil:
			// A template alone creates nothing.
		default:
			usages = append(usages, kinds.ClaimQuotaUsage(&pc.Claim.Spec, extendedNames(q), nil))
		}
	}
	return usages, stage
}

// extendedNames says which extended resource each class stands for, nil where the
// cluster has no extended resources by DRA.
func extendedNames(q *eligibility.Question) kinds.QuotaClasses {
	if !q.Cluster.Gates.Enabled("DRAExtendedResource") {
		return nil
	}
	classes := kinds.QuotaClasses{}
	for _, class := range q.Cluster.Snapshot.Classes {
		if class.Spec.ExtendedResourceName != nil {
			classes[class.Name] = *class.Spec.ExtendedResourceName
		}
	}
	return classes
}

// inNamespace returns the objects of a namespace.
func inNamespace[T interface{ GetNamespace() string }](list []T, namespace string) []T {
	var own []T
	for _, o := range list {
		if o.GetNamespace() == namespace {
			own = append(own, o)
		}
	}
	return own
}

// QuotaLimits returns how many copies of a question's pod ResourceQuotas allow, with their
// claims. Without withPod, only the claims count.
func QuotaLimits(q *eligibility.Question, withPod bool) []kinds.QuotaLimit {
	quotas := inNamespace(q.Cluster.Snapshot.Quotas, q.Pod.Namespace)
	created, _ := toBeCreated(q)
	pod := kinds.WithLimitDefaults(inNamespace(q.Cluster.Snapshot.LimitRanges, q.Pod.Namespace), q.Pod)
	if !withPod {
		pod = nil
	}
	return kinds.QuotaLimits(quotas, extendedNames(q), pod, created...)
}

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

// tooFew returns the obstacle of a gang with too few pods, or of a CompositePodGroup with too few
// groups that have all their pods: the pods wait outside of the queue.
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

// tooLarge returns the obstacle of a gang whose pods do not fit at the same time, or of a
// CompositePodGroup whose groups do not.
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

// volumeObstacles returns PersistentVolumeClaims without which no node is tried (PreFilter
// of the plugins volumebinding and volumerestrictions).
func (f *finder) volumeObstacles(pod *corev1.Pod) []Obstacle {
	uses := cluster.VolumesOf(f.Cluster.Snapshot, pod)
	if len(uses) == 0 {
		return nil
	}
	if why := f.Cluster.Snapshot.Unknown(snapshot.ResourceVolumeClaims, pod.Namespace); why != "" {
		f.unevaluated = append(f.unevaluated, Unevaluated{What: "volumes", Why: why})
		return nil
	}
	var obstacles []Obstacle
	for i := range uses {
		if o := f.volumeObstacle(pod, &uses[i]); o != nil {
			obstacles = append(obstacles, *o)
		}
	}
	return obstacles
}

func (f *finder) volumeObstacle(pod *corev1.Pod, use *cluster.VolumeUse) *Obstacle {
	o := &Obstacle{Code: api.VolumeNotReady, Stage: api.StageNodeFit}
	claim, name := use.Claim, api.Ref("PersistentVolumeClaim", pod.Namespace, use.Name)
	switch {
	case claim == nil && use.Ephemeral:
		if f.Target.Hypothetical || !lifecycle.Overdue(f.Cluster.Snapshot, pod.CreationTimestamp.Time) {
			// It is created right after the pod.
			return nil
		}
		o.Reason = fmt.Sprintf("PersistentVolumeClaim %s for the ephemeral volume %s has not been created yet", use.Name, use.Volume)
		o.AddEvidence(name, "", "missing", "a PersistentVolumeClaim")
		o.Step(api.ActorAdmin, "check that kube-controller-manager runs: its ephemeral volume controller creates PersistentVolumeClaims")
	case claim == nil:
		var names []string
		for _, other := range f.Cluster.Snapshot.VolumeClaims {
			if other.Namespace == pod.Namespace {
				names = append(names, other.Name)
			}
		}
		o.Reason = fmt.Sprintf("PersistentVolumeClaim %s does not exist%s", use.Name, english.DidYouMean(use.Name, names))
		o.AddEvidence(name, "", "missing", "a PersistentVolumeClaim for volume "+use.Volume)
		o.Step(api.ActorUser, "create PersistentVolumeClaim %s in namespace %s, or name another one", use.Name, pod.Namespace)
	case claim.UID == "" && claim.CreationTimestamp.IsZero():
		// The claim is about to be created with the pod.
		return nil
	case claim.Status.Phase == corev1.ClaimLost:
		o.Reason = fmt.Sprintf("PersistentVolumeClaim %s is lost: its PersistentVolume %s does not exist", use.Name, claim.Spec.VolumeName)
		o.AddEvidence(name, "status.phase", string(claim.Status.Phase), string(corev1.ClaimBound))
		o.Step(api.ActorUser, "replace PersistentVolumeClaim %s: one that is lost is never bound again", use.Name)
	case claim.DeletionTimestamp != nil:
		o.Reason = fmt.Sprintf("PersistentVolumeClaim %s is being deleted", use.Name)
		o.AddEvidence(name, "metadata.deletionTimestamp", claim.DeletionTimestamp.UTC().Format(time.RFC3339), "none")
		o.Step(api.ActorUser, "name another PersistentVolumeClaim, or create it again once it is gone")
	case use.Ephemeral && !metav1.IsControlledBy(claim, pod):
		o.Reason = fmt.Sprintf("PersistentVolumeClaim %s has the name that the ephemeral volume %s needs, and was not created for the pod", use.Name, use.Volume)
		o.AddEvidence(name, "metadata.ownerReferences", "", "pod "+pod.Name)
		o.Step(api.ActorUser, "delete PersistentVolumeClaim %s, or rename the pod or its volume", use.Name)
	case !cluster.VolumeBound(claim):
		return f.unboundObstacle(o, claim, name)
	default:
		return f.boundObstacle(o, pod, use, claim, name)
	}
	return o
}

// unboundObstacle returns a claim that is not bound, and that the scheduler does not bind.
func (f *finder) unboundObstacle(o *Obstacle, claim *corev1.PersistentVolumeClaim, name api.ObjectRef) *Obstacle {
	className := cluster.StorageClassOf(claim)
	class := f.Cluster.Snapshot.StorageClass(className)
	if class == nil && className != "" {
		if why := f.Cluster.Snapshot.Unknown(snapshot.ResourceStorageClasses, ""); why != "" {
			f.unevaluated = append(f.unevaluated, Unevaluated{What: fmt.Sprintf("whether PersistentVolumeClaim %s waits for a pod", claim.Name), Why: why})
			return nil
		}
		o.Reason = fmt.Sprintf("PersistentVolumeClaim %s is not bound, and its StorageClass %s does not exist", claim.Name, className)
		o.AddEvidence(name, "spec.storageClassName", className, "a StorageClass")
		o.Step(api.ActorAdmin, "create StorageClass %s, or a PersistentVolume of it", className)
		return o
	}
	if cluster.WaitsForConsumer(claim, class) {
		return nil
	}
	o.Reason = fmt.Sprintf("PersistentVolumeClaim %s is not bound", claim.Name)
	if className != "" {
		o.Reason += fmt.Sprintf(" (StorageClass %s binds immediately)", className)
	} else {
		o.Reason += " and has no StorageClass"
	}
	phase := string(claim.Status.Phase)
	if phase == "" {
		phase = string(corev1.ClaimPending)
	}
	o.AddEvidence(name, "status.phase", phase, string(corev1.ClaimBound))
	o.Step(api.ActorUser, "see what keeps it from being bound: kubectl describe pvc %s -n %s", shell.Quote(claim.Name), shell.Quote(claim.Namespace))
	return o
}

// boundObstacle returns a claim that only one pod can use, or whose volume is gone.
func (f *finder) boundObstacle(o *Obstacle, pod *corev1.Pod, use *cluster.VolumeUse, claim *corev1.PersistentVolumeClaim, name api.ObjectRef) *Obstacle {
	if f.Cluster.Snapshot.Volume(claim.Spec.VolumeName) == nil {
		if why := f.Cluster.Snapshot.Unknown(snapshot.ResourceVolumes, ""); why != "" {
			f.unevaluated = append(f.unevaluated, Unevaluated{What: fmt.Sprintf("where PersistentVolume %s can be used", claim.Spec.VolumeName), Why: why})
		} else {
			o.Reason = fmt.Sprintf("PersistentVolume %s of PersistentVolumeClaim %s does not exist", claim.Spec.VolumeName, claim.Name)
			o.AddEvidence(name, "spec.volumeName", claim.Spec.VolumeName, "a PersistentVolume")
			return o
		}
	}
	if use.Ephemeral || !slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
		return nil
	}
	for _, other := range f.Cluster.Snapshot.Pods {
		if other.Namespace != pod.Namespace || other.Spec.NodeName == "" || snapshot.Finished(other) || other.Name == pod.Name {
			continue
		}
		if slices.ContainsFunc(other.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name
		}) {
			o.Reason = fmt.Sprintf("PersistentVolumeClaim %s is used by pod %s, and only one pod can use it (ReadWriteOncePod)", claim.Name, other.Name)
			o.AddEvidence(api.RefTo(api.KindPod, other), "spec.volumes", claim.Name, "no other pod with it")
			o.Step(api.ActorNobody, "pod %s is finished or deleted", other.Name)
			return o
		}
	}
	return nil
}
