// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"iter"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// CompleteFlags completes the values of those flags that a command has.
func CompleteFlags(f *ReadingFlags, cmd *cobra.Command) {
	gates := make([]string, 0, 2*len(snapshot.KnownGates()))
	for _, gate := range snapshot.KnownGates() {
		gates = append(gates, gate+"=true", gate+"=false")
	}
	device := CompleteWith(f, ProposeDevices)
	if cmd.Flags().Lookup("driver") != nil {
		// There, the three flags together name a device.
		device = CompleteWith(f, proposeSliceParts(func(s sliceParts) []string { return s.devices }))
	}
	values := map[string]cobra.CompletionFunc{
		"node":               CompleteWith(f, Propose("node")),
		"class":              CompleteWith(f, Propose("class")),
		"driver":             CompleteWith(f, proposeSliceParts(func(s sliceParts) []string { return []string{s.driver} })),
		"pool":               CompleteWith(f, proposeSliceParts(func(s sliceParts) []string { return []string{s.pool} })),
		"device":             device,
		"columns":            CompleteWith(f, proposeAttributes),
		"feature-gates":      ListOfFixed(gates...),
		"color":              Fixed(ColorAuto, ColorAlways, ColorNever),
		"dry-run":            Fixed(DryRuns()...),
		"format":             Fixed(string(files.YAML), string(files.JSON)),
		"where":              cobra.NoFileCompletions,
		"name":               cobra.NoFileCompletions,
		"selector":           cobra.NoFileCompletions,
		"limit":              cobra.NoFileCompletions,
		"sort-by":            cobra.NoFileCompletions,
		"kubernetes-version": cobra.NoFileCompletions,
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if cmd.Flags().Lookup(name) != nil {
			// RegisterFlagCompletionFunc only fails for duplicates.
			_ = cmd.RegisterFlagCompletionFunc(name, values[name])
		}
	}
}

// CompleteClusterFlags completes kubectl's own flags whose values are names, for all
// commands.
func CompleteClusterFlags(f *ReadingFlags, root *cobra.Command) {
	values := map[string]cobra.CompletionFunc{
		"namespace": CompleteWith(f, Propose("namespace")),
		"context":   CompleteWith(f, proposeFromKubeconfig(func(c api.Config) iter.Seq[string] { return maps.Keys(c.Contexts) })),
		"cluster":   CompleteWith(f, proposeFromKubeconfig(func(c api.Config) iter.Seq[string] { return maps.Keys(c.Clusters) })),
		"user":      CompleteWith(f, proposeFromKubeconfig(func(c api.Config) iter.Seq[string] { return maps.Keys(c.AuthInfos) })),
	}
	for name, value := range values {
		_ = root.RegisterFlagCompletionFunc(name, value)
	}
}
