// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func newSlices(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	flags := newListFlags(config, &api.Slice{}, "their own")
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
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := flags.toOptions(cmd, args, listing{
				kind: "Slice", plural: "ResourceSlices", reads: stateReads(snapshot.ResourceNodes), asks: []string{snapshot.ResourceSlices}, unread: unreadBySlices(),
				items: func(_ context.Context, from *listed) ([]api.Item, error) {
					return asItems(from.inventory.Slices()), nil
				},
				table: func(items []api.Item) *metav1.Table { return render.Slices(typed[*api.Slice](items)) },
				total: func(items []api.Item) string { return sliceTotal(items, flags.inWide("why")) },
				name:  func(item api.Item) string { return "resourceslice.resource.k8s.io/" + item.Names()[0] },
			}, streams)
			if err != nil {
				return err
			}
			return options.run(cmd.Context())
		},
	}
	flags.addTo(cmd, false)
	cmd.ValidArgsFunction = flags.reading.complete(proposeNames("slice"))
	flags.complete(cmd)
	return cmd
}

func sliceTotal(items []api.Item, inWide string) string {
	devices, free, odd, bound := 0, 0, 0, false
	for _, slice := range typed[*api.Slice](items) {
		devices += slice.Devices
		free += slice.Free
		bound = bound || slice.FreeIsUpperBound
		if slice.State != api.SliceStateCurrent {
			odd++
		}
	}
	text := fmt.Sprintf("%s, %s, %s free", english.Count(len(items), "slice"), english.Count(devices, "device"), render.AtMost(free, bound))
	if odd > 0 {
		text += fmt.Sprintf("; %d with problems%s", odd, inWide)
	}
	return text
}
