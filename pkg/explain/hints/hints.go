// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package hints

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/claimspec"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/funnel"
	"github.com/kubectl-dra/kubectl-dra/pkg/fieldpath"
	"github.com/kubectl-dra/kubectl-dra/pkg/lifecycle"
	"github.com/kubectl-dra/kubectl-dra/pkg/naming"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// maxHints is how many hints an explanation has.
const maxHints = 5

// finder looks for hints.
type finder struct {
	*funnel.Question
	target api.Target
	// out is the explanation, which gets them.
	out *api.Explanation
}

// Add looks for causes outside of the allocation, the most telling first.
// The rest of the explanation is finished.
func Add(q *funnel.Question, target api.Target, out *api.Explanation) {
	h := &finder{q, target, out}
	h.unusedClaims()
	if q.Pod == nil || lifecycle.Waits(q.Pod) {
		h.queueHint()
		h.droppedHints()
		h.driverHints()
		h.poolHints()
		h.taintRuleHints()
		h.attributeHints()
		h.counterHint()
		h.mixedResourceHints()
		h.preemptionHint()
		h.autoscalerHint()
	}
	h.pluginHint()
	h.movedHint()
	out.Hints = out.Hints[:min(len(out.Hints), maxHints)]
}

// AddOfConfig names configuration of claims that drivers ignore.
func AddOfConfig(ctx context.Context, q *funnel.Question, out *api.Explanation) {
	h := &finder{Question: q, out: out}
	h.configHints(ctx)
}

func (h *finder) hint(text string, evidence ...api.Evidence) {
	h.out.Hints = append(h.out.Hints, api.Hint{Text: text, Evidence: evidence})
}

// queueHint tells what Kueue says about a pod or job that it has not admitted.
func (h *finder) queueHint() {
	queued, condition := notAdmitted(h.Question, h.target)
	if queued == nil {
		return
	}
	queue := ""
	if queued.Spec.QueueName != "" {
		queue = " in queue " + queued.Spec.QueueName
	}
	h.hint(
		fmt.Sprintf("Kueue has not admitted it: Workload %s/%s%s has condition %s=%s (%s): %s",
			queued.Namespace, queued.Name, queue, condition.Type, condition.Status, condition.Reason, condition.Message),
		api.Evidence{
			Object: whatif.Object("Workload", queued.Namespace, queued.Name), Path: fmt.Sprintf("status.conditions[type=%s].status", condition.Type),
			Found: string(condition.Status), Required: string(metav1.ConditionTrue),
		},
	)
}

// SaysQueue reports whether a hint says what Kueue waits for before it admits
// the pod.
func SaysQueue(q *funnel.Question, target api.Target) bool {
	queued, _ := notAdmitted(q, target)
	return queued != nil
}

// notAdmitted finds what Kueue keeps about the pod or the workload, and the
// condition that it waits for; nil if there is none.
func notAdmitted(q *funnel.Question, target api.Target) (*snapshot.QueuedWorkload, *metav1.Condition) {
	var owners []metav1.OwnerReference
	for _, w := range q.Snap.Workloads {
		if w.Kind == target.Kind && w.Namespace == target.Namespace && w.Name == target.Name {
			owners = append(owners, metav1.OwnerReference{Kind: w.Kind, Name: w.Name, UID: w.UID})
		}
	}
	group := ""
	if pod := q.Pod; pod != nil {
		if pod.UID != "" {
			owners = append(owners, metav1.OwnerReference{Kind: api.KindPod, Name: pod.Name, UID: pod.UID})
		}
		if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
			owners = append(owners, *controller)
		}
		group = pod.Labels[snapshot.KueuePodGroupLabel]
	}
	queued := q.Snap.QueuedBy(target.Namespace, group, owners)
	if queued == nil {
		return nil, nil
	}
	if admitted := queued.Condition("Admitted"); admitted != nil && admitted.Status == metav1.ConditionTrue {
		return nil, nil
	}
	for _, name := range []string{"QuotaReserved", "Admitted"} {
		if condition := queued.Condition(name); condition != nil && condition.Status != metav1.ConditionTrue {
			return queued, condition
		}
	}
	return nil, nil
}

// droppedHints names fields that were applied and that the API server did not
// store.
func (h *finder) droppedHints() {
	seen := map[string]bool{}
	tell := func(kind string, holder metav1.Object) {
		name := whatif.Object(kind, holder.GetNamespace(), holder.GetName())
		if seen[name] {
			return
		}
		seen[name] = true
		// The specs of claims and templates cannot be changed.
		since := ""
		if kind == "DeviceClass" {
			since = ", unless it was removed since"
		}
		for _, field := range snapshot.DroppedFields(holder) {
			h.hint(
				fmt.Sprintf("%s %s lacks the field %s, which was applied: the API server drops it while its feature gate %s is off%s",
					kind, naming.Qualified(holder), field.Path, field.Gate, since),
				api.Evidence{Object: name, Path: field.Path, Found: "not set", Required: "as in the annotation " + corev1.LastAppliedConfigAnnotation},
			)
		}
	}
	for i := range h.PodClaims {
		pc := &h.PodClaims[i]
		if pc.Claim == nil {
			continue
		}
		tell(api.KindClaim, pc.Claim)
		if template := h.Snap.Template(pc.Claim.Namespace, pc.Template); template != nil {
			tell(api.KindTemplate, template)
		}
		for _, alternatives := range claimspec.Requests(pc.Claim) {
			for _, r := range alternatives {
				if class := h.Snap.Class(r.Class); class != nil {
					tell("DeviceClass", class)
				}
			}
		}
	}
}

// taintRuleHints names rules that taint everything.
func (h *finder) taintRuleHints() {
	if h.out.Verdict != api.DoesNotFit {
		return
	}
	for _, rule := range h.Snap.TaintRules {
		selector := rule.Spec.DeviceSelector
		if selector == nil || selector.Driver != nil || selector.Pool != nil || selector.Device != nil {
			continue
		}
		name := whatif.Object("DeviceTaintRule", "", rule.Name)
		if !h.rejects(func(r *funnel.Reason) bool { return r.Code == api.DeviceTainted && r.Fact.Object == name }) {
			continue
		}
		h.hint(
			fmt.Sprintf("DeviceTaintRule %s has an empty deviceSelector: it taints all %s of the cluster with %s",
				rule.Name, english.Count(len(h.Cluster.Alloc.Facts.Pools.Devices()), "device"), ruleTaint(rule)),
			api.Evidence{Object: name, Path: "spec.deviceSelector", Found: "{}", Required: "a driver, a pool or a device"},
		)
	}
}

func ruleTaint(rule *resourceapi.DeviceTaintRule) string {
	return rule.Spec.Taint.String()
}

// rejects reports whether a device is rejected for a reason of some kind.
func (h *finder) rejects(kind func(*funnel.Reason) bool) bool {
	found := false
	h.eachRejected(func(_ *cluster.Device, r *funnel.Reason) { found = found || kind(r) })
	return found
}

// eachRejected visits the devices that a request rejects, those of other
// classes excepted.
func (h *finder) eachRejected(visit func(d *cluster.Device, r *funnel.Reason)) {
	for i := range h.Claims {
		for _, alternatives := range h.Claims[i].Funnels {
			for _, f := range alternatives {
				for j := range f.Devices {
					if r := f.Reasons[f.Devices[j].Device]; r != nil && r.Code != api.ClassSelectorFalse {
						visit(&f.Devices[j], r)
					}
				}
			}
		}
	}
}

// attributeHints shows side by side what a constraint compares and what a
// device has under the same name in another domain. A name without a domain
// belongs to that of the driver.
func (h *finder) attributeHints() {
	if h.out.Verdict != api.DoesNotFit {
		return
	}
	seen := map[resourceapi.FullyQualifiedName]bool{}
	for i := range h.Claims {
		for _, alternatives := range h.Claims[i].Funnels {
			for _, f := range alternatives {
				for j := range f.Devices {
					d := &f.Devices[j]
					if r := f.Reasons[d.Device]; r == nil || r.Code != api.AttributeMissing {
						continue
					}
					for _, c := range f.Request.Constraints {
						if !seen[c.Attribute] {
							seen[c.Attribute] = h.attributeHint(d, c.Attribute)
						}
					}
				}
			}
		}
	}
}

// attributeHint reports whether there is something to say. An attribute without a
// domain, where that is forgotten most easily, comes before others.
func (h *finder) attributeHint(d *cluster.Device, wanted resourceapi.FullyQualifiedName) bool {
	domain, id, _ := strings.Cut(string(wanted), "/")
	if _, has := selector.Lookup(d.Attributes, domain, id, d.ID.Driver); has {
		return false
	}
	own := resourceapi.QualifiedName(id)
	names := []resourceapi.QualifiedName{own}
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		if strings.HasSuffix(string(name), "/"+id) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		value, has := d.Attributes[name]
		if !has {
			continue
		}
		text := fmt.Sprintf("%s of %s (%s) does not count as %s", name, d.ID.Device, selector.Literal(value), wanted)
		if name == own {
			text = fmt.Sprintf("%s of %s counts as %s/%s (%s), not as %s: a name without a domain belongs to the domain of the driver",
				name, d.ID.Device, d.ID.Driver, id, selector.Literal(value), wanted)
		}
		h.hint(text, api.Evidence{Object: fieldpath.Slice(d), Path: fieldpath.Device(d, fmt.Sprintf("attributes[%q]", name)), Found: selector.Literal(value), Required: "attribute " + string(wanted)})
		return true
	}
	return false
}

// preemptionHint answers those who wait for the scheduler to take devices from
// pods of a lower priority: it does not.
func (h *finder) preemptionHint() {
	pod := h.Pod
	if pod == nil || h.out.Verdict != api.DoesNotFit {
		return
	}
	priority := ptr.Deref(pod.Spec.Priority, 0)
	var lowest *corev1.Pod
	var held cluster.Holder
	consider := func(id cluster.DeviceID) {
		for _, holder := range h.Cluster.Alloc.Facts.Usage.Holders(id) {
			if ptr.Deref(holder.Result.AdminAccess, false) {
				continue
			}
			for _, consumer := range holder.Claim.Status.ReservedFor {
				user := h.Snap.Pod(holder.Claim.Namespace, consumer.Name)
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
	h.eachRejected(func(d *cluster.Device, r *funnel.Reason) {
		switch {
		case r.Rank == funnel.RankInUse, r.Rank == funnel.RankCapacityLeft:
			consider(d.ID)
		case r.Rank == funnel.RankCounters && !pools[d.Pool]:
			pools[d.Pool] = true
			for _, use := range h.Cluster.Alloc.Facts.Partitions.Counters(d.Pool) {
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
			naming.Qualified(lowest), held.Result.Pool, held.Result.Device, ptr.Deref(lowest.Spec.Priority, 0), pod.Name, priority),
		api.Evidence{
			Object: whatif.Object(api.KindPod, lowest.Namespace, lowest.Name), Path: "spec.priority",
			Found: fmt.Sprint(ptr.Deref(lowest.Spec.Priority, 0)), Required: fmt.Sprint(priority),
		},
		api.Evidence{Object: whatif.ClaimObject(held.Claim), Path: "status.allocation.devices.results"},
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
	event := h.lastEvent(pod, "NotTriggerScaleUp", "TriggeredScaleUp")
	if event == nil {
		return
	}
	did := "added no node"
	if event.Reason == "TriggeredScaleUp" {
		did = "set out to add a node"
	}
	when := ""
	if said := lifecycle.EventTime(event); !said.IsZero() {
		age := h.Snap.Now().Sub(said.Time)
		if age > autoscalerMemory {
			return
		}
		when = ", " + duration.HumanDuration(age) + " ago"
	}
	h.hint(fmt.Sprintf("the cluster autoscaler %s for it (event %s%s): %s", did, event.Reason, when, event.Message),
		api.Evidence{Object: whatif.Object("Event", event.Namespace, event.Name), Path: "message", Found: event.Message})
}

// lastEvent is the newest event about a pod with one of the reasons.
func (h *finder) lastEvent(pod *corev1.Pod, reasons ...string) *corev1.Event {
	var newest *corev1.Event
	for _, event := range h.Snap.Events {
		about := event.InvolvedObject
		if about.Kind != api.KindPod || about.Namespace != pod.Namespace || about.Name != pod.Name ||
			about.UID != "" && pod.UID != "" && about.UID != pod.UID || !slices.Contains(reasons, event.Reason) {
			continue
		}
		if newest == nil || lifecycle.EventTime(event).After(lifecycle.EventTime(newest).Time) {
			newest = event
		}
	}
	return newest
}
