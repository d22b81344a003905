// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TestReport has the trials of "test" in a cluster, and their results.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type TestReport struct {
	metav1.TypeMeta `json:",inline"`

	// Source says in a few words which cluster it was.
	Source string `json:"source"`
	// KubernetesVersion is the version of the API server, empty if it is not known.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Namespace is the namespace that was created for the test. It is deleted afterwards.
	Namespace string `json:"namespace,omitempty"`
	// Result is Failed if a trial failed, Unknown if something that was asked for was
	// not tried, Planned for a dry run, else Passed.
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
	// Left are objects of the test that could not be deleted, as "Kind/name" or
	// "Kind/namespace/name".
	Left []string `json:"left,omitempty"`
	// Interrupted is set if the test was ended before all trials were made.
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
	// Stages are all that there are, in their order.
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
	// Milliseconds is how long it took since the stage before. Both are counted from
	// when the program heard of them.
	Milliseconds *int64 `json:"milliseconds,omitempty"`
}

// TrialStageName names a stage of a trial.
type TrialStageName string

const (
	// TrialGenerated is a claim that the resourceclaim controller has made from its
	// template.
	TrialGenerated TrialStageName = "Generated"
	// TrialAllocated is a claim to which the scheduler has allocated devices.
	TrialAllocated TrialStageName = "Allocated"
	// TrialReserved is a claim that is reserved for the pod.
	TrialReserved TrialStageName = "Reserved"
	// TrialScheduled is a pod that is bound to its node.
	TrialScheduled TrialStageName = "Scheduled"
	// TrialPrepared is a pod with a sandbox: the kubelet makes it after the drivers
	// have prepared the devices.
	TrialPrepared TrialStageName = "Prepared"
	// TrialInjected is a container that the runtime has created, with the CDI devices.
	TrialInjected TrialStageName = "Injected"
	// TrialStarted is a container that runs.
	TrialStarted TrialStageName = "Started"
	// TrialUnprepared is a pod that has ended: the kubelet reports that after the
	// drivers have unprepared the devices.
	TrialUnprepared TrialStageName = "Unprepared"
	// TrialDeallocated is a claim that has no devices any more.
	TrialDeallocated TrialStageName = "Deallocated"
	// TrialCleaned is a trial of which neither pod nor claim is left.
	TrialCleaned TrialStageName = "Cleaned"
)

// TrialCheck is something that was looked at during a trial.
type TrialCheck struct {
	// Check names it.
	Check TrialCheckName `json:"check"`
	// Result is Unknown if it could not be looked at.
	Result TestResult `json:"result"`
	// Message is one sentence.
	Message string `json:"message"`
	// Evidence proves it.
	Evidence []Evidence `json:"evidence,omitempty"`
}

// TrialCheckName names a check of a trial.
type TrialCheckName string

const (
	// CheckPredicted compares what "why" said about the pod before it was created with
	// what the scheduler did.
	CheckPredicted TrialCheckName = "Predicted"
	// CheckExclusive looks for other claims with the same devices.
	CheckExclusive TrialCheckName = "Exclusive"
	// CheckContainer compares the container with the CDI specs of its devices.
	CheckContainer TrialCheckName = "Container"
	// CheckIsolation looks for the devices in a container of the pod that does not
	// name the claim.
	CheckIsolation TrialCheckName = "Isolation"
	// CheckReleased looks whether the devices are free again.
	CheckReleased TrialCheckName = "Released"
	// CheckNode looks on the node for what the driver and the kubelet should have
	// removed with the claim.
	CheckNode TrialCheckName = "Node"
)

// SkippedTrial is a trial that was not begun.
type SkippedTrial struct {
	// Class, File and Node are as in [Trial].
	Class string `json:"class,omitempty"`
	File  string `json:"file,omitempty"`
	Node  string `json:"node,omitempty"`
	// Reason is why it was not.
	Reason SkipReason `json:"reason"`
	// Message is one sentence, with what can be done.
	Message string `json:"message"`
}

// SkipReason is why a trial was not begun.
type SkipReason string

const (
	// SkipNoDevices is a class that selects no device of the cluster. Unless it was
	// asked for by name, that is no gap in the test.
	SkipNoDevices SkipReason = "NoDevices"
	// SkipNothingFree is a claim that does not fit now.
	SkipNothingFree SkipReason = "NothingFree"
	// SkipNodeUnfit is a node, of a test on all nodes, that has devices of the driver and
	// where the claim does not fit now. It does not count as something that was not tried
	// out.
	SkipNodeUnfit SkipReason = "NodeDoesNotFit"
	// SkipLastDevice is a claim after which another one like it would not fit.
	SkipLastDevice SkipReason = "LastDevice"
	// SkipInUse is a claim that would get a share of a device that is in use.
	SkipInUse SkipReason = "InUse"
	// SkipUndetermined is a claim of which it is not known whether it fits.
	SkipUndetermined SkipReason = "Undetermined"
	// SkipInterrupted is a trial that was not begun before the test was ended.
	SkipInterrupted SkipReason = "Interrupted"
)

// StageTimes are the times of one stage over several trials of the same claim.
type StageTimes struct {
	// Class and File are as in [Trial].
	Class string         `json:"class,omitempty"`
	File  string         `json:"file,omitempty"`
	Stage TrialStageName `json:"stage"`
	// Count is in how many trials the stage was reached.
	Count int `json:"count"`
	// P50, P90 and P99 are percentiles: so many percent of the trials took at most
	// that many milliseconds. Max is the longest of all.
	P50 int64 `json:"p50Milliseconds"`
	P90 int64 `json:"p90Milliseconds"`
	P99 int64 `json:"p99Milliseconds"`
	Max int64 `json:"maxMilliseconds"`
}
