// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"bytes"
	"fmt"

	"github.com/rogpeppe/go-internal/diff"
	corev1 "k8s.io/api/core/v1"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// diff returns the templates that a workload needs and its change as a unified diff, of the fields that
// have to do with devices: not all others are in a snapshot.
func (e *editor) diff() (string, error) {
	before := e.devicesIn()
	after, err := whatif.Edited(before, e.edits, e.path)
	if err != nil {
		return "", fmt.Errorf("edit %s: %w", e.object, err)
	}
	var text []byte
	for _, template := range e.templates {
		added, err := files.MarshalYAML(template)
		if err != nil {
			return "", fmt.Errorf("write ResourceClaimTemplate %s: %w", template.Name, err)
		}
		text = append(text, unified("/dev/null", nil, template.Namespace+"/resourceclaimtemplate/"+template.Name, added)...)
	}
	old, err := files.MarshalYAML(whatif.DocumentAt(whatif.PlainJSON(before), e.path))
	if err != nil {
		return "", fmt.Errorf("write %s: %w", e.object, err)
	}
	edited, err := files.MarshalYAML(whatif.DocumentAt(whatif.PlainJSON(after), e.path))
	if err != nil {
		return "", fmt.Errorf("write %s: %w", e.object, err)
	}
	name := e.object.Namespace + "/" + e.object.Argument()
	return string(append(text, unified(name, old, name, edited)...)), nil
}

// unified returns a unified diff.
func unified(oldName string, before []byte, newName string, after []byte) []byte {
	// The first line names the files once more.
	_, changes, _ := bytes.Cut(diff.Diff(oldName, before, newName, after), []byte("\n"))
	return changes
}

// devicesIn returns the parts of the spec of pods that edits can change, with the names of containers.
func (e *editor) devicesIn() *corev1.PodSpec {
	part := &corev1.PodSpec{NodeSelector: e.spec.NodeSelector, ResourceClaims: e.spec.ResourceClaims}
	if e.object.Kind == api.KindPod {
		part.NodeName = e.spec.NodeName
	}
	reduced := func(containers []corev1.Container) (list []corev1.Container) {
		for i := range containers {
			list = append(list, corev1.Container{Name: containers[i].Name, Image: containers[i].Image, Resources: containers[i].Resources})
		}
		return list
	}
	part.InitContainers, part.Containers = reduced(e.spec.InitContainers), reduced(e.spec.Containers)
	return part
}
