// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// StartStages returns the stages up to a running container, EndStages the stages from the
// deletion of the pod on, in their order: each ends before the next begins.
//
// The scheduler writes allocation and reservation before it binds the pod (PreBind of the
// plugin dynamicresources). The kubelet has the devices prepared before it makes the
// sandbox (SyncPod of pkg/kubelet/kuberuntime), and unprepared before it reports that the
// pod has ended (SyncTerminatingPod of pkg/kubelet).
func StartStages() []api.TrialStageName {
	return []api.TrialStageName{
		api.TrialGenerated, api.TrialAllocated, api.TrialReserved, api.TrialScheduled, api.TrialPrepared, api.TrialInjected, api.TrialStarted,
	}
}

// EndStages returns the stages from the deletion of the pod on, see [StartStages].
func EndStages() []api.TrialStageName {
	return []api.TrialStageName{api.TrialUnprepared, api.TrialDeallocated, api.TrialCleaned}
}

// Record has the observed changes of the pod and the claim of one trial. It is not safe for
// concurrent use.
type Record struct {
	// Name is the name of the pod.
	Name string
	// Pod and Claim have their last state, nil before they existed. Allocation keeps the
	// allocated devices once the claim is released.
	Pod        *corev1.Pod
	Claim      *resourceapi.ResourceClaim
	Allocation *resourceapi.AllocationResult

	created, deleted   time.Time
	podGone, claimGone bool
	givenUp            bool
	at                 map[api.TrialStageName]time.Time
}

// NewRecord returns the record of a pod that is about to be created.
func NewRecord(name string, now time.Time) *Record {
	return &Record{Name: name, created: now, at: map[api.TrialStageName]time.Time{}}
}

// GiveUp records that the pod did not start in time: it has failed, even if it starts
// before it is deleted.
func (r *Record) GiveUp() { r.givenUp = true }

// DeletePod records that the pod is about to be deleted.
func (r *Record) DeletePod(now time.Time) { r.deleted = now }

// SeePod records a change of a pod, if it is this one.
func (r *Record) SeePod(pod *corev1.Pod, gone bool, at time.Time) {
	if pod.Name != r.Name {
		return
	}
	r.Pod, r.podGone = pod, gone
	for i := range pod.Status.ResourceClaimStatuses {
		if pod.Status.ResourceClaimStatuses[i].ResourceClaimName != nil {
			r.reach(StartStages(), api.TrialGenerated, at)
		}
	}
	if pod.Spec.NodeName != "" {
		r.reach(StartStages(), api.TrialScheduled, at)
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionTrue {
			r.reach(StartStages(), api.TrialPrepared, at)
		}
	}
	if status := r.container(); status != nil && status.State.Running != nil {
		r.reach(StartStages(), api.TrialStarted, at)
	}
	if gone || snapshot.Finished(pod) {
		r.reach(EndStages(), api.TrialUnprepared, at)
	}
	r.finish(at)
}

// SeeClaim records a change of a claim, if it is the claim of the pod.
func (r *Record) SeeClaim(claim *resourceapi.ResourceClaim, gone bool, at time.Time) {
	if !slices.ContainsFunc(claim.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.Kind == api.KindPod && owner.Name == r.Name }) {
		return
	}
	r.Claim, r.claimGone = claim, gone
	r.reach(StartStages(), api.TrialGenerated, at)
	if claim.Status.Allocation != nil {
		r.Allocation = claim.Status.Allocation
		r.reach(StartStages(), api.TrialAllocated, at)
	}
	if slices.ContainsFunc(claim.Status.ReservedFor, func(c resourceapi.ResourceClaimConsumerReference) bool {
		return c.Resource == "pods" && c.Name == r.Name
	}) {
		r.reach(StartStages(), api.TrialReserved, at)
	}
	if r.Allocation != nil && (gone || claim.Status.Allocation == nil) {
		r.reach(EndStages(), api.TrialDeallocated, at)
	}
	r.finish(at)
}

// SeeEvent records an event about the pod: the kubelet first reports there that it has
// created a container. An image is only pulled once there is a sandbox.
func (r *Record) SeeEvent(event *corev1.Event, at time.Time) {
	about := &event.InvolvedObject
	if about.Kind != api.KindPod || about.Name != r.Name || r.Pod == nil || about.UID != r.Pod.UID {
		return
	}
	ofClaim := strings.HasSuffix(about.FieldPath, "{"+ClaimContainer+"}")
	switch event.Reason {
	case "Pulling", "Pulled":
		r.reach(StartStages(), api.TrialPrepared, at)
	case "Created":
		if ofClaim {
			r.reach(StartStages(), api.TrialInjected, at)
		}
	case "Started":
		if ofClaim {
			r.reach(StartStages(), api.TrialStarted, at)
		}
	}
}

// reach records a stage, and with it unreported earlier ones.
func (r *Record) reach(all []api.TrialStageName, stage api.TrialStageName, at time.Time) {
	if r.givenUp && all[0] == api.TrialGenerated {
		return
	}
	for _, s := range all {
		if _, reached := r.at[s]; !reached {
			r.at[s] = at
		}
		if s == stage {
			return
		}
	}
}

func (r *Record) finish(at time.Time) {
	// A claim that was never made is gone, too.
	if r.podGone && (r.claimGone || r.Claim == nil) {
		r.reach(EndStages(), api.TrialCleaned, at)
	}
}

// Reached reports whether a stage was reached.
func (r *Record) Reached(stage api.TrialStageName) bool {
	_, reached := r.at[stage]
	return reached
}

// Hopeless says why the container will never run, empty if it may. unfit is set if devices
// are not the reason.
func (r *Record) Hopeless() (reason string, unfit bool) {
	switch {
	case r.podGone, r.Pod != nil && r.Pod.DeletionTimestamp != nil && r.deleted.IsZero():
		return "somebody else has deleted the pod", true
	case r.Pod == nil:
		return "", false
	case r.Pod.Status.Phase == corev1.PodFailed:
		return strings.TrimSuffix(fmt.Sprintf("the pod has failed: %s: %s", r.Pod.Status.Reason, r.Pod.Status.Message), ": "), false
	case r.Pod.Status.Phase == corev1.PodSucceeded:
		return "the containers have ended at once", true
	}
	for i := range r.Pod.Status.ContainerStatuses {
		waiting := r.Pod.Status.ContainerStatuses[i].State.Waiting
		if waiting == nil {
			continue
		}
		switch waiting.Reason {
		case "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName":
			return fmt.Sprintf("the image cannot be used (%s: %s); choose one that the node has or can pull with --image", waiting.Reason, waiting.Message), true
		}
	}
	return "", false
}

// container returns the status of the container with the claim, nil if there is none.
func (r *Record) container() *corev1.ContainerStatus {
	if r.Pod == nil {
		return nil
	}
	for i := range r.Pod.Status.ContainerStatuses {
		if status := &r.Pod.Status.ContainerStatuses[i]; status.Name == ClaimContainer {
			return status
		}
	}
	return nil
}

// Running reports whether both containers run.
func (r *Record) Running() bool {
	if r.Pod == nil || len(r.Pod.Status.ContainerStatuses) != len(r.Pod.Spec.Containers) {
		return false
	}
	return !slices.ContainsFunc(r.Pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.State.Running == nil })
}

// Stages returns all stages, with the time that each took. The end stages are Unknown
// before the pod was deleted.
func (r *Record) Stages() []api.TrialStage {
	stages := r.stagesFrom(StartStages(), r.created, true)
	return append(stages, r.stagesFrom(EndStages(), r.deleted, !r.deleted.IsZero())...)
}

func (r *Record) stagesFrom(names []api.TrialStageName, from time.Time, begun bool) []api.TrialStage {
	var stages []api.TrialStage
	for _, name := range names {
		stage := api.TrialStage{Stage: name, Result: api.TestUnknown}
		at, reached := r.at[name]
		switch {
		case begun && reached:
			stage.Result = api.TestPassed
			stage.Milliseconds = ptr.To(max(at.Sub(from).Milliseconds(), 0))
			from = at
		case begun:
			stage.Result, begun = api.TestFailed, false
		}
		stages = append(stages, stage)
	}
	return stages
}

// Devices returns the allocated devices.
func (r *Record) Devices() []api.AllocatedDevice {
	if r.Allocation == nil {
		return nil
	}
	var devices []api.AllocatedDevice
	for i := range r.Allocation.Devices.Results {
		result := &r.Allocation.Devices.Results[i]
		device := api.AllocatedDevice{Request: result.Request, Driver: result.Driver, Pool: result.Pool, Device: result.Device}
		if result.ShareID != nil {
			device.ShareID = string(*result.ShareID)
		}
		devices = append(devices, device)
	}
	return devices
}
