// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/drawing"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/tables"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

// NewPools returns the verb that lists resource pools.
func NewPools(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	type pool = *api.Pool
	askServer := false
	cmd := &cobra.Command{
		Use:     "pools [NAME | DRIVER/POOL ...]",
		Aliases: []string{"pool"},
		Short:   "List resource pools: devices by state, and problems",
		Long: `List resource pools with their devices by state: Free, Allocated (to one
claim), Shared (claims have shares of it), Blocked (its counters are used up by
other partitions), Tainted (and not allocated), Unusable (the allocator ignores
it). Unhealthy counts devices in any of these states. Only whole devices are
Free: a Shared one may have capacity for more claims, and partitions that
overlap use the same counters; -o wide shows what is available. AVAILABLE counts
the free devices that a pod without tolerations and other conditions could get
now: some node that can use them is not cordoned, has no taint and room for a
pod.

A pool in state NoSlices has none left: its driver is away. Its devices that
claims have are counted as Gone; pods that run keep them.

SLICES is how many there are of how many the driver declared. With -o wide, the
table is followed by the capacity of devices that can be shared and the shared
counters (used/total) with the devices that use them, by how many more
partitions of each type the scheduler's allocator could allocate, and by the
devices that are unhealthy.

If you may not list the claims of all namespaces, devices that seem to be free
may be in use: then ≤ and ≥ mark counts that are bounds. With --ask-server, the
cluster counts instead, which sees all claims; a note says where it counts
differently. This is the only form of the command that writes: it creates a
ResourcePoolStatusRequest for each driver, and deletes it when it is answered,
or after 10s (or --request-timeout). It takes the feature gate
DRAResourcePoolStatus (alpha) and the rights to create, watch and delete these
requests.

A NAME can be a pattern like 'node-1*'.`,
		Example: `  # What is free?
  kubectl dra pools

  # Which pools does the scheduler ignore, and why?
  kubectl dra pools --field-selector state!=Usable -o wide

  # The pools with the most free devices last
  kubectl dra pools --sort-by .devices.free

  # The partitions of a pool as a drawing
  kubectl dra pools mig-01 -o svg > mig-01.svg

  # Exact counts without the right to list all claims; creates an object
  kubectl dra pools --ask-server

  # Which counts are only bounds?
  kubectl dra pools -o \
    custom-columns=POOL:.name,FREE:.devices.free,BOUND:.devices.freeIsUpperBound`,
	}
	cmd.Flags().BoolVar(&askServer, "ask-server", false,
		"Let the cluster count, which sees all claims. Creates ResourcePoolStatusRequests and deletes them when they are answered.")
	return newCommand(streams, config, cmd, listing[pool]{
		name: "Pool", plural: "pools",
		names:  namesOfPool,
		labels: func(p pool) map[string]string { return p.Labels }, labelsOf: "all their ResourceSlices",
		fields: []field[pool]{
			{name: "driver", of: func(p pool) string { return p.Driver }},
			{name: "pool", of: func(p pool) string { return p.Name }},
			{name: "node", of: func(p pool) string { return p.Node }},
			{
				name: "state", of: func(p pool) string { return string(p.State) },
				values: texts(api.PoolStateUsable, api.PoolStateEmpty, api.PoolStateIncomplete, api.PoolStateInvalid, api.PoolStateNodeGone, api.PoolStateUnusable, api.PoolStateNoSlices),
			},
		},
		devices:   func(items []pool, _ *listed) api.DeviceCounts { return inventory.TotalOfPools(items).Devices },
		uncertain: func(p pool) bool { return len(p.Devices.Bounds) > 0 },

		proposes: cli.ProposePools,
		prepare: func(o *lister[pool]) error {
			switch {
			case askServer && !o.reader.Live():
				return cli.Usagef("Leave one of them out.", "--ask-server and --snapshot: a file has no server to ask")
			case askServer && o.watch:
				return cli.Usagef("Leave one of them out.", "--ask-server and --watch: the server is asked only once")
			case askServer:
				o.asks = append(o.asks, snapshot.ResourcePoolStatuses)
			}
			return nil
		},
		reads: inventory.StateReads(snapshot.ResourceNodes, snapshot.ResourcePods, snapshot.ResourcePodGroups),
		asks:  []string{snapshot.ResourceSlices}, unused: inventory.UnusedByPools(),
		items: func(ctx context.Context, from *listed) ([]pool, error) {
			if askServer {
				if err := askPoolStatus(ctx, from); err != nil {
					return nil, err
				}
			}
			pools, err := from.inventory.Pools(ctx)
			from.notes = append(from.notes, poolDifferences(pools)...)
			from.notes = append(from.notes, stillTaken(from.inventory, "counted")...)
			return pointers(pools), err
		},
		table: plain(tables.Pools),
		details: func(_ context.Context, w io.Writer, items []pool, _ *listed) error {
			return tables.PoolDetails(w, items, render.Options{Width: cli.OutputWidth(w)})
		},
		draw: drawPools,
		total: func(items []pool, from *listed) string {
			return tables.PoolTotal(inventory.TotalOfPools(items), from.asked.inWide("why"))
		},
	})
}

// drawPools draws the pools that have partitions, each with its devices.
func drawPools(pools []*api.Pool, from *listed) (*drawing.Drawing, error) {
	devices := map[string][]api.Device{}
	for _, d := range from.inventory.Devices() {
		devices[d.Driver+"/"+d.Pool] = append(devices[d.Driver+"/"+d.Pool], d)
	}
	divided := slices.DeleteFunc(slices.Clone(pools), func(p *api.Pool) bool { return len(p.Counters) == 0 })
	if len(divided) == 0 {
		return nil, cli.Usagef("-o svg draws pools with shared counters.", "none of %s has partitions", english.Count(len(pools), "pool"))
	}
	return drawing.Pools(divided, func(p *api.Pool) []api.Device { return devices[inventory.PoolName(p)] }), nil
}

// askPoolStatus lets the cluster count the pools that the patterns name.
func askPoolStatus(ctx context.Context, from *listed) error {
	snap, made, err := collect.AskPoolStatus(ctx, *from.Clients, from.Snap, func(driver, pool string) bool {
		return called(from.asked.patterns, namesOfPool(&api.Pool{Driver: driver, Name: pool}))
	})
	if err != nil {
		return err
	}
	from.Snap, from.cluster = snap, from.cluster.Amended(snap)
	from.inventory = inventory.New(from.cluster)
	if made > 0 {
		from.writes = append(from.writes, fmt.Sprintf("the cluster was asked for its counts with %s, created for that and deleted again",
			english.Count(made, "ResourcePoolStatusRequest")))
	}
	return nil
}

// maxDifferences limits how many pools the notes describe.
const maxDifferences = 10

// poolDifferences describes where the cluster's counts differ.
func poolDifferences(pools []api.Pool) []string {
	var notes []string
	for i := range pools {
		for _, difference := range pools[i].Differences {
			notes = append(notes, fmt.Sprintf("pool %s/%s: %s", pools[i].Driver, pools[i].Name, difference))
		}
	}
	if more := len(notes) - maxDifferences; more > 0 {
		notes = append(notes[:maxDifferences], fmt.Sprintf("%d more differences: -o json has all", more))
	}
	return notes
}

func namesOfPool(p *api.Pool) []string { return []string{inventory.PoolName(p), p.Name} }

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
