// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

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
		// It is about to be created with the pod.
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
