// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// countPlace is the count of a request in a template that members use.
type countPlace struct {
	template, request string
	index             int
	count             int64
}

// fewerDevices looks for the largest number of devices for each member with which all
// of them fit, for each request of a template that asks for several.
func (w *whole) fewerDevices(ctx context.Context) ([]api.Remedy, error) {
	var found []api.Remedy
	for _, place := range w.counts() {
		edits := func(count int64) []api.Edit { return w.countEdits(place, count) }
		fits := func(count int64) (bool, error) {
			snap, err := whatif.Amend(w.cluster.Snapshot, edits(count))
			if err != nil {
				return false, err
			}
			f, err := w.decide(ctx, snap)
			return err == nil && f.all(), err
		}
		low, high := int64(0), place.count
		for high-low > 1 {
			middle := (low + high) / 2
			ok, err := fits(middle)
			switch {
			case err != nil:
				return found, err
			case ok:
				low = middle
			default:
				high = middle
			}
		}
		if low == 0 {
			continue
		}
		change := fmt.Sprintf("request %s instead of %d in request %s", english.Count(int(low), "device"), place.count, place.request)
		pods := w.out.Members.WithDevices + w.out.Members.Waiting
		change += fitText(fitting{Fit: pods, Total: pods})
		r, err := w.remedy(ctx, edits(low), change,
			fitting.all)
		if err != nil {
			return found, err
		}
		if r != nil {
			found = append(found, *r)
		}
	}
	return found, nil
}

// counts returns the places where members ask for several devices.
func (w *whole) counts() []countPlace {
	var places []countPlace
	for _, template := range w.templates() {
		for i := range template.Spec.Spec.Devices.Requests {
			r := &template.Spec.Spec.Devices.Requests[i]
			if r.Exactly != nil && r.Exactly.Count > 1 && cmp.Or(r.Exactly.AllocationMode, resourceapi.DeviceAllocationModeExactCount) == resourceapi.DeviceAllocationModeExactCount {
				places = append(places, countPlace{template.Name, r.Name, i, r.Exactly.Count})
			}
		}
	}
	return places
}

// countEdits change the count in a template, and in the claims that were made from it
// and wait.
func (w *whole) countEdits(place countPlace, count int64) []api.Edit {
	path := fmt.Sprintf("/spec/spec/devices/requests/%d/exactly/count", place.index)
	template := api.Ref(api.KindTemplate, w.target.Object.Namespace, place.template)
	return w.reaching([]api.Edit{whatif.NewEdit(template, "replace", path, count)})
}

// fewerPods proposes as many pods of a workload as fit, if the others do not even fit
// when all claims of other pods are released. Its controller deletes first those that
// have no node (a StatefulSet those with the highest numbers): what is left is decided
// again.
func (w *whole) fewerPods(ctx context.Context) (*api.Remedy, error) {
	m := w.out.Members
	count := m.WithDevices + m.FitNow
	if count == 0 || slices.ContainsFunc(m.Prospects, func(p api.MemberProspect) bool {
		return p.Condition != api.MoreNodes && p.Fit > count
	}) {
		return nil, nil
	}
	at := slices.IndexFunc(w.cluster.Snapshot.Workloads, func(o *snapshot.Workload) bool {
		return o.Kind == w.target.Object.Kind && o.Namespace == w.target.Object.Namespace && o.Name == w.target.Object.Name
	})
	if at < 0 {
		return nil, nil
	}
	edit, had, ok := whatif.Scaled(w.cluster.Snapshot.Workloads[at], int32(count))
	if !ok || int(had) <= count || int(had) < len(w.target.Users) {
		return nil, nil
	}
	if scaler := w.cluster.Snapshot.Autoscaler(w.cluster.Snapshot.Workloads[at]); scaler != nil {
		w.out.Hints = append(w.out.Hints, autoscaled(scaler, w.target.Object, count))
		return nil, nil
	}
	edits := []api.Edit{edit}
	after, err := whatif.Amend(w.cluster.Snapshot, edits)
	if err != nil {
		return nil, err
	}
	surplus := w.surplus(count)
	f, err := w.decide(ctx, whatif.Leave(after, func(pod *corev1.Pod) bool { return slices.Contains(surplus, pod) },
		func(claim *resourceapi.ResourceClaim, _ *resourceapi.DeviceRequestAllocationResult) bool {
			users := claim.Status.ReservedFor
			return len(users) > 0 && !slices.ContainsFunc(users, func(user resourceapi.ResourceClaimConsumerReference) bool {
				return !slices.ContainsFunc(surplus, func(pod *corev1.Pod) bool { return pod.UID == user.UID && pod.Namespace == claim.Namespace })
			})
		}))
	if err != nil || f.Fit < count || !f.all() {
		return nil, err
	}
	r := &api.Remedy{Actor: api.ActorUser, Edits: edits, Change: w.scaleText(count)}
	r = w.complete(r, f)
	for i := range m.Kinds {
		if kind := &m.Kinds[i]; r.Node == "" && kind.Verdict == api.Allocated && len(kind.Nodes) > 0 {
			r.Node = kind.Nodes[0]
		}
	}
	return r, nil
}

// scaleText describes the change to so many pods. Where HorizontalPodAutoscalers were not
// read, which do not scale Jobs, it has the condition.
func (w *whole) scaleText(count int) string {
	what, noun, condition := "scale", "replica", ""
	if w.target.Object.Kind == "Job" {
		what, noun = "lower the parallelism of", "pod"
	} else if w.cluster.Snapshot.Unknown(snapshot.ResourceAutoscalers, w.target.Object.Namespace) != "" {
		condition = ", unless a HorizontalPodAutoscaler sets that number"
	}
	return fmt.Sprintf("%s %s %s to %s%s: no more fit on these nodes, whatever claims are released",
		what, w.target.Object.Kind, w.target.Object.Name, english.Count(count, noun), condition)
}

// autoscaled says that scaling a workload would be undone.
func autoscaled(scaler *snapshot.Outline, workload api.ObjectRef, count int) api.Hint {
	return api.Hint{
		Text: fmt.Sprintf("HorizontalPodAutoscaler %s sets the number of replicas of %s %s, of which %d fit: it would undo scaling it down, and a maxReplicas of %d would not",
			scaler.Name, workload.Kind, workload.Name, count, count),
		Evidence: []api.Evidence{{
			Object: scaler.Ref(), Path: "spec.scaleTargetRef.name", Found: workload.Name,
		}},
	}
}

// surplus returns the pods that a workload does without if only so many stay.
func (w *whole) surplus(count int) []*corev1.Pod {
	pods := slices.Clone(w.target.Users)
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		if w.target.Object.Kind == "StatefulSet" {
			return english.CompareNames(a.Name, b.Name)
		}
		waits := func(pod *corev1.Pod) int {
			if snapshot.Waits(pod) {
				return 1
			}
			return 0
		}
		return cmp.Compare(waits(a), waits(b))
	})
	return pods[min(count, len(pods)):]
}

// otherOrder looks for an order of alternatives with which all members fit. The allocator
// gives each pod the first alternative that it can, whatever is left for the pods after it.
func (w *whole) otherOrder(ctx context.Context) ([]api.Remedy, error) {
	var found []api.Remedy
	pods := w.out.Members.WithDevices + w.out.Members.Waiting
	for _, template := range w.templates() {
		for i := range template.Spec.Spec.Devices.Requests {
			request := &template.Spec.Spec.Devices.Requests[i]
			for k := 1; k < len(request.FirstAvailable); k++ {
				object, list := api.RefTo(api.KindTemplate, template), fmt.Sprintf("/spec/spec/devices/requests/%d/firstAvailable", i)
				edits := w.reaching([]api.Edit{
					whatif.NewEdit(object, "remove", fmt.Sprintf("%s/%d", list, k), nil),
					whatif.NewEdit(object, "add", list+"/0", &request.FirstAvailable[k]),
				})
				r, err := w.remedy(ctx, edits, fmt.Sprintf("prefer alternative %s in request %s, before %s%s", request.FirstAvailable[k].Name, request.Name, request.FirstAvailable[0].Name,
					fitText(fitting{Fit: pods, Total: pods})), fitting.all)
				if err != nil {
					return found, err
				}
				if r != nil {
					found = append(found, *r)
					break
				}
			}
		}
	}
	return found, nil
}

// templates returns the ResourceClaimTemplates of the members that wait.
func (w *whole) templates() []*resourceapi.ResourceClaimTemplate {
	var list []*resourceapi.ResourceClaimTemplate
	for _, pod := range w.waiting() {
		for _, entry := range pod.Spec.ResourceClaims {
			template := w.cluster.Snapshot.Template(pod.Namespace, ptr.Deref(entry.ResourceClaimTemplateName, ""))
			if template != nil && !slices.Contains(list, template) {
				list = append(list, template)
			}
		}
	}
	return list
}
