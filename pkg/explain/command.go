// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Commands writes edits as commands for a shell, one a line. The spec of a
// claim, a template, a pod or a Job cannot be changed, so these objects are
// made anew. What cannot be edited by hand, like a status, is left out.
func Commands(edits []Edit) string {
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
		if line := command(object, of); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
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
	if label, ok := strings.CutPrefix(first.Path, "/metadata/labels/"); ok && len(edits) == 1 {
		var value string
		if json.Unmarshal(first.Value, &value) != nil {
			return ""
		}
		label = strings.NewReplacer("~1", "/", "~0", "~").Replace(label)
		return fmt.Sprintf("kubectl label %s %s", which, shellQuoted(label+"="+value))
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
