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

	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func newPools(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	flags := newListFlags(config)
	cmd := &cobra.Command{
		Use:     "pools [NAME | DRIVER/POOL ...]",
		Aliases: []string{"pool"},
		Short:   "List resource pools: what is free, what is used, what is broken",
		Long: `List resource pools with their devices by state: Free, Allocated (one claim has
it), Shared (claims have shares of it), Blocked (its counters are used up by
other partitions), Tainted (and not allocated), Unusable (the allocator does not
look at it). Unhealthy counts devices in any of these states.

SLICES is how many there are of how many the driver declared. With -o wide there
are also the shared counters (used/total), the capacity of devices that can be
shared, and how many more partitions of each type the scheduler's allocator
finds room for.

A NAME can be a pattern like 'node-1*'.`,
		Example: `  # What is free?
  kubectl dra pools

  # Which pools does the scheduler ignore, and why?
  kubectl dra pools --field-selector state!=Usable -o wide

  # The pools with the most free devices last
  kubectl dra pools --sort-by .devices.free`,
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := flags.toOptions(cmd, args, listing{
				kind: "Pool", plural: "pools", reads: []string{snapshot.ResourceNodes, snapshot.ResourcePods, snapshot.ResourceClasses, snapshot.ResourcePodGroups},
				items: func(ctx context.Context, from *listed) ([]inventory.Item, error) {
					pools, err := from.inventory.Pools(ctx)
					return asItems(pools), err
				},
				table: func(items []inventory.Item) *metav1.Table { return render.Pools(typed[*inventory.Pool](items)) },
				total: poolTotal,
				name:  func(item inventory.Item) string { return item.Names()[0] },
			}, streams)
			if err != nil {
				return err
			}
			return options.run(cmd.Context())
		},
	}
	flags.addTo(cmd, false)
	cmd.ValidArgsFunction = flags.reading.complete("pool", "")
	flags.reading.completeFlags(cmd)
	return cmd
}

func poolTotal(items []inventory.Item) string {
	var sum inventory.DeviceCounts
	odd := 0
	for _, pool := range typed[*inventory.Pool](items) {
		sum.Total += pool.Devices.Total
		sum.Free += pool.Devices.Free
		if pool.State != inventory.PoolUsable {
			odd++
		}
	}
	text := fmt.Sprintf("%s, %s, %d free", counted(len(items), "pool"), counted(sum.Total, "device"), sum.Free)
	if odd > 0 {
		text += fmt.Sprintf("; %d not usable: -o wide says why", odd)
	}
	return text
}
