// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

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
