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
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

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
