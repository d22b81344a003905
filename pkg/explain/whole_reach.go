// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

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
