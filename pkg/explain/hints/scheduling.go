// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
)

// taintRuleHints names rules that taint everything.
func (h *finder) taintRuleHints() {
	if h.out.Verdict != api.DoesNotFit {
		return
	}
	for _, rule := range h.Cluster.Snapshot.TaintRules {
		if !h.Cluster.Taints.TaintsAll(rule) {
			continue
		}
		name := api.Ref("DeviceTaintRule", "", rule.Name)
		if !rejects(h.Question, func(r *eligibility.Reason) bool { return r.Code == api.DeviceTainted && r.Fact.Object == name }) {
			continue
		}
		if text := h.Cluster.Taints.OpenRuleText(rule); text != "" {
			h.hint(text, api.Evidence{Object: name, Path: "spec.deviceSelector", Found: "missing", Required: "a driver, a pool or a device"})
			continue
		}
		h.hint(
			cluster.EveryDeviceText(rule)+": "+rule.Spec.Taint.String(),
			api.Evidence{Object: name, Path: "spec.deviceSelector", Found: "{}", Required: "a driver, a pool or a device"},
		)
	}
}

// preemptionHint answers those who wait for the scheduler to take devices from
// pods of a lower priority: it does not.
func (h *finder) preemptionHint() {
	pod := h.Pod
	if pod == nil || h.out.Verdict != api.DoesNotFit {
		return
	}
	priority := ptr.Deref(pod.Spec.Priority, 0)
	if !slices.ContainsFunc(h.Cluster.Snapshot.Pods, func(other *corev1.Pod) bool { return ptr.Deref(other.Spec.Priority, 0) < priority }) {
		return
	}
	var lowest *corev1.Pod
	var held cluster.Holder
	consider := func(id cluster.DeviceID) {
		for _, holder := range h.Cluster.Usage.Holders(id) {
			if ptr.Deref(holder.Result.AdminAccess, false) {
				continue
			}
			for _, consumer := range holder.Claim.Status.ReservedFor {
				user := h.Cluster.Snapshot.Pod(holder.Claim.Namespace, consumer.Name)
				if consumer.Resource != "pods" || user == nil || user.UID != consumer.UID || ptr.Deref(user.Spec.Priority, 0) >= priority {
					continue
				}
				if lowest == nil || ptr.Deref(user.Spec.Priority, 0) < ptr.Deref(lowest.Spec.Priority, 0) {
					lowest, held = user, holder
				}
			}
		}
	}
	pools := map[*cluster.Pool]bool{}
	eachRejected(h.Question, func(d *cluster.Device, r *eligibility.Reason) {
		switch {
		case r.Check == eligibility.InUse, r.Check == eligibility.CapacityLeft:
			consider(d.ID)
		case r.Check == eligibility.Counters && !pools[d.Pool]:
			pools[d.Pool] = true
			for _, use := range h.Cluster.Partitions.Counters(d.Pool) {
				for _, id := range use.By {
					consider(id)
				}
			}
		}
	})
	if lowest == nil {
		return
	}
	h.hint(
		fmt.Sprintf("devices are never preempted: pod %s keeps %s/%s, although its priority %d is lower than that of pod %s, %d",
			english.QualifiedName(lowest), held.Result.Pool, held.Result.Device, ptr.Deref(lowest.Spec.Priority, 0), pod.Name, priority),
		api.Evidence{
			Object: api.RefTo(api.KindPod, lowest), Path: "spec.priority",
			Found: fmt.Sprint(ptr.Deref(lowest.Spec.Priority, 0)), Required: fmt.Sprint(priority),
		},
		api.Evidence{Object: api.RefTo(api.KindClaim, held.Claim), Path: "status.allocation.devices.results"},
	)
}

// autoscalerMemory is how long it counts what the cluster autoscaler said about
// a pod. As long as the pod waits, it says so again.
const autoscalerMemory = 15 * time.Minute

// autoscalerHint quotes what the cluster autoscaler said last about the pod.
func (h *finder) autoscalerHint() {
	pod := h.Pod
	if pod == nil || h.out.Verdict == api.Fits {
		return
	}
	event := lastEvent(h.Cluster.Snapshot, pod, "NotTriggerScaleUp", "TriggeredScaleUp")
	if event == nil {
		return
	}
	did := "added no node"
	if event.Reason == "TriggeredScaleUp" {
		did = "set out to add a node"
	}
	when := ""
	if said := lifecycle.EventTime(event); !said.IsZero() {
		age := h.Cluster.Snapshot.Now().Sub(said.Time)
		if age > autoscalerMemory {
			return
		}
		when = ", " + duration.HumanDuration(age) + " ago"
	}
	h.hint(fmt.Sprintf("the cluster autoscaler %s for it (event %s%s): %s", did, event.Reason, when, event.Message),
		api.Evidence{Object: api.RefTo("Event", event), Path: "message", Found: event.Message})
}

// evictedHint warns of devices that the allocator picks because their taint is tolerated, and
// for which the pod is deleted all the same.
func (h *finder) evictedHint() {
	if h.out.Placement == nil || h.Pod == nil || len(h.out.Placement.Claims) != len(h.Claims) {
		return
	}
	for i, placed := range h.out.Placement.Claims {
		for _, d := range placed.Devices {
			r := requestNamed(&h.Claims[i], d.Request)
			if r == nil || h.PodClaims[h.Claims[i].Index].ExtendedResources {
				continue
			}
			claim := *h.Claims[i].Claim
			claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
				Results: []resourceapi.DeviceRequestAllocationResult{{Request: d.Request, Driver: d.Driver, Pool: d.Pool, Device: d.Device, Tolerations: r.Tolerations}},
			}}
			evictions := h.Cluster.Taints.ClaimEvictions(&claim)
			if len(evictions) == 0 {
				continue
			}
			h.found.Warning = fmt.Sprintf("warning: the pod is deleted again because of device %s: its taint %s %s",
				cluster.DeviceID{Driver: d.Driver, Pool: d.Pool, Device: d.Device}, evictions[0].Taint, lifecycle.ToleratedText(&evictions[0]))
			return
		}
	}
}

func requestNamed(c *eligibility.Claim, name string) *cluster.Request {
	for _, alternatives := range c.Funnels {
		for _, f := range alternatives {
			if f.Request.Name == name {
				return f.Request
			}
		}
	}
	return nil
}
