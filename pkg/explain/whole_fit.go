// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/verdict"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/eligibility"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain/advice"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// whole looks for what would make all pods of a workload or a PodGroup fit. For
// each answer, all of them are decided again, one after another, in the cluster as it is
// then.
type whole struct {
	cluster *cluster.Cluster

	target *target.Target
	out    *api.Explanation
}

// decide decides all members in another cluster.
func (w *whole) decide(ctx context.Context, snap *snapshot.Snapshot) (fitting, error) {
	amended := w.cluster.Amended(snap)
	t, err := target.Find(amended, w.target.Options)
	if err != nil {
		return fitting{}, err
	}
	q := verdict.NewQueue(amended, verdict.Options{})
	q.Add(t)
	if err := q.Decide(ctx); err != nil {
		return fitting{}, err
	}
	return (&answers{Queue: q, cluster: amended}).fitting(t), nil
}

func (w *whole) add(p api.MemberProspect, f fitting) {
	p.Verdict, p.Fit = api.DoesNotFit, f.Fit
	if f.all() {
		p.Verdict = api.Fits
	}
	w.out.Members.Prospects = append(w.out.Members.Prospects, p)
}

// isMember reports whether a pod belongs to the target.
func (w *whole) isMember(pod *corev1.Pod) bool { return slices.Contains(w.target.Users, pod) }

// after returns the decision after the claims that are reserved only for such pods were
// released, and the pods are gone; ok is false if there are none.
func (w *whole) after(ctx context.Context, such func(*corev1.Pod) bool) (f fitting, ok bool, err error) {
	released, leave := map[*resourceapi.ResourceClaim]bool{}, map[*corev1.Pod]bool{}
	for _, claim := range w.cluster.Snapshot.Claims {
		if claim.Status.Allocation == nil || len(claim.Status.ReservedFor) == 0 {
			continue
		}
		var pods []*corev1.Pod
		for _, c := range claim.Status.ReservedFor {
			pod := w.cluster.Snapshot.Pod(claim.Namespace, c.Name)
			if c.Resource != "pods" || pod == nil || pod.UID != c.UID || w.isMember(pod) || !such(pod) {
				pods = nil
				break
			}
			pods = append(pods, pod)
		}
		for _, pod := range pods {
			released[claim], leave[pod] = true, true
		}
	}
	if len(released) == 0 {
		return fitting{}, false, nil
	}
	f, err = w.decide(ctx, whatif.Leave(w.cluster.Snapshot, func(pod *corev1.Pod) bool { return leave[pod] },
		func(claim *resourceapi.ResourceClaim, _ *resourceapi.DeviceRequestAllocationResult) bool {
			return released[claim]
		}))
	return f, err == nil, err
}

// fitText says how many of several pods fit, as the end of a sentence.
func fitText(f fitting) string {
	switch {
	case f.Total < 2:
		return ""
	case f.Fit == f.Total:
		return fmt.Sprintf(": all %d pods fit", f.Total)
	default:
		return fmt.Sprintf(": %d of %d pods fit", f.Fit, f.Total)
	}
}

// sameFields reports whether edits change the same field first.
func sameFields(a, b []api.Edit) bool {
	return len(a) > 0 && len(b) > 0 && a[0].Object == b[0].Object && a[0].Path == b[0].Path
}

// remedy returns a change, nil if it does not do what it should.
func (w *whole) remedy(ctx context.Context, edits []api.Edit, text string, enough func(fitting) bool) (*api.Remedy, error) {
	snap, err := whatif.Amend(w.cluster.Snapshot, edits)
	if err != nil {
		return nil, err
	}
	f, err := w.decide(ctx, snap)
	if err != nil || !enough(f) || f.First == nil {
		return nil, err
	}
	return w.complete(&api.Remedy{Actor: api.ActorUser, Change: text, Edits: edits}, f), nil
}

// complete adds to a remedy where the first of the members that wait fits then, and the
// commands.
func (w *whole) complete(r *api.Remedy, f fitting) *api.Remedy {
	r.Nodes, r.Devices = f.Nodes, []api.AllocatedDevice{}
	if f.First != nil {
		r.Node = f.First.Node
		for i := range f.First.Claims {
			r.Devices = append(r.Devices, f.First.Claims[i].Devices...)
		}
	}
	c := &advice.Case{
		Verdict: &verdict.Verdict{Question: eligibility.NewQuestion(w.cluster, w.target.Pod, w.target.Claims), Target: w.target},
	}
	c.Complete(r, false)
	return r
}

// reaching adds to edits what brings them to all members that wait, as the commands of a
// remedy do: a change of a template to the claims that were made from it, and a change
// of one pod to the other pods of its workload.
func (w *whole) reaching(edits []api.Edit) []api.Edit {
	all := slices.Clone(edits)
	changed := func(object api.ObjectRef) bool {
		return slices.ContainsFunc(all, func(e api.Edit) bool { return e.Object == object })
	}
	for _, pod := range w.waiting() {
		for _, pc := range w.cluster.Claims.OfPod(pod) {
			if pc.Template == "" || pc.Generated || pc.Claim == nil || pc.Claim.Status.Allocation != nil || pc.Problem != nil || changed(api.RefTo(api.KindClaim, pc.Claim)) {
				continue
			}
			template := api.Ref(api.KindTemplate, pod.Namespace, pc.Template)
			moved := movedEdits(edits, template, "/spec/spec", api.RefTo(api.KindClaim, pc.Claim))
			if _, err := whatif.Edited(&pc.Claim.Spec, moved, "/spec"); err == nil {
				all = append(all, moved...)
			}
		}
		if object := api.RefTo(api.KindPod, pod); !changed(object) && w.cluster.Snapshot.Pod(pod.Namespace, pod.Name) == pod {
			moved := movedEdits(edits, w.changedPod(edits, pod), "/spec", object)
			if _, err := whatif.Edited(&pod.Spec, moved, "/spec"); err == nil {
				all = append(all, moved...)
			}
		}
	}
	return all
}

// movedEdits returns the edits of one object as edits of another one, in which the same
// spec is at /spec, and which changes with it.
func movedEdits(edits []api.Edit, from api.ObjectRef, spec string, to api.ObjectRef) []api.Edit {
	var moved []api.Edit
	for _, e := range edits {
		path, ok := strings.CutPrefix(e.Path, spec+"/")
		if e.Object != from || !ok {
			continue
		}
		e.Object, e.Path, e.Generated = to, "/spec/"+path, true
		moved = append(moved, e)
	}
	return moved
}

// changedPod returns the object of a pod that edits change along with its workload, which
// belongs to another pod.
func (w *whole) changedPod(edits []api.Edit, other *corev1.Pod) api.ObjectRef {
	maker, made := whatif.WorkloadOf(w.cluster.Snapshot, other)
	if !made {
		return api.ObjectRef{}
	}
	for _, e := range edits {
		pod := w.cluster.Snapshot.Pod(e.Object.Namespace, e.Object.Name)
		if e.Object.Kind != api.KindPod || !e.Generated || pod == nil {
			continue
		}
		if m, ok := whatif.WorkloadOf(w.cluster.Snapshot, pod); ok && m.ObjectRef == maker.ObjectRef {
			return e.Object
		}
	}
	return api.ObjectRef{}
}

// waiting returns the members that wait.
func (w *whole) waiting() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range slices.Concat(w.target.Users, w.target.New) {
		if snapshot.Waits(pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}
