// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// maxRemedyPods bounds the pods that are listed with a remedy.
const maxRemedyPods = 100

// podsUsing lists the pods that use what the edits change, a template of claims or
// the pod template of a workload, and says which of them get the change.
func (c *Case) podsUsing(edits []api.Edit) []api.RemedyPod {
	templates, makers := map[string]bool{}, map[api.ObjectRef]bool{}
	namespace := ""
	for _, e := range edits {
		switch {
		case whatif.Scales(e):
		case e.Object.Kind == api.KindTemplate:
			templates[e.Object.Name], namespace = true, e.Object.Namespace
		case strings.HasPrefix(e.Path, "/spec") && e.Object.Namespace != "" && !slices.Contains([]string{api.KindClaim, api.KindPod}, e.Object.Kind),
			strings.HasPrefix(e.Path, "/template"):
			makers[e.Object], namespace = true, e.Object.Namespace
		}
	}
	if len(templates)+len(makers) == 0 {
		return nil
	}
	var list []api.RemedyPod
	for _, pod := range c.Cluster.Snapshot.Pods {
		if pod.Namespace != namespace || snapshot.Finished(pod) || pod.UID == "" && pod.CreationTimestamp.IsZero() {
			continue
		}
		m, made := whatif.WorkloadOf(c.Cluster.Snapshot, pod)
		changed := made && makers[m.ObjectRef]
		if !changed && !usesTemplate(pod, templates) {
			continue
		}
		p := api.RemedyPod{Namespace: pod.Namespace, Name: pod.Name, Phase: string(pod.Status.Phase), Node: pod.Spec.NodeName, Owner: whatif.Owner(pod)}
		p.Changed = changed && m.ReplacesPods() || snapshot.Waits(pod) && c.concerns(pod) && (changed || needsClaim(c.Cluster.Snapshot, pod, templates))
		list = append(list, p)
	}
	slices.SortStableFunc(list, func(a, b api.RemedyPod) int {
		if a.Changed != b.Changed {
			if a.Changed {
				return -1
			}
			return 1
		}
		return english.CompareNames(a.Name, b.Name)
	})
	return list
}

// Complete adds to a remedy what its edits change, who uses that, and the commands.
func (c *Case) Complete(answer *api.Remedy, silent bool) {
	answer.Edits = whatif.WithOldValues(c.Cluster.Snapshot, answer.Edits)
	c.write(answer, silent)
}

// write adds to a remedy who uses what it changes, and the commands.
func (c *Case) write(answer *api.Remedy, silent bool) {
	pods := c.podsUsing(answer.Edits)
	if !silent {
		answer.Commands = whatif.Commands(c.Cluster.Snapshot, answer.Edits, pods)
	}
	answer.Owner = c.unknownOwner(answer.Edits)
	answer.UsedBy, answer.UsedByCount = pods[:min(len(pods), maxRemedyPods)], len(pods)
}

// unknownOwner returns the controller in whose pod template the edits of a pod have to be
// made, if nobody knows where that is, else an empty reference.
func (c *Case) unknownOwner(edits []api.Edit) api.ObjectRef {
	if !slices.ContainsFunc(edits, func(e api.Edit) bool { return e.Generated }) {
		return api.ObjectRef{}
	}
	m, made := c.maker()
	if !made || m.Editable() {
		return api.ObjectRef{}
	}
	return m.ObjectRef
}

// concerns reports whether a pod belongs to the target: the pod, the other pods of its
// controller, of the workload, or all that use the template.
func (c *Case) concerns(pod *corev1.Pod) bool {
	same := func(other *corev1.Pod) bool { return other.Namespace == pod.Namespace && other.Name == pod.Name }
	if c.Target.Workload || c.Target.Object.Kind == api.KindTemplate {
		return slices.ContainsFunc(c.Target.Users, same)
	}
	if c.Pod == nil {
		return false
	}
	mine, theirs := metav1.GetControllerOfNoCopy(c.Pod), metav1.GetControllerOfNoCopy(pod)
	return same(c.Pod) || mine != nil && theirs != nil && mine.UID == theirs.UID && mine.Kind == theirs.Kind && mine.Name == theirs.Name
}

func usesTemplate(pod *corev1.Pod, templates map[string]bool) bool {
	return slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool {
		return c.ResourceClaimTemplateName != nil && templates[*c.ResourceClaimTemplateName]
	})
}

// needsClaim reports whether a pod has to get another claim for a change of its
// templates: one was made already, and is not allocated or is gone.
func needsClaim(snap *snapshot.Snapshot, pod *corev1.Pod, templates map[string]bool) bool {
	for _, entry := range pod.Spec.ResourceClaims {
		if entry.ResourceClaimTemplateName == nil || !templates[*entry.ResourceClaimTemplateName] {
			continue
		}
		for _, status := range pod.Status.ResourceClaimStatuses {
			if status.Name != entry.Name || status.ResourceClaimName == nil {
				continue
			}
			if claim := snap.Claim(pod.Namespace, *status.ResourceClaimName); claim == nil || claim.Status.Allocation == nil {
				return true
			}
		}
	}
	return false
}

// podEdits returns operations on the spec of the pod, and on the template that it is made
// from. It is silent if nobody knows how to change what it is made from.
func (c *Case) podEdits(operations []claimEdit) (edits []api.Edit, silent bool) {
	pod := c.Pod
	m, made := c.maker()
	if made && m.Editable() {
		for _, o := range operationsOn(m.PodSpec(pod), operations, &pod.Spec) {
			edits = append(edits, whatif.NewEdit(m.ObjectRef, o.op, m.PodSpecPath()+o.path, o.value))
		}
		// What is not in the template was put into the pod by somebody else.
		silent = len(edits) == 0
	}
	if c.Cluster.Snapshot.Pod(pod.Namespace, pod.Name) != nil {
		for _, o := range operations {
			edit := whatif.NewEdit(api.RefTo(api.KindPod, pod), o.op, "/spec"+o.path, o.value)
			edit.Generated = made
			edits = append(edits, edit)
		}
	}
	return edits, silent || made && !m.Editable()
}

// maker returns what has the template of the pod that is asked about.
func (c *Case) maker() (whatif.Workload, bool) {
	if c.Target.Workload {
		for _, w := range c.Cluster.Snapshot.Workloads {
			if w.Kind == c.Target.Object.Kind && w.Namespace == c.Target.Object.Namespace && w.Name == c.Target.Object.Name {
				return whatif.StoredWorkload(w), true
			}
		}
	}
	return whatif.WorkloadOf(c.Cluster.Snapshot, c.Pod)
}

// operationsOn rewrites operations on the spec of a pod for the spec that it was
// made from. Admission plugins add to a pod, so that its lists are longer; what
// is not in the template is left out, and what is missing on the way is added.
func operationsOn(to *corev1.PodSpec, operations []claimEdit, from *corev1.PodSpec) []claimEdit {
	document := whatif.PlainJSON(to)
	var list []claimEdit
	for _, o := range operations {
		for _, o := range elementwise(o) {
			words := whatif.PointerTokens(o.path)
			if !samePlace(words, from, to) {
				continue
			}
			o.path = "/" + whatif.JoinPointer(words)
			if _, found := whatif.LookUp(document, words); o.op == "remove" && !found {
				continue
			}
			if o.op != "remove" {
				o = added(document, o)
			}
			if changed, ok := whatif.EditDocument(document, whatif.NewEdit(api.ObjectRef{}, o.op, o.path, o.value)); ok {
				document = changed
				list = append(list, o)
			}
		}
	}
	return list
}

// elementwise takes the addition of a list of tolerations apart.
func elementwise(o claimEdit) []claimEdit {
	tolerations, ok := o.value.([]corev1.Toleration)
	if !ok || o.op != "add" || o.path != "/tolerations" {
		return []claimEdit{o}
	}
	list := make([]claimEdit, 0, len(tolerations))
	for _, t := range tolerations {
		list = append(list, claimEdit{op: "add", path: "/tolerations/-", value: t})
	}
	return list
}

// samePlace makes a path lead to the container of the same name in another spec. It reports
// whether there is such a container.
func samePlace(words []string, from, to *corev1.PodSpec) bool {
	if len(words) < 2 {
		return true
	}
	source, target := from.Containers, to.Containers
	switch words[0] {
	case "containers":
	case "initContainers":
		source, target = from.InitContainers, to.InitContainers
	default:
		return true
	}
	at, ok := whatif.ListIndex(words[1], len(source))
	if !ok {
		return false
	}
	found := slices.IndexFunc(target, func(c corev1.Container) bool { return c.Name == source[at].Name })
	if found < 0 {
		return false
	}
	words[1] = strconv.Itoa(found)
	return true
}

// added returns an operation that adds a value together with its missing parents.
func added(document any, o claimEdit) claimEdit {
	words := whatif.PointerTokens(o.path)
	last := len(words) - 1
	if _, found := whatif.LookUp(document, words); found {
		return claimEdit{op: "replace", path: o.path, value: o.value}
	}
	for last > 0 {
		if _, found := whatif.LookUp(document, words[:last]); found {
			break
		}
		if words[last] == "-" {
			o.value = []any{o.value}
		} else {
			o.value = map[string]any{words[last]: o.value}
		}
		last--
	}
	return claimEdit{op: "add", path: "/" + whatif.JoinPointer(words[:last+1]), value: o.value}
}
