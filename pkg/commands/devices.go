// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

type devicesFlags struct {
	*listFlags
	free, allocated, tainted bool
	driver, pool, node       string
	class, where             string
	columns                  []string
}

func newDevices(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	flags := &devicesFlags{listFlags: newListFlags(config)}
	cmd := &cobra.Command{
		Use:     "devices [DEVICE | POOL/DEVICE | DRIVER/POOL/DEVICE ...]",
		Aliases: []string{"device"},
		Short:   "List devices: who has them, what is free",
		Long: `List the devices of all ResourceSlices, one a line: for which node, in which state,
and which claim and pods have it.

STATE is Free, Allocated, Shared (claims have shares of it), Blocked (its
counters are used up by other partitions), Tainted (and not allocated) or
Unusable (the scheduler's allocator does not look at it). -o wide adds taints,
consumed capacity, network data and the reason.

A DEVICE can be a pattern like 'gpu-*'.`,
		Example: `  # Which devices are free?
  kubectl dra devices --free

  # Who has the devices of a node?
  kubectl dra devices --node node-17

  # Which would a selector choose?
  kubectl dra devices --where 'device.attributes["gpu.nvidia.com"].productName.startsWith("A100")'

  # With some attributes of theirs
  kubectl dra devices --columns productName,memory

  # The holder of one device, for a script
  kubectl dra devices gpu.nvidia.com/node-17/gpu-3 -o jsonpath='{.items[*].holders[*].claim}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := flags.toOptions(cmd, args, listing{
				kind: "Device", plural: "devices", reads: []string{snapshot.ResourceNodes, snapshot.ResourcePods, snapshot.ResourceClasses, snapshot.ResourcePodGroups},
				items: func(ctx context.Context, from *listed) ([]inventory.Item, error) {
					devices, err := flags.selected(ctx, from)
					return asItems(devices), err
				},
				keep: flags.keep,
				table: func(items []inventory.Item) *metav1.Table {
					return render.Devices(typed[*inventory.Device](items), flags.columns)
				},
				total: deviceTotal,
				name:  func(item inventory.Item) string { return item.Names()[0] },
			}, streams)
			if err != nil {
				return err
			}
			return options.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.free, "free", false, "Only devices that are free.")
	f.BoolVar(&flags.allocated, "allocated", false, "Only devices that a claim has, or a share of.")
	f.BoolVar(&flags.tainted, "tainted", false, "Only devices with a taint.")
	f.StringVar(&flags.driver, "driver", "", "Only devices of this `DRIVER`.")
	f.StringVar(&flags.pool, "pool", "", "Only devices of this `POOL`.")
	f.StringVar(&flags.node, "node", "", "Only devices for this `NODE` alone.")
	f.StringVar(&flags.class, "class", "", "Only devices of this DeviceClass, `CLASS`.")
	f.StringVar(&flags.where, "where", "", "Only devices for which this `CEL` expression is true, as in the selector of a request.")
	f.StringSliceVar(&flags.columns, "columns", nil, "Show these `ATTRIBUTES` or capacities, too, each in a column of its own.")
	flags.addTo(cmd, false)
	cmd.ValidArgsFunction = flags.reading.complete("device", "")
	flags.reading.completeFlags(cmd)
	return cmd
}

// selected lists the devices that a class or an expression selects. On some an
// expression may fail: they are not selected, and the count is told.
func (f *devicesFlags) selected(ctx context.Context, from *listed) ([]inventory.Device, error) {
	var selectors []resourceapi.DeviceSelector
	if f.class != "" {
		class := from.snap.Class(f.class)
		if class == nil {
			return nil, usagef("List what there is: kubectl dra classes", "read --class: DeviceClass %s not found in %s", f.class, from.snap.Source)
		}
		selectors = append(selectors, class.Spec.Selectors...)
	}
	if f.where != "" {
		selectors = append(selectors, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: f.where}})
	}
	if len(selectors) == 0 {
		return from.inventory.Devices(), nil
	}
	if err := from.alloc.Compile(selectors); err != nil {
		return nil, usagef("It is a CEL expression over device.driver, device.attributes and device.capacity.", "read --where: %w", err)
	}
	var devices []inventory.Device
	failing, failure := 0, error(nil)
	all := from.alloc.Devices()
	for i := range all {
		matches, err := from.alloc.Selects(ctx, selectors, &all[i])
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			failing++
			if failure == nil {
				failure = err
			}
		case matches:
			if device, ok := from.inventory.Device(all[i].ID); ok {
				devices = append(devices, device)
			}
		}
	}
	if failing > 0 {
		from.notes = append(from.notes, fmt.Sprintf("left out %s on which a selector fails: %v", counted(failing, "device"), failure))
	}
	return devices, nil
}

func (f *devicesFlags) keep(item inventory.Item) bool {
	d, ok := item.(*inventory.Device)
	return ok &&
		(!f.free || d.State == inventory.DeviceFree) &&
		(!f.allocated || d.State == inventory.DeviceAllocated || d.State == inventory.DeviceShared) &&
		(!f.tainted || len(d.Taints) > 0) &&
		(f.driver == "" || d.Driver == f.driver) &&
		(f.pool == "" || d.Pool == f.pool) &&
		(f.node == "" || d.Node == f.node)
}

// deviceTotal counts the devices by state.
func deviceTotal(items []inventory.Item) string {
	counts := map[inventory.DeviceState]int{}
	for _, d := range typed[*inventory.Device](items) {
		counts[d.State]++
	}
	var parts []string
	for _, state := range []inventory.DeviceState{
		inventory.DeviceFree, inventory.DeviceAllocated, inventory.DeviceShared,
		inventory.DeviceBlocked, inventory.DeviceTainted, inventory.DeviceUnusable,
	} {
		if counts[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[state], strings.ToLower(string(state))))
		}
	}
	return counted(len(items), "device") + ": " + strings.Join(slices.Clip(parts), ", ")
}
