// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/hints"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// obstacle is something other than devices that keeps a pod from being placed,
// whatever the node.
type obstacle struct {
	code api.Code
	// stage is where the pod stands because of it, empty for one that cannot even
	// be created.
	stage api.Stage
	lifecycle.Finding
}

// unevaluated is something that may be in the way of a pod, and that is not known.
type unevaluated struct {
	what, why string
	// always is set if it is told whatever the verdict, and not only of what fits.
	always bool
	// quiet is set if it is no part of the summary.
	quiet bool
}

func (u unevaluated) String() string { return fmt.Sprintf("%s (%s)", u.what, u.why) }

// obstacles finds all of them for the pod of the question, in the order in which
// the pod meets them: its creation, that of its claims, the scheduling queue, the
// filters. What could not be read is noted as not evaluated.
func (x *inquiry) obstacles(ctx context.Context) ([]obstacle, error) {
	pod := x.Pod
	found := x.refusals()
	if pod == nil || !lifecycle.Waits(pod) {
		return found, nil
	}
	gang, err := x.gangObstacles(ctx, pod)
	if err != nil {
		return nil, err
	}
	return slices.Concat(found, gang, x.volumeObstacles(pod)), nil
}

// meetObstacles turns "it fits" into [api.Blocked] if something else than devices is in the
// way. Where there are no devices either, it is a hint.
func (x *inquiry) meetObstacles(ctx context.Context) error {
	obstacles, err := x.obstacles(ctx)
	if err != nil {
		return err
	}
	switch {
	case len(obstacles) == 0:
	case x.out.Verdict == api.Fits, x.out.Verdict == api.Allocated:
		x.out.Verdict, x.out.Code, x.out.Summary = api.Blocked, obstacles[0].code, ""
		x.blockedBy = obstacles
		return nil
	case !x.target.VerdictOnly:
		for _, o := range obstacles {
			x.out.Hints = append(x.out.Hints, api.Hint{Text: "Besides, " + o.Reason, Evidence: o.Evidence})
		}
	}
	if x.out.Verdict == api.Fits {
		x.nameUnknowns()
	}
	return nil
}

// nameUnknowns adds to the summary of a pod that fits what was not evaluated
// and matters to it, and that the scheduler said otherwise.
func (x *inquiry) nameUnknowns() {
	pod := x.Pod
	if pod == nil {
		return
	}
	parts := x.Cluster.Alloc.Facts.Nodes.Unevaluated(pod)
	for _, u := range x.unevaluated {
		if !u.quiet {
			parts = append(parts, u.String())
		}
	}
	if len(parts) > 0 {
		x.out.Summary += "; not evaluated: " + strings.Join(parts, ", ")
	}
	for _, gap := range x.Snap.Gaps {
		if gap.LeftOut && slices.Contains([]string{snapshot.ResourceNodes, snapshot.ResourcePods, snapshot.ResourceTemplates}, gap.Resource) {
			x.out.Summary += "; " + gap.Reason
		}
	}
	c := lifecycle.PodCondition(pod, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason == corev1.PodReasonSchedulingGated || !lifecycle.Waits(pod) || len(pod.Spec.SchedulingGates) > 0 {
		return
	}
	when := c.LastTransitionTime
	if said := lifecycle.SchedulerMessage(x.Snap, pod); said != nil && said.Time != nil && said.Time.After(when.Time) {
		when = *said.Time
	}
	x.out.Summary += "; the scheduler last said otherwise"
	if !when.IsZero() {
		x.out.Summary += fmt.Sprintf(" (%s)", when.UTC().Format(time.RFC3339))
	}
}

// volumeObstacles are PersistentVolumeClaims without which no node is tried
// (PreFilter of the plugins volumebinding and volumerestrictions).
func (x *inquiry) volumeObstacles(pod *corev1.Pod) []obstacle {
	uses := cluster.VolumesOf(x.Snap, pod)
	if len(uses) == 0 {
		return nil
	}
	if why := x.Snap.Unknown(snapshot.ResourceVolumeClaims, pod.Namespace); why != "" {
		x.unevaluated = append(x.unevaluated, unevaluated{what: "volumes", why: why})
		return nil
	}
	var obstacles []obstacle
	for i := range uses {
		if o := x.volumeObstacle(pod, &uses[i]); o != nil {
			obstacles = append(obstacles, *o)
		}
	}
	return obstacles
}

func (x *inquiry) volumeObstacle(pod *corev1.Pod, use *cluster.VolumeUse) *obstacle {
	o := &obstacle{code: api.VolumeNotReady, stage: api.StageNodeFit}
	claim, name := use.Claim, whatif.Object("PersistentVolumeClaim", pod.Namespace, use.Name)
	switch {
	case claim == nil && use.Ephemeral:
		if x.target.Hypothetical || !lifecycle.Overdue(x.Snap, pod.CreationTimestamp.Time) {
			// It is created right after the pod.
			return nil
		}
		o.Reason = fmt.Sprintf("PersistentVolumeClaim %s for the ephemeral volume %s has not been created yet", use.Name, use.Volume)
		o.Prove(name, "", "missing", "a PersistentVolumeClaim")
		o.Step(api.ActorAdmin, "check that kube-controller-manager runs: its ephemeral volume controller creates PersistentVolumeClaims")
	case claim == nil:
		var names []string
		for _, other := range x.Snap.VolumeClaims {
			if other.Namespace == pod.Namespace {
				names = append(names, other.Name)
			}
		}
		o.Reason = fmt.Sprintf("PersistentVolumeClaim %s does not exist%s", use.Name, naming.DidYouMean(use.Name, names))
		o.Prove(name, "", "missing", "a PersistentVolumeClaim for volume "+use.Volume)
		o.Step(api.ActorUser, "create PersistentVolumeClaim %s in namespace %s, or name another one", use.Name, pod.Namespace)
	case claim.UID == "" && claim.CreationTimestamp.IsZero():
		// It is about to be created with the pod.
		return nil
	case claim.Status.Phase == corev1.ClaimLost:
		o.Reason = fmt.Sprintf("PersistentVolumeClaim %s is lost: its PersistentVolume %s does not exist", use.Name, claim.Spec.VolumeName)
		o.Prove(name, "status.phase", string(claim.Status.Phase), string(corev1.ClaimBound))
		o.Step(api.ActorUser, "replace PersistentVolumeClaim %s: one that is lost is never bound again", use.Name)
	case claim.DeletionTimestamp != nil:
		o.Reason = fmt.Sprintf("PersistentVolumeClaim %s is being deleted", use.Name)
		o.Prove(name, "metadata.deletionTimestamp", claim.DeletionTimestamp.UTC().Format(time.RFC3339), "none")
		o.Step(api.ActorUser, "name another PersistentVolumeClaim, or create it again once it is gone")
	case use.Ephemeral && !metav1.IsControlledBy(claim, pod):
		o.Reason = fmt.Sprintf("PersistentVolumeClaim %s has the name that the ephemeral volume %s needs, and was not created for the pod", use.Name, use.Volume)
		o.Prove(name, "metadata.ownerReferences", "", "pod "+pod.Name)
		o.Step(api.ActorUser, "delete PersistentVolumeClaim %s, or rename the pod or its volume", use.Name)
	case !cluster.VolumeBound(claim):
		return x.unboundObstacle(o, claim, name)
	default:
		return x.boundObstacle(o, pod, use, claim, name)
	}
	return o
}

// unboundObstacle is a claim that is not bound, and that the scheduler does not
// bind.
func (x *inquiry) unboundObstacle(o *obstacle, claim *corev1.PersistentVolumeClaim, name string) *obstacle {
	className := cluster.StorageClassOf(claim)
	class := x.Snap.StorageClass(className)
	if class == nil && className != "" {
		if why := x.Snap.Unknown(snapshot.ResourceStorageClasses, ""); why != "" {
			x.unevaluated = append(x.unevaluated, unevaluated{what: fmt.Sprintf("whether PersistentVolumeClaim %s waits for a pod", claim.Name), why: why})
			return nil
		}
		o.Reason = fmt.Sprintf("PersistentVolumeClaim %s is not bound, and its StorageClass %s does not exist", claim.Name, className)
		o.Prove(name, "spec.storageClassName", className, "a StorageClass")
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
	o.Prove(name, "status.phase", phase, string(corev1.ClaimBound))
	o.Step(api.ActorUser, "see what keeps it from being bound: kubectl describe pvc %s -n %s", shell.Quote(claim.Name), shell.Quote(claim.Namespace))
	return o
}

// boundObstacle is a claim that only one pod can use, or whose volume is gone.
func (x *inquiry) boundObstacle(o *obstacle, pod *corev1.Pod, use *cluster.VolumeUse, claim *corev1.PersistentVolumeClaim, name string) *obstacle {
	if x.Snap.Volume(claim.Spec.VolumeName) == nil {
		if why := x.Snap.Unknown(snapshot.ResourceVolumes, ""); why != "" {
			x.unevaluated = append(x.unevaluated, unevaluated{what: fmt.Sprintf("where PersistentVolume %s can be used", claim.Spec.VolumeName), why: why})
		} else {
			o.Reason = fmt.Sprintf("PersistentVolume %s of PersistentVolumeClaim %s does not exist", claim.Spec.VolumeName, claim.Name)
			o.Prove(name, "spec.volumeName", claim.Spec.VolumeName, "a PersistentVolume")
			return o
		}
	}
	if use.Ephemeral || !slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
		return nil
	}
	for _, other := range x.Snap.Pods {
		if other.Namespace != pod.Namespace || other.Spec.NodeName == "" || lifecycle.Finished(other) || other.Name == pod.Name {
			continue
		}
		if slices.ContainsFunc(other.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name
		}) {
			o.Reason = fmt.Sprintf("PersistentVolumeClaim %s is used by pod %s, and only one pod can use it (ReadWriteOncePod)", claim.Name, other.Name)
			o.Prove(whatif.PodObject(other), "spec.volumes", claim.Name, "no other pod with it")
			o.Step(api.ActorNobody, "pod %s is finished or deleted", other.Name)
			return o
		}
	}
	return nil
}

// isPodGroupMissing reports whether the only problem of a claim is that of the
// pod's group.
func isPodGroupMissing(pc *cluster.PodClaim) bool {
	return pc.Claim != nil && errors.Is(pc.Problem, cluster.ErrPodGroupMissing) && !errors.Is(pc.Problem, cluster.ErrClaimMissing)
}

// blockedLife is where a pod stands that something else than devices blocks.
// What else was found about it is evidence: it is the same thing in other words.
func (x *inquiry) blockedLife(own lifecycle.Life) lifecycle.Life {
	blocked := lifecycle.Life{Stage: x.blockedBy[0].stage}
	for i := range x.blockedBy {
		blocked.Findings = append(blocked.Findings, x.blockedBy[i].Finding)
	}
	if pod := x.Pod; pod != nil {
		blocked.Findings = append(blocked.Findings, lifecycle.GateFindings(pod, hints.SaysQueue(x.Question, x.target.Object))...)
	}
	for _, f := range own.Findings {
		f.Reason = ""
		blocked.Findings = append(blocked.Findings, f)
	}
	return blocked
}
