// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"context"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/load"
)

// LoadKustomization builds a kustomization as kubectl apply -k does
// (KustomizeVisitor of k8s.io/cli-runtime/pkg/resource) and reads the objects.
func LoadKustomization(ctx context.Context, dir string, options load.Options) (*snapshot.Snapshot, error) {
	build := krusty.MakeDefaultOptions()
	build.Reorder = krusty.ReorderOptionLegacy
	objects, err := krusty.MakeKustomizer(build).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, cli.Usagef("-k takes a directory with a kustomization.yaml, as kubectl apply -k.", "build kustomization %s: %w", dir, err)
	}
	text, err := objects.AsYaml()
	if err != nil {
		return nil, cli.Usagef("", "write kustomization %s: %w", dir, err)
	}
	options.Stdin, options.StdinName = bytes.NewReader(text), "kustomization "+dir
	return load.Manifests(ctx, []string{"-"}, options)
}
