// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TestReport has the trials of "test" in a cluster, and their results.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type TestReport struct {
	metav1.TypeMeta `json:",inline"`

	// Source names the cluster in a few words.
	Source string `json:"source"`
	// KubernetesVersion is the version of the API server, empty if it is not known.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Namespace is the namespace that was created for the test. It is deleted afterwards.
	Namespace string `json:"namespace,omitempty"`
	// Result is Failed if a trial failed, Unknown if a requested trial was not made,
	// Planned for a dry run, else Passed.
	Result TestResult `json:"result"`
	// Summary is one sentence.
	Summary string `json:"summary"`
	// Trials are in the order in which they were begun.
	Trials []Trial `json:"trials"`
	// Skipped are the trials that were not begun, and why.
	Skipped []SkippedTrial `json:"skipped,omitempty"`
	// Times has the times of the stages, for each class or file with more than one
	// trial.
	Times []StageTimes `json:"times,omitempty"`
	// Left are objects of the test that could not be deleted.
	Left []ObjectRef `json:"left,omitempty"`
	// Interrupted is set if the test ended before all trials were made.
	Interrupted bool `json:"interrupted,omitempty"`
}

// TestResult is the result of a test, or of a part of it.
type TestResult string

const (
	// TestPassed means that it was done and is as expected.
	TestPassed TestResult = "Passed"
	// TestFailed means that it was done and is not as expected.
	TestFailed TestResult = "Failed"
	// TestUnknown means that it was not done, or cannot be known.
	TestUnknown TestResult = "Unknown"
	// TestPlanned means that a dry run would do it.
	TestPlanned TestResult = "Planned"
)

// Trial is one claim with the pod that uses it, from its creation to its end.
type Trial struct {
	// Name is unique in the report: the name of the class or the file, the node if the
	// trial was made for one, and the number of the round.
	Name string `json:"name"`
	// Class is the DeviceClass that the claim names; empty for a claim of a file.
	Class string `json:"class,omitempty"`
	// File has the claim, with the name of the claim or the template in it.
	File string `json:"file,omitempty"`
	// Round counts the trials of the same claim on the same node, from 1 on.
	Round int `json:"round"`
	// Pod and Claim are the names in the namespace of the test.
	Pod   string `json:"pod,omitempty"`
	Claim string `json:"claim,omitempty"`
	// Node is where the pod ran, or, in a dry run, where it would.
	Node string `json:"node,omitempty"`
	// Devices are the allocated devices, or, in a dry run, the predicted ones.
	Devices []AllocatedDevice `json:"devices,omitempty"`
	// Result is Failed if a stage or a check is.
	Result TestResult `json:"result"`
	// Message is one sentence: the failure, or the fact that is not known.
	Message string `json:"message,omitempty"`
	// Started is when the pod was created.
	Started *metav1.Time `json:"started,omitempty"`
	// Stages are all stages, in their order.
	Stages []TrialStage `json:"stages,omitempty"`
	// Checks are the checks that were made, or could not be.
	Checks []TrialCheck `json:"checks,omitempty"`
	// Explanation is the answer of "why" about the pod, if the trial failed.
	Explanation *Explanation `json:"explanation,omitempty"`
}

// TrialStage is one stage of a trial.
type TrialStage struct {
	// Stage names it.
	Stage TrialStageName `json:"stage"`
	// Result is Passed if the stage was reached, Failed for the first stage that was not,
	// and Unknown for later ones.
	Result TestResult `json:"result"`
	// Milliseconds is the time since the stage before. Both are counted from when the
	// program noticed them.
	Milliseconds *int64 `json:"milliseconds,omitempty"`
}

// TrialStageName names a stage of a trial.
type TrialStageName string

const (
	// TrialGenerated means that the resourceclaim controller has made the claim from its
	// template.
	TrialGenerated TrialStageName = "Generated"
	// TrialAllocated means that the scheduler has allocated devices to the claim.
	TrialAllocated TrialStageName = "Allocated"
	// TrialReserved means that the claim is reserved for the pod.
	TrialReserved TrialStageName = "Reserved"
	// TrialScheduled means that the pod is bound to its node.
	TrialScheduled TrialStageName = "Scheduled"
	// TrialPrepared means that the pod has a sandbox: the kubelet makes it after the
	// drivers have prepared the devices.
	TrialPrepared TrialStageName = "Prepared"
	// TrialInjected means that the runtime has created the container, with the CDI devices.
	TrialInjected TrialStageName = "Injected"
	// TrialStarted means that the container runs.
	TrialStarted TrialStageName = "Started"
	// TrialUnprepared means that the pod has ended: the kubelet reports that after the
	// drivers have unprepared the devices.
	TrialUnprepared TrialStageName = "Unprepared"
	// TrialDeallocated means that the claim has no devices any more.
	TrialDeallocated TrialStageName = "Deallocated"
	// TrialCleaned means that neither the pod nor the claim exists any more.
	TrialCleaned TrialStageName = "Cleaned"
)

// TrialCheck is a check during a trial.
type TrialCheck struct {
	// Check names it.
	Check TrialCheckName `json:"check"`
	// Result is Unknown if the check could not be made.
	Result TestResult `json:"result"`
	// Message is one sentence.
	Message string `json:"message"`
	// Evidence proves it.
	Evidence []Evidence `json:"evidence,omitempty"`
}

// TrialCheckName names a check of a trial.
type TrialCheckName string

const (
	// CheckPredicted compares the answer of "why" about the pod before it was created with
	// the scheduler's decision.
	CheckPredicted TrialCheckName = "Predicted"
	// CheckExclusive looks for other claims with the same devices.
	CheckExclusive TrialCheckName = "Exclusive"
	// CheckContainer compares the container with the CDI specs of its devices.
	CheckContainer TrialCheckName = "Container"
	// CheckIsolation looks for the devices in a container of the pod that does not
	// name the claim.
	CheckIsolation TrialCheckName = "Isolation"
	// CheckReleased checks that the devices are free again.
	CheckReleased TrialCheckName = "Released"
	// CheckNode looks on the node for leftovers that the driver and the kubelet should have
	// removed with the claim.
	CheckNode TrialCheckName = "Node"
)

// SkippedTrial is a trial that was not begun.
type SkippedTrial struct {
	// Class, File and Node are as in [Trial].
	Class string `json:"class,omitempty"`
	File  string `json:"file,omitempty"`
	Node  string `json:"node,omitempty"`
	// Reason is the reason.
	Reason SkipReason `json:"reason"`
	// Message is one sentence, with the next step.
	Message string `json:"message"`
}

// SkipReason is the reason why a trial was not begun.
type SkipReason string

const (
	// SkipNoDevices means that the class selects no device of the cluster. Unless it was
	// asked for by name, that is no gap in the test.
	SkipNoDevices SkipReason = "NoDevices"
	// SkipNothingFree means that the claim does not fit now.
	SkipNothingFree SkipReason = "NothingFree"
	// SkipNodeUnfit means that a node, in a test on all nodes, has devices of the driver
	// but the claim does not fit there now. It does not count as a missing trial.
	SkipNodeUnfit SkipReason = "NodeDoesNotFit"
	// SkipLastDevice means that another claim like it would not fit afterwards.
	SkipLastDevice SkipReason = "LastDevice"
	// SkipInUse means that the claim would get a share of a device that is in use.
	SkipInUse SkipReason = "InUse"
	// SkipUndetermined means that it is not known whether the claim fits.
	SkipUndetermined SkipReason = "Undetermined"
	// SkipInterrupted means that the test ended before the trial was begun.
	SkipInterrupted SkipReason = "Interrupted"
)

// StageTimes are the times of one stage over several trials of the same claim.
type StageTimes struct {
	// Class and File are as in [Trial].
	Class string         `json:"class,omitempty"`
	File  string         `json:"file,omitempty"`
	Stage TrialStageName `json:"stage"`
	// Count is the number of trials in which the stage was reached.
	Count int `json:"count"`
	// P50, P90 and P99 are percentiles in milliseconds; Max is the longest time.
	P50 int64 `json:"p50Milliseconds"`
	P90 int64 `json:"p90Milliseconds"`
	P99 int64 `json:"p99Milliseconds"`
	Max int64 `json:"maxMilliseconds"`
}
