// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/tables"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// NewSlices returns the verb that lists ResourceSlices.
func NewSlices(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	type slice = *api.Slice
	cmd := &cobra.Command{
		Use:     "slices [NAME ...]",
		Aliases: []string{"slice"},
		Short:   "List ResourceSlices and whether the scheduler uses them",
		Long: `List ResourceSlices: for which nodes, of which driver and pool, how many devices
they have and how many of these are free.

STATE is Current for a slice that the scheduler's allocator uses. Others are
Obsolete (the pool has a newer generation), Incomplete (slices of the pool are
missing), Invalid (the allocator refuses the pool; -o wide says why), Empty,
NodeGone or NodeNotReady. ≤ marks a count that is only an upper bound, because
you are not permitted to list the claims of all namespaces.

A NAME can be a pattern like 'node-1*'.`,
		Example: `  # All slices
  kubectl dra slices

  # Those that the scheduler does not use, and why
  kubectl dra slices --field-selector state!=Current -o wide

  # Those of one driver, the newest last
  kubectl dra slices --field-selector driver=gpu.example.com --sort-by .created`,
	}
	return newCommand(streams, config, cmd, listing[slice]{
		name: "Slice", plural: "ResourceSlices", prefix: "resourceslice.resource.k8s.io/",
		names:  func(s slice) []string { return []string{s.Name} },
		labels: func(s slice) map[string]string { return s.Labels }, labelsOf: "their own",
		// The first ones are those that the API server knows.
		fields: []field[slice]{
			{name: "metadata.name", of: func(s slice) string { return s.Name }},
			{name: "spec.driver", of: func(s slice) string { return s.Driver }},
			{name: "spec.nodeName", of: func(s slice) string { return s.Node }},
			{name: "spec.pool.name", of: func(s slice) string { return s.Pool }},
			{name: "driver", of: func(s slice) string { return s.Driver }},
			{name: "pool", of: func(s slice) string { return s.Pool }},
			{name: "node", of: func(s slice) string { return s.Node }},
			{
				name: "state", of: func(s slice) string { return string(s.State) },
				values: texts(api.SliceStateCurrent, api.SliceStateEmpty, api.SliceStateObsolete, api.SliceStateIncomplete, api.SliceStateInvalid, api.SliceStateNodeGone, api.SliceStateNodeNotReady),
			},
		},
		uncertain: func(s slice) bool { return s.FreeIsUpperBound },
		ageless:   func(s slice) { s.AgeSeconds = 0 },

		proposes: cli.Propose("slice"),
		reads:    inventory.StateReads(snapshot.ResourceNodes), asks: []string{snapshot.ResourceSlices}, unused: inventory.UnusedBySlices(),
		items: func(_ context.Context, from *listed) ([]slice, error) {
			return pointers(from.inventory.Slices()), nil
		},
		table: plain(tables.Slices),
		total: func(items []slice, from *listed) string {
			return tables.SliceTotal(inventory.TotalOfSlices(items), from.asked.inWide("why"))
		},
	})
}
