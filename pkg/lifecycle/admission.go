// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// The conditions of Kueue's objects (apis/kueue/v1beta2), and the states of
// admission checks.
const (
	kueueReserved = "QuotaReserved"
	kueueAdmitted = "Admitted"
	kueueEvicted  = "Evicted"
	kueueActive   = "Active"

	checkReady    = "Ready"
	checkRejected = "Rejected"

	stopPolicyNone = "None"
)

// Messages about devices in the conditions of Kueue (pkg/dra/claims.go and
// pkg/controller/core/workload_controller.go of v0.19). The reason is the same for all
// errors in a workload. kueueNoFit counts the nodes of a topology without the devices of a
// pod (formatReasons, pkg/cache/scheduler/tas_flavor_snapshot.go of v0.20, gate
// KueueDRADeviceFeasibility).
const (
	kueueNoFit      = "draNoFit: "
	kueueUnmapped   = "is not mapped in DRA configuration"
	kueueNoClaims   = "does not support use of resource claims"
	kueueGateIsOff  = "feature gate is not enabled"
	kueueNamespace  = "kueue-system"
	kueueDeployment = "kueue-controller-manager"
	// kueueNoPlace is the reason of a workload that has no place in its topology.
	kueueNoPlace = "TopologyPlacementFailed"
)

// Held reports whether Kueue holds back a waiting pod: it has Kueue's gate, or Kueue has
// not admitted its owner.
func Held(snap *snapshot.Snapshot, pod *corev1.Pod) bool {
	if !snapshot.Waits(pod) {
		return false
	}
	if hasAdmissionGate(pod) {
		return true
	}
	queued := queuedPod(snap, pod)
	return queued != nil && len(queued.Status.Conditions) > 0 && !queued.Admitted() && !queued.Ended()
}

func hasAdmissionGate(pod *corev1.Pod) bool {
	for _, gate := range pod.Spec.SchedulingGates {
		if gate.Name == snapshot.KueueGate {
			return true
		}
	}
	return false
}

// queuedPod returns Kueue's Workload for a pod, or for its owner.
func queuedPod(snap *snapshot.Snapshot, pod *corev1.Pod) *snapshot.QueuedWorkload {
	if len(snap.Queued) == 0 {
		return nil
	}
	self := metav1.OwnerReference{Kind: api.KindPod, Name: pod.Name, UID: pod.UID}
	return snap.QueuedBy(pod.Namespace, pod.Labels[snapshot.KueuePodGroupLabel], append(snap.Owners(pod), self))
}

// admissionFindings says why Kueue does not admit a pod.
func admissionFindings(snap *snapshot.Snapshot, pod *corev1.Pod) []Finding {
	queued := queuedPod(snap, pod)
	if queued == nil {
		f := Finding{Reason: "Kueue has not removed its scheduling gate " + snapshot.KueueGate}
		withoutWorkload(snap, &f, pod.Namespace, pod.Labels[snapshot.KueueQueueLabel])
		f.AddEvidence(api.RefTo(api.KindPod, pod), "spec.schedulingGates", snapshot.KueueGate, "none")
		return []Finding{f}
	}
	f := queuedFinding(snap, queued)
	if hasAdmissionGate(pod) {
		f.AddEvidence(api.RefTo(api.KindPod, pod), "spec.schedulingGates", snapshot.KueueGate, "none")
	}
	return []Finding{f}
}

// withoutWorkload adds the known facts to the finding for a pod without a Workload.
func withoutWorkload(snap *snapshot.Snapshot, f *Finding, namespace, queue string) {
	f.Step(api.ActorUser, "the status of its Workload says what Kueue waits for: kubectl get workloads.kueue.x-k8s.io -n %s", shell.Quote(namespace))
	if snap.Gap(snapshot.ResourceQueued) != nil {
		return
	}
	f.Reason += ", and no Workload of Kueue is known for it"
	if queue != "" {
		f.Reason += inactiveQueue(snap, f, namespace, queue, "")
	}
	f.Step(api.ActorAdmin, "check that the controller of Kueue runs and manages pods and jobs of namespace %s: it creates a Workload for each that it admits", namespace)
}

// queuedFinding says why a Workload is not admitted, and who can act.
func queuedFinding(snap *snapshot.Snapshot, w *snapshot.QueuedWorkload) Finding {
	object := api.RefTo("Workload", w).In(snapshot.KueueGroup)
	name := fmt.Sprintf("Workload %s/%s", w.Namespace, w.Name)
	if w.Spec.QueueName != "" {
		name += " of queue " + w.Spec.QueueName
	}
	f := Finding{}
	if w.Admitted() {
		f.Reason = fmt.Sprintf("Kueue has admitted %s, but has not started it yet", name)
		f.Step(api.ActorNobody, "Kueue removes its scheduling gate from admitted pods, and resumes admitted jobs; check its controller if that takes long")
		return f
	}
	f.Reason = "Kueue has not admitted " + name
	cluster := ""
	if w.Status.Admission != nil {
		cluster = w.Status.Admission.ClusterQueue
	}
	reserved, admitted := w.Condition(kueueReserved), w.Condition(kueueAdmitted)
	switch {
	case w.Spec.Active != nil && !*w.Spec.Active:
		f.Reason += ": it is deactivated (spec.active is false)"
		f.Reason += evicted(w)
		f.AddEvidence(object, "spec.active", "false", "true")
		f.command(api.ActorUser, "activate the Workload, if what deactivated it is over", merge(snapshot.ResourceQueued, w.Namespace, w.Name, `{"spec":{"active":true}}`))
		return f
	case reserved == nil && admitted == nil:
		f.Reason += ": it has no condition yet"
		f.Step(api.ActorAdmin, "check that the controller of Kueue runs: it sets the conditions of Workload %s", w.Name)
	case reserved == nil || reserved.Status == metav1.ConditionTrue:
		f.Reason += checksText(w, &f, object, cluster)
		if admitted != nil {
			f.AddEvidence(object, "status.conditions[type=Admitted].status", conditionFound(admitted), string(metav1.ConditionTrue))
		}
		return f
	default:
		f.Reason += saidBy(reserved)
		f.AddEvidence(object, "status.conditions[type=QuotaReserved].status", conditionFound(reserved), string(metav1.ConditionTrue))
	}
	f.Reason += evicted(w)
	f.Reason += inactiveQueue(snap, &f, w.Namespace, w.Spec.QueueName, cluster)
	if len(f.Steps) == 0 {
		queueSteps(snap, &f, w, reserved)
	}
	return f
}

// saidBy returns the message of a condition, with its reason in parentheses.
func saidBy(c *metav1.Condition) string {
	return english.PrecededBy(": ", strings.TrimRight(c.Message, ".")) + fmt.Sprintf(" (%s, %s)", c.Type, c.Reason)
}

func conditionFound(c *metav1.Condition) string { return fmt.Sprintf("%s (%s)", c.Status, c.Reason) }

// evicted says that a workload was admitted before.
func evicted(w *snapshot.QueuedWorkload) string {
	c := w.Condition(kueueEvicted)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return "; it was evicted" + saidBy(c)
}

// checksText says which admission checks a workload with reserved quota waits for.
func checksText(w *snapshot.QueuedWorkload, f *Finding, object api.ObjectRef, cluster string) string {
	var said []string
	for i := range w.Status.AdmissionChecks {
		check := &w.Status.AdmissionChecks[i]
		if check.State == checkReady {
			continue
		}
		said = append(said, fmt.Sprintf("admission check %s is %s%s", check.Name, check.State, english.PrecededBy(": ", strings.TrimRight(check.Message, "."))))
		f.AddEvidence(object, fmt.Sprintf("status.admissionChecks[name=%s].state", check.Name), check.State, checkReady)
		what := "the controller of admission check %s decides"
		if check.State == checkRejected {
			what = "admission check %s has rejected it: see what it says"
		}
		f.command(api.ActorAdmin, fmt.Sprintf(what, check.Name), "kubectl describe "+shell.KubectlObjects("admissionchecks.kueue.x-k8s.io", "", check.Name))
	}
	where := english.PrecededBy(" in ClusterQueue ", cluster)
	if len(said) == 0 {
		f.Step(api.ActorNobody, "quota is reserved%s; Kueue sets condition Admitted when all that the queue asks for is done", where)
		if c := w.Condition(kueueAdmitted); c != nil {
			return saidBy(c)
		}
		return ": quota is reserved" + where
	}
	return ": quota is reserved" + where + ", and " + english.JoinAnd(said)
}

// inactiveQueue names the queue that admits nothing, if that is known, and adds the next
// step. Without a clusterName, the ClusterQueue of the LocalQueue counts.
func inactiveQueue(snap *snapshot.Snapshot, f *Finding, namespace, name, clusterName string) string {
	local := snap.Outline(schema.GroupKind{Group: snapshot.KueueGroup, Kind: snapshot.KindLocalQueue}, namespace, name)
	if local != nil {
		clusterName = cmp.Or(clusterName, local.Spec.ClusterQueue)
	}
	for _, queue := range []*snapshot.Outline{snap.Outline(schema.GroupKind{Group: snapshot.KueueGroup, Kind: snapshot.KindClusterQueue}, "", clusterName), local} {
		if queue == nil {
			continue
		}
		active := queue.Condition(kueueActive)
		if active == nil || active.Status == metav1.ConditionTrue {
			continue
		}
		object := queue.Ref()
		f.AddEvidence(object, "status.conditions[type=Active].status", conditionFound(active), string(metav1.ConditionTrue))
		resource := snapshot.ResourceClusterQueue
		if queue == local {
			resource = snapshot.ResourceLocalQueues
		}
		if stopped := queue.Spec.StopPolicy; stopped != "" && stopped != stopPolicyNone {
			f.AddEvidence(object, "spec.stopPolicy", stopped, stopPolicyNone)
			f.command(api.ActorAdmin, fmt.Sprintf("let %s %s admit workloads again, if it is not stopped on purpose", queue.Of.Kind, queue.Name),
				merge(resource, queue.Namespace, queue.Name, `{"spec":{"stopPolicy":"None"}}`))
		} else {
			f.command(api.ActorAdmin, fmt.Sprintf("make %s %s active: its condition Active says what it lacks", queue.Of.Kind, queue.Name),
				"kubectl describe "+shell.KubectlObjects(resource, queue.Namespace, queue.Name))
		}
		return fmt.Sprintf("; %s %s is not active%s", queue.Of.Kind, queue.Name, saidBy(active))
	}
	return ""
}

// queueSteps adds the steps for a workload without quota.
func queueSteps(snap *snapshot.Snapshot, f *Finding, w *snapshot.QueuedWorkload, reserved *metav1.Condition) {
	queue, message := "its ClusterQueue", ""
	local := snap.Outline(schema.GroupKind{Group: snapshot.KueueGroup, Kind: snapshot.KindLocalQueue}, w.Namespace, w.Spec.QueueName)
	if local != nil && local.Spec.ClusterQueue != "" {
		queue = "ClusterQueue " + local.Spec.ClusterQueue
	}
	if reserved != nil {
		message = reserved.Message
	}
	switch {
	case strings.Contains(message, kueueUnmapped):
		f.command(api.ActorAdmin, fmt.Sprintf("map the DeviceClass to a resource in resources.deviceClassMappings of Kueue's configuration, cover that resource in %s, and restart Kueue: it reads its configuration when it starts", queue),
			"kubectl rollout restart "+shell.KubectlObjects("deployment", kueueNamespace, kueueDeployment))
	case strings.Contains(message, kueueNoClaims):
		f.Step(api.ActorUser, "use a ResourceClaimTemplate in place of a ResourceClaim: Kueue admits no pods that name claims")
	case strings.Contains(message, kueueNoFit):
		f.Step(api.ActorNobody, "Kueue looks again when slices, classes or claims change: the nodes that it counts as draNoFit cannot allocate the devices of one pod")
	case reserved != nil && reserved.Reason == kueueNoPlace:
		f.Step(api.ActorNobody, "Kueue looks again when nodes or pods change: no part of its topology has room for the pods")
	case strings.Contains(message, kueueGateIsOff):
		f.Step(api.ActorAdmin, "enable the feature gate that the message names in Kueue's configuration, and restart Kueue")
	case local == nil && snap.Gap(snapshot.ResourceLocalQueues) == nil && strings.Contains(message, "doesn't exist"):
		f.command(api.ActorUser, fmt.Sprintf("name a LocalQueue of namespace %s in label %s", w.Namespace, snapshot.KueueQueueLabel), "kubectl get localqueues.kueue.x-k8s.io -n "+shell.Quote(w.Namespace))
	default:
		f.Step(api.ActorNobody, "Kueue admits the workload as soon as %s has quota for it", queue)
		f.command(api.ActorUser, "see which workloads wait or have quota", "kubectl get workloads.kueue.x-k8s.io -n "+shell.Quote(w.Namespace))
		f.Step(api.ActorAdmin, "raise the quota of %s, if the message says that it can never be enough", queue)
	}
}

// command adds a step with the command for it.
func (f *Finding) command(actor, text, command string) {
	f.Steps = append(f.Steps, api.NextStep{Actor: actor, Text: text, Commands: []string{command}})
}

// merge returns a command that changes one field of an object.
func merge(resource, namespace, name, patch string) string {
	return fmt.Sprintf("kubectl patch %s --type=merge -p %s", shell.KubectlObjects(resource, namespace, name), shell.Quote(patch))
}
