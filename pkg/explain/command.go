// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Commands writes edits as commands for a shell, in the order in which they
// have to run. The spec of a claim, a template, a pod or a Job cannot be changed,
// so these objects are made anew. What cannot be edited by hand, like a status,
// is left out.
func Commands(edits []Edit) []string {
	var lines []string
	renewed := slices.ContainsFunc(edits, func(e Edit) bool {
		kind, _, _ := parseObject(e.Object)
		return slices.Contains([]string{"Deployment", "DaemonSet", "Job", "CronJob"}, kind)
	})
	for len(edits) > 0 {
		object := edits[0].Object
		var of []Edit
		of, edits = split(edits, func(e Edit) bool { return e.Object == object })
		kind, _, _ := parseObject(object)
		if kind == KindPod && of[0].Generated && renewed {
			// Its controller replaces it.
			continue
		}
		if kind == KindNode {
			lines = append(lines, nodeCommands(object, of)...)
			continue
		}
		if line := command(object, of); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func command(object string, edits []Edit) string {
	kind, namespace, name := parseObject(object)
	which := strings.ToLower(kind) + " " + shellQuoted(name)
	if namespace != "" {
		which += " -n " + shellQuoted(namespace)
	}
	first := edits[0]
	if first.Generated || first.Op == "remove" && first.Path == "" {
		return "kubectl delete " + which
	}
	if labels := labelsOf(edits); labels != "" {
		return "kubectl label " + which + labels
	}
	if !strings.HasPrefix(first.Path, "/spec") && !strings.HasPrefix(first.Path, "/template") || kind == "ResourceSlice" {
		return ""
	}
	patch, err := patchOf(edits, "")
	if err != nil {
		return ""
	}
	switch kind {
	case KindClaim, KindTemplate, KindPod, "Job":
		return fmt.Sprintf("kubectl get %s -o yaml | kubectl patch --local -f - --type=json -p %s -o yaml | kubectl replace --force -f -",
			which, shellQuoted(string(patch)))
	default:
		return fmt.Sprintf("kubectl patch %s --type=json -p %s", which, shellQuoted(string(patch)))
	}
}

// nodeCommands writes edits of a node: it is uncordoned, and taints that [Edit]
// says were there are removed. Uncordoning removes the taint that goes with it.
func nodeCommands(object string, edits []Edit) []string {
	_, _, name := parseObject(object)
	var lines []string
	var taints []string
	cordoned := slices.ContainsFunc(edits, func(e Edit) bool { return e.Path == "/spec/unschedulable" })
	if cordoned {
		lines = append(lines, "kubectl uncordon "+shellQuoted(name))
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
			taints = append(taints, shellQuoted(taint.ToString()+"-"))
		}
	}
	if len(taints) > 0 {
		lines = append(lines, "kubectl taint node "+shellQuoted(name)+" "+strings.Join(taints, " "))
	}
	return lines
}

// labelsOf writes edits that only add labels as words for a command line.
func labelsOf(edits []Edit) string {
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
			words.WriteString(" " + shellQuoted(name+"="+labels[name]))
		}
	}
	return words.String()
}

// shellQuoted writes a word so that a shell takes it as it is. Names come from
// the cluster, and commands get pasted.
func shellQuoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._/:=", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 && word[0] != '-' {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
