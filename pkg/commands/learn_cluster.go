// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// exampleFiles are the files of examples/cluster, gangManifest is examples/manifests/gang.yaml; both
// are written by make generate.
var (
	//go:embed learn_cluster.yaml.gz
	exampleFiles []byte //nolint:gochecknoglobals // The compiler fills it.
	//go:embed learn_gang.yaml
	gangManifest string //nolint:gochecknoglobals // The compiler fills it.
)

// exampleText returns the YAML of the example cluster.
func exampleText() (string, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(exampleFiles))
	if err != nil {
		return "", fmt.Errorf("read the example cluster: %w", err)
	}
	text, err := io.ReadAll(unzipped)
	if err != nil {
		return "", fmt.Errorf("read the example cluster: %w", err)
	}
	return string(text), nil
}

// loadExample returns the snapshot of the example cluster.
func loadExample(ctx context.Context) (*snapshot.Snapshot, error) {
	text, err := exampleText()
	if err != nil {
		return nil, err
	}
	return files.Content(ctx, "example cluster", []byte(text), files.Options{})
}

// manifest returns the manifest to correct: the object of the exercise and, of a pod, the
// claim templates that it uses.
func (e *exercise) manifest() (string, error) {
	if e.object.Kind == "Job" {
		return gangManifest, nil
	}
	text, err := exampleText()
	if err != nil {
		return "", err
	}
	wanted := []api.ObjectRef{e.object}
	var parts []string
	// A pod comes after the templates that it uses.
	documents := strings.Split(text, "\n---\n")
	slices.Reverse(documents)
	for _, document := range documents {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return "", fmt.Errorf("read the example cluster: %w", err)
		}
		is := func(ref api.ObjectRef) bool {
			return ref.Kind == object.GetKind() && ref.Namespace == object.GetNamespace() && ref.Name == object.GetName()
		}
		if !slices.ContainsFunc(wanted, is) {
			continue
		}
		claims, _, _ := unstructured.NestedSlice(object.Object, "spec", "resourceClaims")
		for _, claim := range claims {
			if claim, ok := claim.(map[string]any); ok {
				name, _ := claim["resourceClaimTemplateName"].(string)
				wanted = append(wanted, api.Ref(api.KindTemplate, e.object.Namespace, name))
			}
		}
		// What the API server and controllers have written is nothing to apply.
		for _, field := range [][]string{{"status"}, {"metadata", "uid"}, {"metadata", "creationTimestamp"}, {"metadata", "ownerReferences"}} {
			unstructured.RemoveNestedField(object.Object, field...)
		}
		part, err := yaml.Marshal(object.Object)
		if err != nil {
			return "", fmt.Errorf("print %s: %w", object.GetName(), err)
		}
		parts = append(parts, string(part))
	}
	return strings.Join(parts, "---\n"), nil
}

// corrected returns the manifest with the edits of the answer.
func (e *exercise) corrected() (string, error) {
	text, err := e.manifest()
	if err != nil {
		return "", err
	}
	for _, change := range e.answer {
		text = strings.Replace(text, change.from, change.to, 1)
	}
	return text, nil
}

// said returns what the scheduler said about the target, empty if it is not in the cluster.
func (e *exercise) said(snap *snapshot.Snapshot) string {
	for _, pod := range snap.Pods {
		if pod.Namespace != e.target.Namespace || pod.Name != e.target.Name || e.target.Kind != api.KindPod {
			continue
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled {
				return condition.Message
			}
		}
	}
	return ""
}
