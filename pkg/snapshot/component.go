// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The components of the control plane whose pods tell their feature gates.
const (
	ComponentScheduler         = "kube-scheduler"
	ComponentControllerManager = "kube-controller-manager"
	// ComponentLabel is the label that kubeadm and others give their pods.
	ComponentLabel = "component"
)

// Components lists them.
func Components() []string { return []string{ComponentControllerManager, ComponentScheduler} }

// Component is the pod's information about a component.
type Component struct {
	Name string
	// Version is the version of its image, such as "v1.37.1"; empty if that has none.
	Version string
	// Gates are the feature gates that its arguments set.
	Gates map[string]bool
}

// versionWord stands before the version in an annotation.
const versionWord = "version"

// NoteComponent notes on a pod which component it is, and what it says.
func NoteComponent(pod metav1.Object, c *Component) {
	words := []string{c.Name}
	if c.Version != "" {
		words = append(words, versionWord+"="+c.Version)
	}
	for _, gate := range slices.Sorted(maps.Keys(c.Gates)) {
		words = append(words, gate+"="+strconv.FormatBool(c.Gates[gate]))
	}
	Annotate(pod, ComponentAnnotation, words)
}

// ComponentOf returns the component noted on a pod, if any.
func ComponentOf(pod metav1.Object) (Component, bool) {
	words, _ := Annotated(pod, ComponentAnnotation)
	if len(words) == 0 || !slices.Contains(Components(), words[0]) {
		return Component{}, false
	}
	c := Component{Name: words[0], Gates: map[string]bool{}}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		if name == versionWord {
			if _, ok := MinorVersion(value); ok {
				c.Version = value
			}
		} else if enabled, err := strconv.ParseBool(value); err == nil {
			c.Gates[name] = enabled
		}
	}
	return c, true
}
