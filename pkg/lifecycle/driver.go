// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/version"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// failedCall is a call of a driver that ended without an answer about any claim.
type failedCall struct {
	// code is the gRPC code: Unavailable, DeadlineExceeded.
	code string
	// words are the error's message.
	words string
}

// prepareCall returns the failed call of a driver in a message of the kubelet
// (PrepareResources of pkg/kubelet/cm/dra, since 1.31).
func prepareCall(message string) (call failedCall, ok bool) {
	_, rest, found := strings.Cut(message, "NodePrepareResources: rpc error: code = ")
	if !found {
		return failedCall{}, false
	}
	call.code, call.words, _ = strings.Cut(rest, " desc = ")
	return call, call.code != ""
}

// The kubelet waits this long for a driver (pkg/kubelet/cm/dra/plugin).
const prepareTimeout = "45s"

// noAnswer completes the finding about a driver that did not answer the kubelet's call.
func noAnswer(snap *snapshot.Snapshot, f *Finding, pod *corev1.Pod, claims []cluster.PodClaim, event *corev1.Event, call failedCall) {
	node := pod.Spec.NodeName
	drivers := calledFor(claims, "")
	// The path of its socket is DRIVER/dra.sock, if the driver is on the helper.
	if i := slices.IndexFunc(drivers, func(driver string) bool { return strings.Contains(call.words, "/"+driver+"/") }); i >= 0 {
		drivers = drivers[i : i+1]
	}
	who := "driver " + english.JoinOr(drivers)
	if len(drivers) == 0 {
		who = "the driver"
	}
	since := unanswered(snap, pod, event)
	switch call.code {
	case "Unavailable":
		f.Reason = fmt.Sprintf("%s on node %s does not answer the kubelet%s: %s: %s", who, node, since, call.code, call.words)
	case "DeadlineExceeded":
		f.Reason = fmt.Sprintf("%s on node %s does not prepare the devices within the %s that the kubelet waits for it%s: %s", who, node, prepareTimeout, since, call.code)
	default:
		f.Reason = fmt.Sprintf("%s on node %s fails to prepare the devices%s: %s: %s", who, node, since, call.code, call.words)
	}
	for _, driver := range drivers {
		addAbsence(snap, f, driver, node)
	}
	if !driverPods(snap, f, drivers, node) {
		f.Step(api.ActorAdmin, "check that the pod of %s runs on node %s, and its log; the kubelet retries", who, node)
	}
	f.Step(api.ActorNobody, "the kubelet has the driver registered, and retries: the pod starts when the driver answers")
}

// unanswered says since when calls of the drivers of a pod fail, how often, and when the
// last one did: an absent driver causes several messages.
func unanswered(snap *snapshot.Snapshot, pod *corev1.Pod, last *corev1.Event) string {
	total := *last.DeepCopy()
	total.Count = 0
	for _, event := range podEvents(snap, pod) {
		if event.Reason != reasonPrepare || !sinceSandbox(pod, event) {
			continue
		}
		if _, ok := prepareCall(unwrapped(event.Message)); !ok {
			continue
		}
		total.Count += max(reports(event), 1)
		if first := firstTime(event); !first.IsZero() && first.Before(firstTime(&total)) {
			total.FirstTimestamp.Time = first
		}
	}
	total.Series = nil
	total.LastTimestamp = EventTime(last)
	return repeated(snap, &total)
}

// calledFor lists the drivers that the kubelet calls to prepare a claim of the pod, or all
// of its claims for an empty name.
func calledFor(claims []cluster.PodClaim, name string) []string {
	var drivers []string
	for i := range claims {
		if claim := claims[i].Claim; claim != nil && (name == "" || claim.Name == name) {
			drivers = append(drivers, driversOf(claim, resourceapi.SkipNodeOperationNodePrepareResources)...)
		}
	}
	slices.Sort(drivers)
	return slices.Compact(drivers)
}

// driverPods adds the state of the drivers' pods on a node, if the DaemonSets of the
// drivers are known. It reports whether it adds a next step.
func driverPods(snap *snapshot.Snapshot, f *Finding, drivers []string, node string) bool {
	advised := false
	for _, driver := range drivers {
		for _, set := range DaemonSets(snap, driver) {
			pods := Pods(snap, set.Workload)
			i := slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return DaemonNode(pod) == node })
			switch {
			case i < 0:
				f.Reason += fmt.Sprintf("; %s has no pod on node %s", set, node)
				f.AddEvidence(DaemonObject(set), "spec.template.spec.nodeName", "no pod on node "+node, "a pod on each node with the devices")
				f.Step(api.ActorAdmin, "make %s run a pod on node %s: compare its nodeSelector, affinity and tolerations with the labels and taints of the node", set, node)
			case !Ready(pods[i]):
				state, evidence := PodTrouble(pods[i])
				f.Reason += fmt.Sprintf("; its pod %s is not ready: %s", english.QualifiedName(pods[i]), state)
				f.Evidence = append(f.Evidence, evidence)
				f.Step(api.ActorAdmin, "repair pod %s of the driver: kubectl logs %s -n %s --all-containers --previous", english.QualifiedName(pods[i]), shell.Quote(pods[i].Name), shell.Quote(pods[i].Namespace))
			default:
				f.Reason += fmt.Sprintf("; its pod %s runs and is ready", english.QualifiedName(pods[i]))
				f.AddEvidence(api.RefTo(api.KindPod, pods[i]), "status.conditions[type=Ready].status", "True", "")
				f.Step(api.ActorAdmin, "check the log of pod %s of the driver, and restart it if it hangs: kubectl logs %s -n %s --all-containers", english.QualifiedName(pods[i]), shell.Quote(pods[i].Name), shell.Quote(pods[i].Namespace))
			}
			advised = true
		}
	}
	return advised
}

// unwrapped returns the inner error of a message about preparation.
func unwrapped(message string) string {
	for _, wrapping := range []string{"Failed to prepare dynamic resources: ", "prepare dynamic resources: ", "prepare DRA plugin: "} {
		message = strings.TrimPrefix(message, wrapping)
	}
	return message
}

// driversOf lists the drivers of an allocated claim that the kubelet calls for an operation
// (computeDriverStates of pkg/kubelet/cm/dra), or all of them for no operation.
func driversOf(claim *resourceapi.ResourceClaim, operation resourceapi.SkipNodeOperation) []string {
	var drivers []string
	if claim.Status.Allocation == nil {
		return nil
	}
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		skips := operation != "" && (slices.Contains(result.SkipNodeOperations, operation) || slices.Contains(result.SkipNodeOperations, resourceapi.SkipNodeOperationAll))
		if !skips && !slices.Contains(drivers, result.Driver) {
			drivers = append(drivers, result.Driver)
		}
	}
	return drivers
}

// addAbsence adds to a finding that a driver publishes nothing for a node, and reports
// whether that is the case.
func addAbsence(snap *snapshot.Snapshot, f *Finding, driver, node string) bool {
	serves := func(s *resourceapi.ResourceSlice) bool {
		return s.Spec.Driver == driver && (s.Spec.NodeName == nil || *s.Spec.NodeName == node)
	}
	if snap.Gap(snapshot.ResourceSlices) != nil || slices.ContainsFunc(snap.Slices, serves) {
		return false
	}
	f.AddEvidence(api.Ref("ResourceSlice", "", ""), "spec.nodeName", fmt.Sprintf("none of driver %s for node %s", driver, node), "what the driver publishes where it runs")
	return true
}

// idleKubelet returns the version of a kubelet that loses idle connections
// to drivers (1.34.0 and 1.34.1, kubernetes/kubernetes#133926), or nothing.
func idleKubelet(snap *snapshot.Snapshot, name string) (evidence api.ObjectRef, found string) {
	node := snap.Node(name)
	if node == nil {
		return evidence, ""
	}
	v, err := version.ParseGeneric(node.Status.NodeInfo.KubeletVersion)
	if err != nil || v.Major() != 1 || v.Minor() != 34 || v.Patch() > 1 {
		return evidence, ""
	}
	return api.Ref(api.KindNode, "", name), node.Status.NodeInfo.KubeletVersion
}
