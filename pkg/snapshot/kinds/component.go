// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// noteComponent notes on a pod of the control plane which feature gates its arguments
// set. It has to come before the pod is stripped. One that emulates another release has
// other defaults, and no note.
func noteComponent(pod *corev1.Pod) {
	component := pod.Labels[snapshot.ComponentLabel]
	if pod.Namespace != metav1.NamespaceSystem || !slices.Contains(snapshot.Components(), component) {
		return
	}
	var words []string
	noted := &snapshot.Component{Name: component}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		// Some are started by a shell.
		for _, text := range slices.Concat(c.Command, c.Args) {
			words = append(words, strings.Fields(text)...)
		}
		if _, tag, found := strings.Cut(path.Base(c.Image), ":"); found && noted.Version == "" {
			tag, _, _ = strings.Cut(tag, "@")
			if _, ok := snapshot.MinorVersion(tag); ok {
				noted.Version = tag
			}
		}
	}
	if len(words) == 0 || slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, "--emulat") }) {
		return
	}
	noted.Gates = gatesIn(words)
	snapshot.NoteComponent(pod, noted)
}

// gatesIn returns what arguments say about feature gates.
func gatesIn(words []string) map[string]bool {
	known := append(snapshot.KnownGates(), "AllAlpha", "AllBeta")
	gates := map[string]bool{}
	for i, word := range words {
		text, found := strings.CutPrefix(word, "--feature-gates")
		switch {
		case !found:
			continue
		case text == "" && i+1 < len(words):
			text = words[i+1]
		default:
			text = strings.TrimPrefix(text, "=")
		}
		for setting := range strings.SplitSeq(strings.Trim(text, `"'`), ",") {
			name, value, _ := strings.Cut(strings.TrimPrefix(setting, "kube:"), "=")
			if enabled, err := strconv.ParseBool(value); err == nil && slices.Contains(known, name) {
				gates[name] = enabled
			}
		}
	}
	return gates
}
