// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/shell"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// Commands writes edits of stored objects as shell commands, in the order in which they
// have to run, so that the waiting pods get the change. The spec of a claim, a template, a
// pod or a Job cannot be changed, so these objects are replaced. Edits that nobody can make
// by hand, like a status, are left out.
func Commands(snap *snapshot.Snapshot, edits []api.Edit, pods []api.RemedyPod) []string {
	w := commandWriter{snap: snap, pods: pods}
	for len(edits) > 0 {
		object := edits[0].Object
		var of []api.Edit
		of, edits = split(edits, func(e api.Edit) bool { return e.Object == object })
		w.object(object, of)
	}
	return append(w.lines, w.bringToPods()...)
}

// object writes the edits of one object.
func (w *commandWriter) object(object api.ObjectRef, edits []api.Edit) {
	kind, namespace, name := object.Kind, object.Namespace, object.Name
	which := shell.KubectlObjects(strings.ToLower(kind), namespace, name)
	first := edits[0]
	if first.Generated {
		// It is made again from the changed object.
		return
	}
	switch {
	case first.Op == "remove" && first.Path == "":
		w.add("kubectl delete %s", which)
		return
	case kind == api.KindNode:
		w.lines = append(w.lines, nodeCommands(name, edits)...)
		return
	case kind == "ResourceSlice":
		return
	}
	if labels := labelsOf(edits); labels != "" {
		w.add("kubectl label %s%s", which, labels)
		return
	}
	switch kind {
	case api.KindClaim, api.KindTemplate, api.KindPod:
		if !strings.HasPrefix(first.Path, "/spec") {
			return
		}
		w.replaced(which, edits)
		if kind == api.KindTemplate {
			if w.templates == nil {
				w.templates = map[string][]api.Edit{}
			}
			w.templates[name] = edits
		}
		if kind == api.KindPod {
			w.changed = append(w.changed, object)
		}
	case api.KindPodGroup:
		if patch, err := patchOf(edits, ""); err == nil {
			// Other projects have a kind of that name.
			w.add("kubectl patch %s --type=json -p %s", shell.KubectlObjects("podgroup.scheduling.k8s.io", namespace, name), shell.Quote(string(patch)))
		}
	case "DeviceClass":
		if patch, err := patchOf(edits, ""); err == nil {
			w.add("kubectl patch %s --type=json -p %s", which, shell.Quote(string(patch)))
		}
	default:
		w.workload(object, edits)
	}
}

// nodeCommands writes edits of a node: it is uncordoned, and taints that [api.Edit] lists
// as previous are removed. Uncordoning removes the taint that goes with it.
func nodeCommands(name string, edits []api.Edit) []string {
	var lines []string
	var taints []string
	cordoned := slices.ContainsFunc(edits, func(e api.Edit) bool { return e.Path == "/spec/unschedulable" })
	if cordoned {
		lines = append(lines, "kubectl uncordon "+nodeName(name))
	}
	for _, e := range edits {
		var removed []corev1.Taint
		var one corev1.Taint
		switch {
		case e.Op != "remove" || len(e.From) == 0:
			continue
		case e.Path == "/spec/taints":
			if json.Unmarshal(e.From, &removed) != nil {
				continue
			}
		case strings.HasPrefix(e.Path, "/spec/taints/"):
			if json.Unmarshal(e.From, &one) != nil {
				continue
			}
			removed = append(removed, one)
		}
		for _, taint := range removed {
			if cordoned && taint.Key == corev1.TaintNodeUnschedulable {
				continue
			}
			taints = append(taints, shell.Quote(taint.ToString()+"-"))
		}
	}
	if len(taints) > 0 {
		lines = append(lines, "kubectl taint "+shell.KubectlObjects("node", "", name)+" "+strings.Join(taints, " "))
	}
	return lines
}

// nodeName returns the name of a node for kubectl.
func nodeName(name string) string {
	if strings.HasPrefix(name, "-") {
		return shell.Quote("node/" + name)
	}
	return shell.Quote(name)
}

// labelsOf writes edits that only add labels as words for a command line.
func labelsOf(edits []api.Edit) string {
	var words strings.Builder
	for _, e := range edits {
		labels := map[string]string{}
		var value string
		name, single := strings.CutPrefix(e.Path, "/metadata/labels/")
		switch {
		case single && json.Unmarshal(e.Value, &value) == nil:
			labels[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)] = value
		case e.Path != "/metadata/labels" || json.Unmarshal(e.Value, &labels) != nil:
			return ""
		}
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			words.WriteString(" " + shell.Quote(name+"="+labels[name]))
		}
	}
	return words.String()
}

// workload writes edits of the pod template of a workload.
func (w *commandWriter) workload(object api.ObjectRef, edits []api.Edit) {
	m, pod, ok := w.workloadNamed(object)
	if !ok || !m.Editable() {
		return
	}
	which := shell.KubectlObjects(m.resource(), m.Namespace, m.Name)
	if Scales(edits[0]) {
		w.scaleCommand(which, edits[0])
		return
	}
	w.workloads = append(w.workloads, m)
	if !m.builtIn() {
		if patch, err := patchOf(edits, ""); err == nil {
			w.add("kubectl patch %s --type=json -p %s", which, shell.Quote(string(patch)))
		}
		return
	}
	if pod == nil {
		pod = &corev1.Pod{}
	}
	spec, err := podSpecPatch(m.PodSpec(pod), edits, m.PodSpecPath())
	if err != nil {
		return
	}
	document, ok := DocumentAt(spec, m.PodSpecPath()).(map[string]any)
	if !ok {
		return
	}
	if m.isJob() {
		withoutGenerated(document, m, pod)
	}
	patch, err := json.Marshal(document)
	if err != nil {
		return
	}
	if m.isJob() {
		w.add("kubectl get %s -o yaml | kubectl patch --local -f - -p %s -o json | kubectl replace --force -f -", which, shell.Quote(string(patch)))
		return
	}
	w.add("kubectl patch %s -p %s", which, shell.Quote(string(patch)))
}

// workloadNamed finds the workload of an edit, and one of its pods, if there is one.
func (w *commandWriter) workloadNamed(object api.ObjectRef) (Workload, *corev1.Pod, bool) {
	for _, p := range w.pods {
		pod := w.snap.Pod(p.Namespace, p.Name)
		if pod == nil {
			continue
		}
		if m, made := WorkloadOf(w.snap, pod); made && m.ObjectRef == object {
			return m, pod, true
		}
	}
	if stored := storedWorkload(w.snap, object); stored != nil {
		return StoredWorkload(stored), nil, true
	}
	for _, pod := range w.snap.Pods {
		if m, made := WorkloadOf(w.snap, pod); made && m.ObjectRef == object {
			return m, pod, true
		}
	}
	return Workload{}, nil, false
}

// podSpecPatch writes edits of the spec of pods as a strategic merge patch: it
// finds containers by their names, whatever their order is in the template.
func podSpecPatch(spec *corev1.PodSpec, edits []api.Edit, prefix string) (map[string]any, error) {
	after, err := Edited(spec, edits, prefix)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	changed, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	text, err := strategicpatch.CreateTwoWayMergePatch(before, changed, corev1.PodSpec{})
	if err != nil {
		return nil, err
	}
	patch := map[string]any{}
	if err := json.Unmarshal(text, &patch); err != nil {
		return nil, err
	}
	// The order of containers stays.
	for key := range patch {
		if strings.HasPrefix(key, "$setElementOrder/") {
			delete(patch, key)
		}
	}
	return patch, nil
}

// withoutGenerated makes a patch of a Job remove the selector and the labels that the API
// server has generated from its UID: the new Job gets its own
// (pkg/registry/batch/job/strategy.go).
func withoutGenerated(patch map[string]any, m Workload, pod *corev1.Pod) {
	labels := pod.Labels
	if m.stored != nil {
		labels = m.stored.Template.Labels
	}
	removed := map[string]any{}
	for _, label := range []string{"batch.kubernetes.io/controller-uid", "controller-uid"} {
		if _, found := labels[label]; found {
			removed[label] = nil
		}
	}
	if len(removed) == 0 {
		// The author of the Job has chosen the selector.
		return
	}
	spec, _ := patch["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	if template == nil {
		return
	}
	spec["selector"] = nil
	template["metadata"] = map[string]any{"labels": removed}
}

// bringToPods writes the commands that bring the change to the waiting pods: they are
// deleted, so that their controller makes others, or replaced if they have none. For a Job,
// a deleted pod counts as a failure, so the claims of its pods are replaced instead; the
// same goes for a claim that a whole group shares. The claims keep their names, and the
// resourceclaim controller leaves them alone.
func (w *commandWriter) bringToPods() []string {
	var bare, made []*corev1.Pod
	claims := map[string][]*resourceapi.ResourceClaim{}
	for _, p := range w.pods {
		pod := w.snap.Pod(p.Namespace, p.Name)
		if pod == nil || !p.Changed || slices.Contains(w.changed, api.RefTo(api.KindPod, pod)) {
			continue
		}
		m, isMade := WorkloadOf(w.snap, pod)
		changed := slices.ContainsFunc(w.workloads, func(other Workload) bool { return other.ObjectRef == m.ObjectRef })
		switch {
		case changed && m.ReplacesPods():
		case !changed && (isMade && m.isJob() || w.sharesClaims(pod)):
			unallocated, templates := w.claimsFromChanged(pod)
			for i, claim := range unallocated {
				if !slices.Contains(claims[templates[i]], claim) {
					claims[templates[i]] = append(claims[templates[i]], claim)
				}
			}
		case isMade:
			made = append(made, pod)
		default:
			bare = append(bare, pod)
		}
	}
	lines := w.renewed(claims)
	if len(bare) > 0 {
		lines = append(lines, "kubectl get "+podWords(bare)+" -o yaml | kubectl replace --force -f -")
	}
	if len(made) > 0 {
		line := "kubectl delete " + podWords(made)
		if len(w.workloads) > 0 {
			// The controller may have been faster. For a pod that it has recreated under
			// its name, kubectl would wait for the end.
			line += " --ignore-not-found --wait=false"
		}
		lines = append(lines, line)
	}
	return lines
}

func podWords(pods []*corev1.Pod) string {
	names := make([]string, 0, len(pods))
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return shell.KubectlObjects("pod", pods[0].Namespace, names...)
}

// claimsFromChanged lists the unallocated claims of a pod that were made from the changed
// templates, each with the name of its template.
func (w *commandWriter) claimsFromChanged(pod *corev1.Pod) (claims []*resourceapi.ResourceClaim, templates []string) {
	for _, entry := range pod.Spec.ResourceClaims {
		if entry.ResourceClaimTemplateName == nil || w.templates[*entry.ResourceClaimTemplateName] == nil {
			continue
		}
		for _, status := range pod.Status.ResourceClaimStatuses {
			if status.Name != entry.Name || status.ResourceClaimName == nil {
				continue
			}
			if claim := w.snap.Claim(pod.Namespace, *status.ResourceClaimName); claim != nil && claim.Status.Allocation == nil {
				claims, templates = append(claims, claim), append(templates, *entry.ResourceClaimTemplateName)
			}
		}
	}
	return claims, templates
}

// sharesClaims reports whether a claim of a pod, made from a changed template, belongs to a
// PodGroup instead of the pod.
func (w *commandWriter) sharesClaims(pod *corev1.Pod) bool {
	claims, _ := w.claimsFromChanged(pod)
	return slices.ContainsFunc(claims, func(claim *resourceapi.ResourceClaim) bool {
		return !slices.ContainsFunc(claim.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == api.KindPod })
	})
}

// renewed writes the edits of templates as edits of the claims from each template. One
// command replaces all claims of a template: if it replaced one after the other, a gang
// could start with the first changed claims, and the deletion of a claim that is in use
// does not end.
func (w *commandWriter) renewed(claims map[string][]*resourceapi.ResourceClaim) []string {
	other := commandWriter{snap: w.snap}
	for _, template := range slices.Sorted(maps.Keys(claims)) {
		var edits []api.Edit
		for _, e := range w.templates[template] {
			if path, ok := strings.CutPrefix(e.Path, "/spec/spec"); ok {
				e.Path = "/spec" + path
				edits = append(edits, e)
			}
		}
		var names []string
		for _, claim := range claims[template] {
			names = append(names, claim.Name)
		}
		slices.Sort(names)
		other.replaced(shell.KubectlObjects("resourceclaim", claims[template][0].Namespace, names...), edits)
	}
	return other.lines
}

// replaced writes edits of objects whose specs cannot be changed. Of several objects, kubectl
// patch --local prints YAML documents without a line between them, but JSON can be read back.
func (w *commandWriter) replaced(which string, edits []api.Edit) {
	if patch, err := patchOf(edits, ""); err == nil {
		w.add("kubectl get %s -o yaml | kubectl patch --local -f - --type=json -p %s -o json | kubectl replace --force -f -", which, shell.Quote(string(patch)))
	}
}

// scaleCommand writes such an edit as a command.
func (w *commandWriter) scaleCommand(which string, e api.Edit) {
	if ReplacesPods(e) {
		w.add("kubectl patch %s -p %s", which, shell.Quote(fmt.Sprintf(`{"spec":{"%s":%s}}`, strings.TrimPrefix(e.Path, "/spec/"), e.Value)))
		return
	}
	if e.Path == replicasPath {
		w.add("kubectl scale %s --replicas=%s", which, e.Value)
		return
	}
	w.add(`kubectl patch %s -p '{"spec":{"parallelism":%s}}'`, which, e.Value)
}

// commandWriter writes the commands for the edits of one remedy.
type commandWriter struct {
	snap *snapshot.Snapshot
	pods []api.RemedyPod
	// lines change objects. After them, pods have to get the change.
	lines []string
	// templates are the edits of each changed template, by its name.
	templates map[string][]api.Edit
	// workloads are the changed workloads.
	workloads []Workload
	// changed are the pods that are replaced by lines already.
	changed []api.ObjectRef
}

func (w *commandWriter) add(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}
