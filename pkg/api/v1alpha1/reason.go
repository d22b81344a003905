// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Verdict is the outcome for a target.
type Verdict string

const (
	// Allocated means that all claims have their devices already.
	Allocated Verdict = "Allocated"
	// Fits means that the allocator finds devices on at least one node, and that
	// nothing that can be seen stops the scheduler from placing the pod there once
	// its scheduling gates, if it has any, are removed: until then, Stage is Queueing.
	Fits Verdict = "Fits"
	// DoesNotFit means that the allocator ran and found nothing.
	DoesNotFit Verdict = "DoesNotFit"
	// Blocked means that there are devices, available or allocated already, and
	// that something else keeps the pod from working: Code says what, Stage where.
	Blocked Verdict = "Blocked"
	// Error means that the allocator, or what comes before it in the
	// scheduler, fails, so that no node can be tried.
	Error Verdict = "Error"
	// Undetermined means that something decisive could not be known.
	Undetermined Verdict = "Undetermined"
)

// Stage is a step in the life of a pod with claims, in this order.
type Stage string

// The stages; see the design of the resourceclaim controller, the scheduler's
// dynamicresources plugin and the kubelet's dra manager for who does what.
const (
	StageAdmission       Stage = "Admission"
	StageClaimGeneration Stage = "ClaimGeneration"
	StageQueueing        Stage = "Queueing"
	StageNodeFit         Stage = "NodeFit"
	StageAllocation      Stage = "Allocation"
	StageBinding         Stage = "Binding"
	StageReservation     Stage = "Reservation"
	StagePreparation     Stage = "Preparation"
	StageInjection       Stage = "Injection"
	StageRunning         Stage = "Running"
	StageCleanup         Stage = "Cleanup"
)

// Code is a stable reason code: codes are added, never renamed.
type Code string

// The reason codes.
const (
	NodeNotReachable             Code = "NodeNotReachable"
	NodeUnsuitable               Code = "NodeUnsuitable"
	PoolIncomplete               Code = "PoolIncomplete"
	PoolInvalid                  Code = "PoolInvalid"
	PoolObsolete                 Code = "PoolObsolete"
	ClassNotFound                Code = "ClassNotFound"
	ClassSelectorFalse           Code = "ClassSelectorFalse"
	RequestSelectorFalse         Code = "RequestSelectorFalse"
	SelectorError                Code = "SelectorError"
	DeviceAllocated              Code = "DeviceAllocated"
	DeviceTainted                Code = "DeviceTainted"
	CapacityInsufficient         Code = "CapacityInsufficient"
	CountersExhausted            Code = "CountersExhausted"
	CompatibilityGroupConflict   Code = "CompatibilityGroupConflict"
	AttributeMissing             Code = "AttributeMissing"
	ConstraintUnsatisfiable      Code = "ConstraintUnsatisfiable"
	CountUnsatisfiable           Code = "CountUnsatisfiable"
	RequestsCompete              Code = "RequestsCompete"
	BindingConditionsUnsupported Code = "BindingConditionsUnsupported"
	NodeOperationUnsupported     Code = "NodeOperationUnsupported"
	FeatureDisabled              Code = "FeatureDisabled"
	ClaimLimitExceeded           Code = "ClaimLimitExceeded"
	SearchTimeout                Code = "SearchTimeout"
	AdminAccessDenied            Code = "AdminAccessDenied"
	// PodsCompete means that devices are available, and that pods which are before
	// this one in the scheduling queue get them.
	PodsCompete Code = "PodsCompete"
	// AllocatorError is an error of the allocator that has no code of its own.
	AllocatorError Code = "AllocatorError"
	// AllocatorPanic is a panic of the allocator, which is a bug of it.
	AllocatorPanic Code = "AllocatorPanic"
	// SchedulerBug means that devices are available, and that a bug of the kube-scheduler of
	// the cluster's release keeps the claims from them.
	SchedulerBug Code = "SchedulerBug"
	// ClaimNotReady is a claim that does not exist yet, is being deleted, or
	// belongs to another pod.
	ClaimNotReady Code = "ClaimNotReady"
)

// Reason codes of conditions other than devices, see [Blocked].
const (
	// PodGroupMissing is a PodGroup that the pod names and that does not exist.
	PodGroupMissing Code = "PodGroupMissing"
	// GangIncomplete is a gang of which fewer pods exist, or can be placed, than
	// its minCount.
	GangIncomplete Code = "GangIncomplete"
	// PodGroupMismatch is a PodGroup whose pods differ from it, or from each other, in
	// what the scheduler wants to be the same for all of them.
	PodGroupMismatch Code = "PodGroupMismatch"
	// NotAdmitted means that Kueue holds back a pod, or the object that is to create it.
	NotAdmitted Code = "NotAdmitted"
	// NoPods is something that exists and creates no pods, or not all of them, such as
	// a suspended Job.
	NoPods Code = "NoPods"
	// PodRefused is a workload whose pods the API server refuses.
	PodRefused Code = "PodRefused"
	// QuotaExceeded is a ResourceQuota that refuses the claim or the pod.
	QuotaExceeded Code = "QuotaExceeded"
	// LimitRangeViolated is a LimitRange that refuses the pod.
	LimitRangeViolated Code = "LimitRangeViolated"
	// VolumeNotReady is a PersistentVolumeClaim that is missing, being deleted or
	// not bound.
	VolumeNotReady Code = "VolumeNotReady"
	// PreparationFailed is a driver, or the kubelet, that fails to prepare devices.
	PreparationFailed Code = "PreparationFailed"
	// BindingPending is a device whose binding conditions are not true yet, or
	// that failed to bind.
	BindingPending Code = "BindingPending"
	// DeviceMissing is an allocated device that no ResourceSlice has any more.
	DeviceMissing Code = "DeviceMissing"
	// DeviceUnhealthy is an allocated device that its driver calls unhealthy.
	DeviceUnhealthy Code = "DeviceUnhealthy"
	// InjectionFailed is a container runtime that does not find the CDI devices of
	// a container.
	InjectionFailed Code = "InjectionFailed"
	// PodNotStarted is a pod on its node that has no sandbox: one could not be
	// created, or nothing happens.
	PodNotStarted Code = "PodNotStarted"
	// NodeNotReady is a pod whose node is not ready, or does not exist.
	NodeNotReady Code = "NodeNotReady"
	// DeviceAllocatedTwice is a device that another claim has, too.
	DeviceAllocatedTwice Code = "DeviceAllocatedTwice"
	// EvictionDue is a pod that a taint of its device is about to evict.
	EvictionDue Code = "EvictionDue"
)

// Evidence is one fact: the value of an object at a path, and the required value.
type Evidence struct {
	// Object is "Kind/name" or "Kind/namespace/name".
	Object string `json:"object"`
	// Path is the field in the object, as in JSONPath without the braces.
	Path string `json:"path,omitempty"`
	// Found is the value, Required what it was compared with.
	Found    string `json:"found,omitempty"`
	Required string `json:"required,omitempty"`
	// Count is how many devices this fact rejects; 0 if it is not counted.
	Count int `json:"count,omitempty"`
}
