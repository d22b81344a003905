// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// tryAgain returns a command that makes controllers look at an object at once: they retry
// failures less and less often until they see a change.
func tryAgain(snap *snapshot.Snapshot, object string) string {
	return fmt.Sprintf("kubectl annotate %s --overwrite %s", object, shell.Quote("dra.kubectl.dev/retry="+snap.Now().UTC().Format("2006-01-02T15:04:05Z")))
}

// generationFindings says why a pod has no claims yet: because of the resourceclaim
// controller of kube-controller-manager.
func generationFindings(snap *snapshot.Snapshot, pod *corev1.Pod, claims []cluster.PodClaim) []Finding {
	var findings []Finding
	// The controller stops at the first claim that it cannot create.
	stopped := slices.ContainsFunc(claims, func(pc cluster.PodClaim) bool {
		return errors.Is(pc.Problem, cluster.ErrTemplateMissing) || refusedClaim(snap, pod, &pc) != nil
	})
	for i := range claims {
		pc := &claims[i]
		var f Finding
		failed := claimFailure(snap, pod, pc)
		switch {
		case errors.Is(pc.Problem, cluster.ErrTemplateMissing):
			f.AddEvidence(api.RefTo(api.KindPod, pod), entryPath(pc.Entry)+".resourceClaimTemplateName", pc.Template, "a ResourceClaimTemplate of the namespace")
			if failed != nil {
				f.Evidence = append(f.Evidence, eventEvidence(failed))
			}
		case !errors.Is(pc.Problem, cluster.ErrClaimNotCreated):
			continue
		case failed != nil:
			_, message, _ := strings.Cut(failed.Message, ": ")
			f.Reason = fmt.Sprintf("the ResourceClaim for %s could not be created: %s%s", pc.Entry, saidOnce(message), often(snap, failed))
			f.Evidence = append(f.Evidence, eventEvidence(failed))
			f.command(api.ActorUser, fmt.Sprintf("fix what keeps the ResourceClaim for %s from being created; the resourceclaim controller tries again less and less often, and at once when the pod changes", pc.Entry),
				tryAgain(snap, shell.KubectlObjects("pod", pod.Namespace, pod.Name)))
		case stopped:
			continue
		case Overdue(snap, pod.CreationTimestamp.Time):
			f.Reason = fmt.Sprintf("the ResourceClaim for %s has not been created %s", pc.Entry, snap.Lasting("in", pod.CreationTimestamp.Time))
			f.Step(api.ActorAdmin, "check that kube-controller-manager runs: its resourceclaim controller creates claims from templates")
		default:
			f.Step(api.ActorNobody, "the resourceclaim controller of kube-controller-manager has not created the claim for %s of pod %s yet", pc.Entry, pod.Name)
		}
		if pod.Spec.NodeName != "" {
			f.Step(api.ActorUser, anewWithClaims)
		}
		if pc.Problem != nil && errors.Is(pc.Problem, cluster.ErrClaimNotCreated) {
			f.AddEvidence(api.RefTo(api.KindPod, pod), "status.resourceClaimStatuses", "nothing for "+pc.Entry, "the name of a claim for "+pc.Entry)
			if failed == nil {
				blameManager(snap, &f)
			}
		}
		findings = append(findings, f)
	}
	return findings
}

// claimFailure returns the newest report that a claim of a pod could not be created, nil if there
// is none.
func claimFailure(snap *snapshot.Snapshot, pod *corev1.Pod, pc *cluster.PodClaim) *corev1.Event {
	return newestEvent(podEvents(snap, pod), func(e *corev1.Event) bool {
		return e.Reason == reasonClaimCreation && strings.HasPrefix(e.Message, "PodResourceClaim "+pc.Entry+": ")
	})
}

// refusedClaim is like claimFailure, and returns nil for claims that exist, and for claims whose
// template is missing.
func refusedClaim(snap *snapshot.Snapshot, pod *corev1.Pod, pc *cluster.PodClaim) *corev1.Event {
	if !errors.Is(pc.Problem, cluster.ErrClaimNotCreated) {
		return nil
	}
	return claimFailure(snap, pod, pc)
}

// blameManager reports a kube-controller-manager that is not ready.
func blameManager(snap *snapshot.Snapshot, f *Finding) {
	reason, evidence := NotReadyComponent(snap, snapshot.ComponentControllerManager)
	if reason == "" {
		return
	}
	if f.Reason != "" {
		f.Reason += ", and "
	}
	f.Reason += reason
	f.Evidence = append(f.Evidence, evidence...)
}

// NotReadyComponent names the pods of a component of the control plane that are not ready. If
// none is visible, as in most managed clusters, nothing is known.
func NotReadyComponent(snap *snapshot.Snapshot, component string) (reason string, evidence []api.Evidence) {
	var reasons []string
	for _, pod := range snap.Pods {
		if pod.Namespace != metav1.NamespaceSystem || pod.Labels[snapshot.ComponentLabel] != component || snapshot.Finished(pod) {
			continue
		}
		c := PodCondition(pod, corev1.PodReady)
		if c == nil || c.Status == corev1.ConditionTrue {
			continue
		}
		reasons = append(reasons, fmt.Sprintf("pod %s/%s is not ready", pod.Namespace, pod.Name))
		evidence = append(evidence, api.Evidence{
			Object: api.RefTo(api.KindPod, pod), Path: "status.conditions[type=Ready].status", Found: string(c.Status), Required: string(corev1.ConditionTrue),
		})
	}
	return strings.Join(reasons, ", and "), evidence
}

// eventsLive is how long API servers keep events by default.
const eventsLive = time.Hour

// ByDefaultScheduler reports whether a pod is for kube-scheduler under its usual name.
func ByDefaultScheduler(pod *corev1.Pod) bool {
	return pod.Spec.SchedulerName == "" || pod.Spec.SchedulerName == corev1.DefaultSchedulerName
}

// Unheard reports whether a pod has waited for longer than a scheduler takes to look at it, and
// none has set its condition.
func Unheard(snap *snapshot.Snapshot, pod *corev1.Pod) bool {
	return snapshot.Waits(pod) && Overdue(snap, pod.CreationTimestamp.Time) && PodCondition(pod, corev1.PodScheduled) == nil
}

// awaitsOther reports whether a pod asks for another scheduler than the default one, and no
// such scheduler has reported anything about it.
func awaitsOther(snap *snapshot.Snapshot, pod *corev1.Pod) bool {
	return !ByDefaultScheduler(pod) && Unheard(snap, pod) && SchedulerMessage(snap, pod) == nil && !Hides(snap, snapshot.ResourceEvents, pod.Namespace)
}

// GateFindings names the scheduling gates of a pod, and who removes them. Kueue's gate is
// left out: it has findings of its own.
func GateFindings(pod *corev1.Pod) []Finding {
	var findings []Finding
	var kueue, gates []string
	for _, gate := range pod.Spec.SchedulingGates {
		switch {
		case gate.Name == snapshot.KueueGate:
		case strings.HasPrefix(gate.Name, snapshot.KueueGroup+"/"):
			kueue = append(kueue, gate.Name)
		default:
			gates = append(gates, gate.Name)
		}
	}
	if len(kueue) > 0 {
		f := Finding{Reason: fmt.Sprintf("the scheduler waits until Kueue removes its scheduling gate %s", english.JoinAnd(kueue))}
		f.AddEvidence(api.RefTo(api.KindPod, pod), "spec.schedulingGates", english.JoinAnd(kueue), "none")
		f.Step(api.ActorUser, "the status of its Workload says what Kueue waits for: kubectl get workloads.kueue.x-k8s.io -n %s", shell.Quote(pod.Namespace))
		findings = append(findings, f)
	}
	if len(gates) > 0 {
		f := Finding{Reason: fmt.Sprintf("the scheduler waits until the scheduling gate %s is removed", english.JoinAnd(gates))}
		f.AddEvidence(api.RefTo(api.KindPod, pod), "spec.schedulingGates", english.JoinAnd(gates), "none")
		f.Step(api.ActorUser, "the scheduler does not consider pod %s before its scheduling gates are removed: %s", pod.Name, strings.Join(gates, ", "))
		findings = append(findings, f)
	}
	return findings
}

// queueingFindings says why the scheduler does not look at a pod.
func queueingFindings(snap *snapshot.Snapshot, pod *corev1.Pod, claims []cluster.PodClaim) []Finding {
	findings := GateFindings(pod)
	if awaitsOther(snap, pod) {
		f := Finding{Reason: fmt.Sprintf("scheduler %s, which the pod names, has reported nothing about it %s", pod.Spec.SchedulerName, snap.Lasting("in", pod.CreationTimestamp.Time))}
		if snap.Now().Sub(pod.CreationTimestamp.Time) > eventsLive {
			f.Reason = fmt.Sprintf("the pod names scheduler %s, and no event or condition of it is known; events are kept for %s", pod.Spec.SchedulerName, duration.HumanDuration(eventsLive))
		}
		f.AddEvidence(api.RefTo(api.KindPod, pod), "spec.schedulerName", pod.Spec.SchedulerName, "a scheduler that runs")
		f.AddEvidence(api.RefTo(api.KindPod, pod), "status.conditions[type=PodScheduled]", "missing", "set by the scheduler")
		f.Step(api.ActorUser, "remove spec.schedulerName if the pod is meant for the default scheduler")
		f.Step(api.ActorAdmin, "check that scheduler %s runs and serves namespace %s", pod.Spec.SchedulerName, pod.Namespace)
		findings = append(findings, f)
	}
	for i := range claims {
		pc := &claims[i]
		switch {
		case errors.Is(pc.Problem, cluster.ErrClaimDeleting):
			f := DeletingClaim(snap, pc.Claim)
			if pc.Template == "" {
				f.Step(api.ActorUser, "when claim %s is gone, create it again: the pod uses the claim of that name", pc.Claim.Name)
			} else {
				f.Step(api.ActorUser, "delete and recreate pod %s so that it gets a new claim", pod.Name)
			}
			findings = append(findings, f)
		case errors.Is(pc.Problem, cluster.ErrClaimNotOwned):
			findings = append(findings, foreignClaim(pod, pc))
		case errors.Is(pc.Problem, cluster.ErrClaimMissing):
			var f Finding
			if name := claimNameOf(pod, pc.Entry); name != "" {
				f.AddEvidence(api.RefTo(api.KindPod, pod), entryPath(pc.Entry)+".resourceClaimName", name, "a ResourceClaim of the namespace")
			}
			findings = append(findings, f)
		}
	}
	return findings
}

// bindingFindings lists the conditions that the scheduler waits for before it binds a pod.
func bindingFindings(facts *cluster.Cluster, claims []cluster.PodClaim) []Finding {
	var failures, waiting []Finding
	for i := range claims {
		claim := claims[i].Claim
		if claim == nil || claim.Status.Allocation == nil {
			continue
		}
		for _, a := range facts.Claims.Awaited(claim) {
			f := Finding{Instead: true}
			path := fmt.Sprintf("status.devices[device=%s].conditions[type=%s]", a.Result.Device, a.Name)
			if a.Failed {
				f.Reason = fmt.Sprintf("driver %s reports that device %s of claim %s cannot be bound: %s: %s", a.Result.Driver, DeviceName(a.Result), claim.Name, a.Name, conditionWords(a.Now))
				f.AddEvidence(api.RefTo(api.KindClaim, claim), path, conditionText(a.Now), "not True")
				failures = append(failures, f)
				continue
			}
			f.Reason = fmt.Sprintf("claim %s waits for driver %s to set condition %s of device %s%s", claim.Name, a.Result.Driver, a.Name, DeviceName(a.Result), timeLeft(facts.Snapshot, claim))
			f.AddEvidence(api.RefTo(api.KindClaim, claim), path, conditionText(a.Now), "True")
			f.Step(api.ActorNobody, "driver %s has to set condition %s of device %s; by default the scheduler waits for it for %s from the allocation",
				a.Result.Driver, a.Name, DeviceName(a.Result), duration.HumanDuration(cluster.BindingTimeout))
			waiting = append(waiting, f)
		}
	}
	if len(failures) > 0 {
		return failures
	}
	return waiting
}

func conditionText(c *metav1.Condition) string {
	if c == nil {
		return "missing"
	}
	return string(c.Status) + english.PrecededBy(": ", conditionWords(c))
}

// conditionWords returns the reason and message of a condition.
func conditionWords(c *metav1.Condition) string {
	return strings.Trim(c.Reason+": "+c.Message, ": ")
}

// timeLeft returns how long the scheduler goes on waiting. Its configuration is not in the
// API.
func timeLeft(snap *snapshot.Snapshot, claim *resourceapi.ResourceClaim) string {
	since := claim.Status.Allocation.AllocationTimestamp
	if since.IsZero() {
		return ""
	}
	if snap.AbsoluteTimes {
		return fmt.Sprintf("; by default the scheduler waits until %s", since.Add(cluster.BindingTimeout).UTC().Format(time.RFC3339))
	}
	limit := duration.HumanDuration(cluster.BindingTimeout)
	// The clocks of the scheduler and of the machine that took the snapshot may differ.
	left := min(since.Add(cluster.BindingTimeout).Sub(snap.Now()), cluster.BindingTimeout)
	if left < 0 {
		return fmt.Sprintf("; the scheduler's default timeout of %s ended %s ago", limit, duration.HumanDuration(-left))
	}
	return fmt.Sprintf("; %s of the scheduler's default timeout of %s remain", duration.HumanDuration(left), limit)
}
