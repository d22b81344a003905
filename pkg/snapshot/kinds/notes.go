// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

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

// notePlugin notes on an object with a plugin for the kubelet in its pods which drivers
// it may be of. It has to come before the spec of the pods is stripped.
func notePlugin(object metav1.Object, spec *corev1.PodSpec) {
	if _, found := snapshot.Annotated(object, snapshot.KubeletPluginAnnotation); found {
		return
	}
	plugin := false
	var texts []string
	for i := range spec.Volumes {
		if host := spec.Volumes[i].HostPath; host != nil {
			plugin = plugin || isPluginDirectory(host.Path)
			texts = append(texts, strings.ReplaceAll(host.Path, "/", " "))
		}
	}
	if !plugin {
		return
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			texts = append(texts, containers[i].Command...)
			texts = append(texts, containers[i].Args...)
			for _, variable := range containers[i].Env {
				texts = append(texts, variable.Value)
			}
		}
	}
	snapshot.Annotate(object, snapshot.KubeletPluginAnnotation, dottedNames(texts))
}

// isPluginDirectory reports whether a directory of a node is one in which the
// kubelet looks for plugins, or one of a plugin, wherever the kubelet's
// directory is.
func isPluginDirectory(directory string) bool {
	for directory = path.Clean(directory); directory != "/" && directory != "."; directory = path.Dir(directory) {
		if base := path.Base(directory); base == "plugins" || base == "plugins_registry" {
			return true
		}
	}
	return false
}

// maxNames bounds how many names are noted of one object.
const maxNames = 50

// dottedNames finds what could be the name of a driver: a DNS name with a dot.
func dottedNames(texts []string) []string {
	word := regexp.MustCompile(`[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)+`)
	found := map[string]bool{}
	for _, text := range texts {
		for _, name := range word.FindAllString(text, -1) {
			if len(found) < maxNames && len(name) <= resourceapi.DriverNameMaxLength && len(validation.IsDNS1123Subdomain(name)) == 0 {
				found[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
