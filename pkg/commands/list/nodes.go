// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/tables"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// NewNodes returns the verb that lists nodes.
func NewNodes(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	type node = *api.ListedNode
	problems, all, others := false, 0, 0
	cmd := &cobra.Command{
		Use:     "nodes [NAME ...]",
		Aliases: []string{"node"},
		Short:   "List nodes: their devices, drivers and missing slices",
		Long: `List the nodes that have devices, drivers, or pods with claims: the devices for
the node alone, and how many of them are free. PLACEABLE BY CLASS has, for each
DeviceClass, how many claims for one device the scheduler's allocator can place
there now, for pods without tolerations: none on a node that is cordoned,
tainted or full.

DRIVERS has the version that the devices publish as driverVersion, or else the
version of the image of the driver's pod. PODS counts the pods with claims.

PROBLEMS has pools that are not usable, tainted and unhealthy devices, nodes
with devices that are cordoned or not ready (since when, if that is recorded,
and how many devices are idle), and slices that are missing: a driver publishes
nothing for the node although its DaemonSet has a ready pod there, or although
it publishes for most nodes with the same labels. ≤ marks counts that are only
upper bounds, because you are not permitted to list the claims of all
namespaces.

A NAME can be a pattern like 'gpu-*'. A node without any of that is only listed
by name.`,
		Example: `  # Where are free devices of which class?
  kubectl dra nodes

  # Nodes with problems, such as slices that are missing
  kubectl dra nodes --problems

  # By zone
  kubectl dra nodes --by label=topology.kubernetes.io/zone

  # The nodes with the most free devices last
  kubectl dra nodes --sort-by .devices.free

  # How many nodes have which version of which driver?
  kubectl dra nodes --by version`,
	}
	cmd.Flags().BoolVar(&problems, "problems", false, "Only nodes with problems.")
	return newCommand(streams, config, cmd, listing[node]{
		name: "Node", plural: "nodes", prefix: "node/",
		names:  func(n node) []string { return []string{n.Name} },
		labels: func(n node) map[string]string { return n.Labels }, labelsOf: "their own",
		fields: []field[node]{
			{name: "metadata.name", of: func(n node) string { return n.Name }},
			{name: "state", of: func(n node) string { return n.State }, values: []string{inventory.NodeReady, inventory.NodeNotReady, inventory.NodeGone}},
			{name: "cordoned", of: func(n node) string { return strconv.FormatBool(n.Cordoned) }, values: []string{"true", "false"}},
		},
		groups: []group[node]{
			{"driver", func(n node, _ *listed) []string {
				var drivers []string
				for i := range n.Drivers {
					drivers = append(drivers, n.Drivers[i].Driver)
				}
				return drivers
			}},
			{"version", func(n node, _ *listed) []string {
				var versions []string
				for i := range n.Drivers {
					versions = append(versions, n.Drivers[i].Driver+" "+cmp.Or(n.Drivers[i].Version, n.Drivers[i].Image, "(version unknown)"))
				}
				return versions
			}},
			{"class", func(n node, _ *listed) []string {
				var classes []string
				for i := range n.Classes {
					classes = append(classes, n.Classes[i].Class)
				}
				return classes
			}},
		},
		devices:   func(nodes []node, _ *listed) api.DeviceCounts { return inventory.TotalOfNodes(nodes).Devices },
		uncertain: func(n node) bool { return n.Devices.FreeIsUpperBound },

		proposes: cli.Propose("node"),
		reads:    inventory.StateReads(snapshot.ResourceNodes, snapshot.ResourcePods, snapshot.ResourcePodGroups, snapshot.ResourceClasses, snapshot.ResourceDaemonSets),
		asks:     []string{snapshot.ResourceNodes, snapshot.ResourceSlices}, unused: inventory.UnusedByNodes(),
		items: func(ctx context.Context, from *listed) ([]node, error) {
			nodes, err := from.inventory.NodeList(ctx)
			if err == nil {
				err = forecast.AddPlaceableOn(ctx, from.cluster, nodes)
			}
			if n := from.inventory.Elsewhere(); n > 0 {
				from.notes = append(from.notes, fmt.Sprintf("%s that several nodes can reach not counted: kubectl dra pools has them", english.Count(n, "device")))
			}
			list := pointers(nodes)
			all, others = len(list), 0
			for _, n := range list {
				if !concernsDevices(n) {
					others++
				}
			}
			return list, err
		},
		keep: func(n node, asked *request) bool {
			if problems {
				return len(n.Problems) > 0
			}
			return len(asked.patterns) > 0 || concernsDevices(n)
		},
		table: plain(tables.Nodes),
		total: func(nodes []node, _ *listed) string {
			text := tables.NodeTotal(inventory.TotalOfNodes(nodes))
			if others > 0 && len(nodes)+others == all {
				text += fmt.Sprintf("; %s without devices %s left out", english.Count(others, "node"), english.Plural(others, "is", "are"))
			}
			return text
		},
	})
}

// concernsDevices reports whether a node has to do with devices, or has problems.
func concernsDevices(n *api.ListedNode) bool {
	return len(n.Drivers) > 0 || n.Pods > 0 || n.Devices.Total+n.Devices.Gone > 0 || len(n.Problems) > 0
}
