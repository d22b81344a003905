// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/target"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
	"github.com/kubectl-dra/kubectl-dra/pkg/whatif"
)

// Manifests are objects that users have in files and ask about as if they were
// applied.
type Manifests struct {
	// Objects all have a namespace, if their kind has one.
	Objects *snapshot.Snapshot
	texts   *fileTexts
}

// Place takes objects to be in a namespace, where they name none. They are not
// changed. Paths are the files that they were read from, empty for what no edit can
// be made in.
func Place(objects *snapshot.Snapshot, namespace string, paths []string) *Manifests {
	return &Manifests{Objects: objects.InNamespace(namespace), texts: readTexts(paths, namespace)}
}

// Over returns a snapshot in which the objects were applied.
func (m *Manifests) Over(snap *snapshot.Snapshot) *snapshot.Snapshot {
	return target.Apply(snap, m.Objects)
}

// Targets lists the targets that need an explanation, see [target.Among]. It fails if there are
// none.
func (m *Manifests) Targets(uses func(*corev1.Pod) bool) (targets []explain.Options, skipped []string, err error) {
	if targets, skipped = target.Among(m.Objects, uses); len(targets) > 0 {
		return targets, skipped, nil
	}
	there := "there is none"
	if len(skipped) > 0 {
		there += ", only " + english.Sample(skipped, 10)
	}
	return nil, skipped, cli.Usagef("It takes a claim, a template, or a pod or something with a pod template that uses claims; or name a target.",
		"find a target in the files: %s", there)
}

// Has reports whether manifests have an object.
func (m *Manifests) Has(object api.ObjectRef) bool {
	objects := m.Objects
	is := func(kind string, o metav1.Object) bool { return object == api.RefTo(kind, o) }
	return slices.ContainsFunc(cli.Candidates(objects), func(c cli.Candidate) bool { return object == c.Ref() }) ||
		slices.ContainsFunc(objects.Classes, func(c *resourceapi.DeviceClass) bool { return is("DeviceClass", c) }) ||
		slices.ContainsFunc(objects.Slices, func(s *resourceapi.ResourceSlice) bool { return is("ResourceSlice", s) }) ||
		slices.ContainsFunc(objects.TaintRules, func(r *resourceapi.DeviceTaintRule) bool { return is("DeviceTaintRule", r) }) ||
		slices.ContainsFunc(objects.Namespaces, func(n *corev1.Namespace) bool { return is("Namespace", n) })
}

// Settle turns the edits of remedies that concern objects of the files into
// diffs. The commands for them are left out: they are not in the cluster yet.
func (m *Manifests) Settle(snap *snapshot.Snapshot, e *api.Explanation) {
	for i := range e.Remedies {
		r := &e.Remedies[i]
		var stored, local []api.Edit
		for _, edit := range r.Edits {
			if m.Has(edit.Object) {
				local = append(local, edit)
			} else {
				stored = append(stored, edit)
			}
		}
		if len(local) == 0 {
			continue
		}
		if len(r.Commands) > 0 {
			r.Commands = whatif.Commands(snap, stored, nil)
		}
		// They get the change when the files are applied, and not by commands.
		for j := range r.UsedBy {
			r.UsedBy[j].Changed = false
		}
		r.Diff = m.texts.diff(local)
	}
}

// LoadKustomization builds a kustomization and reads the objects.
func LoadKustomization(ctx context.Context, dir string, options files.Options) (*snapshot.Snapshot, error) {
	if err := build(dir, &options); err != nil {
		return nil, err
	}
	return files.Manifests(ctx, []string{"-"}, options)
}

// KustomizationTexts builds a kustomization and finds the documents that it makes.
func KustomizationTexts(ctx context.Context, dir string, options files.Options) ([]files.Text, error) {
	if err := build(dir, &options); err != nil {
		return nil, err
	}
	return files.Texts(ctx, []string{"-"}, options)
}

// build builds a kustomization as kubectl apply -k does (KustomizeVisitor of
// k8s.io/cli-runtime/pkg/resource), to be read from standard input.
func build(dir string, options *files.Options) error {
	build := krusty.MakeDefaultOptions()
	build.Reorder = krusty.ReorderOptionLegacy
	objects, err := krusty.MakeKustomizer(build).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return cli.Usagef("-k takes a directory with a kustomization.yaml, as kubectl apply -k.", "build kustomization %s: %w", dir, err)
	}
	text, err := objects.AsYaml()
	if err != nil {
		return cli.Usagef("", "write kustomization %s: %w", dir, err)
	}
	options.Stdin, options.StdinName = bytes.NewReader(text), "kustomization "+dir
	return nil
}
