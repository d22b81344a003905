// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Verdict is the outcome for a target.
type Verdict string

const (
	// Allocated means that all claims have their devices already.
	Allocated Verdict = "Allocated"
	// Fits means that the allocator finds devices on at least one node, and
	// nothing that can be seen stops the scheduler from placing the pod there once its
	// scheduling gates, if it has any, are removed: until then, Stage is Queueing.
	Fits Verdict = "Fits"
	// DoesNotFit means that the allocator ran and found nothing.
	DoesNotFit Verdict = "DoesNotFit"
	// Blocked means that devices are available, or allocated already, and something
	// else keeps the pod from working: Code says what, Stage where.
	Blocked Verdict = "Blocked"
	// Error means that the allocator, or an earlier step in the scheduler, fails, so that
	// no node can be tried.
	Error Verdict = "Error"
	// Undetermined means that something decisive is not known.
	Undetermined Verdict = "Undetermined"
)

// Stage is a step in the life of a pod with claims, in this order.
type Stage string

// Stages in the life of a pod; see the design of the resourceclaim controller, the
// scheduler's dynamicresources plugin and the kubelet's dra manager for who does what.
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

// Reason codes.
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
	// PodsCompete means that devices are available, but pods before this one in the
	// scheduling queue get them.
	PodsCompete Code = "PodsCompete"
	// AllocatorError means that the allocator returned an error without a code of its own.
	AllocatorError Code = "AllocatorError"
	// AllocatorPanic means that the allocator panicked, which is a bug.
	AllocatorPanic Code = "AllocatorPanic"
	// SchedulerBug means that devices are available, but a bug in the cluster's release of
	// kube-scheduler keeps the claims from them.
	SchedulerBug Code = "SchedulerBug"
	// ClaimNotReady means that a claim does not exist yet, is refused by the API server, is
	// being deleted, or belongs to another pod.
	ClaimNotReady Code = "ClaimNotReady"
)

// Reason codes of conditions other than devices, see [Blocked].
const (
	// PodGroupMissing means that the pod names a PodGroup that does not exist.
	PodGroupMissing Code = "PodGroupMissing"
	// GangIncomplete means that fewer pods of a gang exist, or can be placed, than its
	// minCount.
	GangIncomplete Code = "GangIncomplete"
	// PodGroupMismatch means that pods differ from their PodGroup, or from each other, in
	// fields that the scheduler wants to be the same for all of them.
	PodGroupMismatch Code = "PodGroupMismatch"
	// NotAdmitted means that Kueue holds back a pod, or the object that is to create it.
	NotAdmitted Code = "NotAdmitted"
	// NoPods means that an object, such as a suspended Job, creates no pods, or not all of
	// them.
	NoPods Code = "NoPods"
	// PodRefused means that the API server refuses the pods of a workload.
	PodRefused Code = "PodRefused"
	// QuotaExceeded means that a ResourceQuota refuses the claim or the pod.
	QuotaExceeded Code = "QuotaExceeded"
	// LimitRangeViolated means that a LimitRange refuses the pod.
	LimitRangeViolated Code = "LimitRangeViolated"
	// VolumeNotReady means that a PersistentVolumeClaim is missing, being deleted or not
	// bound.
	VolumeNotReady Code = "VolumeNotReady"
	// PreparationFailed means that a driver, or the kubelet, fails to prepare devices.
	PreparationFailed Code = "PreparationFailed"
	// BindingPending means that the binding conditions of a device are not true yet, or
	// that it failed to bind.
	BindingPending Code = "BindingPending"
	// DeviceMissing means that an allocated device is in no ResourceSlice any more.
	DeviceMissing Code = "DeviceMissing"
	// DeviceUnhealthy means that the driver of an allocated device calls it unhealthy.
	DeviceUnhealthy Code = "DeviceUnhealthy"
	// InjectionFailed means that the container runtime does not find the CDI devices of a
	// container.
	InjectionFailed Code = "InjectionFailed"
	// PodNotStarted means that a pod on its node has no sandbox: one could not be created,
	// or nothing happens.
	PodNotStarted Code = "PodNotStarted"
	// NodeNotReady means that the node of a pod is not ready, or does not exist.
	NodeNotReady Code = "NodeNotReady"
	// DeviceAllocatedTwice means that another claim has the device, too.
	DeviceAllocatedTwice Code = "DeviceAllocatedTwice"
	// EvictionDue means that a taint of its device is about to evict the pod.
	EvictionDue Code = "EvictionDue"
)

// Evidence is one fact: the value of an object at a path, and the required value.
type Evidence struct {
	// Object is the object with the value.
	Object ObjectRef `json:"object"`
	// Path is the field in the object, as in JSONPath without the braces.
	Path string `json:"path,omitempty"`
	// Found is the value, Required the value that it was compared with.
	Found    string `json:"found,omitempty"`
	Required string `json:"required,omitempty"`
	// Count is the number of devices that this fact rejects; 0 if it is not counted.
	Count int `json:"count,omitempty"`
}
