// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/tables"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

type devicesFlags struct {
	free, allocated, tainted bool
	driver, pool, node       string
	class, where             string
	columns                  []string
	// selected are the devices that class and where choose, nil for all.
	selected map[string]bool
}

// NewDevices returns the verb that lists devices.
func NewDevices(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	type device = *api.Device
	flags := &devicesFlags{}
	cmd := &cobra.Command{
		Use:     "devices [DEVICE | POOL/DEVICE | DRIVER/POOL/DEVICE ...]",
		Aliases: []string{"device"},
		Short:   "List devices: their state, and who uses them",
		Long: `List the devices of all ResourceSlices, one a line: for which node, in which
state, which claim it is allocated to and which pods use it.

STATE is Free, Allocated, Shared (claims have shares of it), Blocked (its
counters are used up by other partitions), Tainted (and not allocated), Unusable
(the scheduler's allocator ignores it), Gone (it is allocated to a claim, and no
ResourceSlice has it any more: its driver is away), or Unpublished (the same,
but its driver reports in the claim that it is Ready: a network driver moved it
into the pod). state=Unhealthy selects by health, in any state. Only whole
devices are Free: a Shared one may have capacity for more claims, and partitions
that overlap use the same counters; 'kubectl dra pools -o wide' shows what is
available.

HEALTH is what kubelets report, and each condition that a driver has set to an
unexpected value, such as Ready=False. -o wide adds taints, consumed
capacity, network data and the reasons.
A question mark after a state means that it is not certain, because you are not
permitted to list the claims of all namespaces.

A DEVICE can be a pattern like 'gpu-*'.`,
		Example: `  # Which devices are free?
  kubectl dra devices --free

  # Who has the devices of a node?
  kubectl dra devices --node gpu-02

  # Which devices are of this class?
  kubectl dra devices --class gpu.example.com

  # Which would a selector choose?
  kubectl dra devices --where \
    'device.attributes["gpu.example.com"].productName.startsWith("Atlas")'

  # Those that are certainly free
  kubectl dra devices --field-selector state=Free,uncertain=false

  # With some attributes of theirs
  kubectl dra devices --columns productName,memory

  # The holder of one device, for a script
  kubectl dra devices gpu.example.com/gpu-02/gpu-4 \
    -o jsonpath='{.items[*].holders[*].claim}'`,
	}
	f := cmd.Flags()
	f.BoolVar(&flags.free, "free", false, "Only devices that are free as a whole; shared ones may have capacity, too.")
	f.BoolVar(&flags.allocated, "allocated", false, "Only devices that a claim has, or a share of.")
	f.BoolVar(&flags.tainted, "tainted", false, "Only devices with a taint.")
	f.StringVar(&flags.driver, "driver", "", "Only devices of this `DRIVER`.")
	f.StringVar(&flags.pool, "pool", "", "Only devices of this `POOL`.")
	f.StringVar(&flags.node, "node", "", "Only devices for this `NODE` alone. A note counts others that it can reach.")
	f.StringVar(&flags.class, "class", "", "Only devices of the DeviceClass `CLASS`.")
	f.StringVar(&flags.where, "where", "", "Only devices for which this `CEL` expression is true, as in the selector of a request.")
	f.StringSliceVar(&flags.columns, "columns", nil, "Show these `ATTRIBUTES` or capacities, too, each in a column of its own.")
	return newCommand(streams, config, cmd, listing[device]{
		name: "Device", plural: "devices",
		names:  func(d device) []string { return []string{inventory.DeviceName(d), d.Pool + "/" + d.Name, d.Name} },
		labels: func(d device) map[string]string { return d.Labels }, labelsOf: "their ResourceSlices",
		fields: []field[device]{
			{name: "driver", of: func(d device) string { return d.Driver }},
			{name: "pool", of: func(d device) string { return d.Pool }},
			{name: "device", of: func(d device) string { return d.Name }},
			{name: "node", of: func(d device) string { return d.Node }},
			{
				name: "state", of: func(d device) string { return string(d.State) },
				values: append(texts(inventory.DeviceStates()...), string(api.DeviceStateUnpublished), string(api.DeviceStateGone)),
				// A device is unhealthy in any of these states.
				also: "health",
			},
			{name: "uncertain", of: func(d device) string { return strconv.FormatBool(d.Uncertain) }, values: []string{"true", "false"}},
			{
				name: "health", of: func(d device) string { return d.Health },
				// The health is empty if nobody reports it.
				values: texts(corev1.ResourceHealthStatusHealthy, corev1.ResourceHealthStatusUnhealthy, corev1.ResourceHealthStatusUnknown, ""),
			},
		},
		devices: func(items []device, from *listed) api.DeviceCounts {
			return from.inventory.TotalOfDevices(items).Counts
		},
		uncertain: func(d device) bool { return d.Uncertain },

		proposes: cli.ProposeDevices,
		prepare: func(o *lister[device]) error {
			if flags.class != "" {
				o.reads = append(o.reads, snapshot.ResourceClasses)
			}
			o.asks = flags.asks(o.byFields)
			if o.forPeople() && o.sortBy == "" && flags.class == "" && flags.where == "" && len(flags.columns) == 0 {
				o.unused = inventory.UnusedByDevices()
			}
			return nil
		},
		reads: inventory.StateReads(snapshot.ResourceNodes, snapshot.ResourcePods, snapshot.ResourcePodGroups), asksEverywhere: true,
		items: func(ctx context.Context, from *listed) ([]device, error) {
			devices := from.inventory.Devices()
			if err := flags.unknown(from, devices); err != nil {
				return nil, err
			}
			from.notes = append(from.notes, stillTaken(from.inventory, "listed")...)
			err := flags.choose(ctx, from)
			return pointers(devices), err
		},
		absent: flags.absent,
		keep:   flags.keep,
		table: func(items []device, _ *listed) *metav1.Table {
			return tables.Devices(items, flags.columns)
		},
		total: func(items []device, from *listed) string {
			return tables.DeviceTotal(from.inventory.TotalOfDevices(items))
		},
	})
}

// asks returns the resources without which it is not known which devices to list: the
// sources of the chosen properties. A selector for uncertain devices expects uncertainty.
func (f *devicesFlags) asks(chosen fields.Selector) []string {
	asked := []string{snapshot.ResourceSlices}
	byState := false
	for _, r := range chosen.Requirements() {
		if r.Field == "uncertain" {
			return asked
		}
		byState = byState || r.Field == "state"
	}
	if f.free || f.allocated || byState {
		asked = append(asked, snapshot.ResourceClaims)
	}
	if f.free || f.tainted || byState {
		asked = append(asked, snapshot.ResourceTaintRules)
	}
	if f.class != "" {
		asked = append(asked, snapshot.ResourceClasses)
	}
	return asked
}

// stillTaken returns notes on devices that are not listed, or not counted, and still
// allocated.
func stillTaken(have *inventory.Inventory, what string) []string {
	count := have.StillTaken()
	if count == 0 {
		return nil
	}
	return []string{fmt.Sprintf("not %s: %s of earlier generations that the allocator still takes for nodes without newer slices; "+
		"kubectl dra slices --field-selector state=Obsolete -o wide has their slices", what, english.Count(count, "device"))}
}

// absent fails for a driver, a pool or a node that does not exist.
func (f *devicesFlags) absent(from *listed) error {
	for _, err := range append(cli.AbsentDevices(from.Snap, f.driver, f.pool, ""), cli.AbsentNode(from.Snap, f.node)) {
		if err != nil {
			return err
		}
	}
	return nil
}

// unknown notes missing columns, and devices that --node leaves out although the node can reach
// them.
func (f *devicesFlags) unknown(from *listed, devices []api.Device) error {
	for _, name := range f.columns {
		if !slices.ContainsFunc(devices, func(d api.Device) bool { return tables.Attribute(&d, name) != "" }) {
			from.notes = append(from.notes, fmt.Sprintf("no device has an attribute or a capacity %s%s", name, cli.Near(from.Snap, "", "attribute", name)))
		}
	}
	if f.node == "" {
		return nil
	}
	count, err := from.inventory.Reached(f.node)
	if count > 0 {
		from.notes = append(from.notes, fmt.Sprintf("node %s can reach %s besides that other nodes can reach, too: kubectl dra tree node/%s has their pools",
			f.node, english.Count(count, "device"), f.node))
	}
	return err
}

// choose finds the devices that a class or an expression selects. Devices on which an
// expression fails are not selected, and counted in a note.
func (f *devicesFlags) choose(ctx context.Context, from *listed) error {
	var selectors []resourceapi.DeviceSelector
	if f.class != "" {
		ofClass, err := cli.ClassSelectors(from.Source, f.class)
		if err != nil {
			return err
		}
		selectors = append(selectors, ofClass...)
	}
	if f.where != "" {
		if err := from.cluster.Gates.Selectors().Compile(f.where).Err; err != nil {
			return cli.Usagef("It is a CEL expression over device.driver, device.attributes and device.capacity.", "compile --where: %w", err)
		}
		selectors = append(selectors, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: f.where}})
	}
	if len(selectors) == 0 {
		return nil
	}
	ids, failures, err := from.inventory.Choose(ctx, selectors)
	from.notes = append(from.notes, cli.FailureNotes(failures)...)
	from.unending = inventory.UnendingText(failures)
	f.selected = map[string]bool{}
	for _, id := range ids {
		f.selected[id.String()] = true
	}
	return err
}

func (f *devicesFlags) keep(d *api.Device, _ *request) bool {
	return (f.selected == nil || f.selected[inventory.DeviceName(d)]) &&
		(!f.free || d.State == api.DeviceStateFree) &&
		(!f.allocated || d.State == api.DeviceStateAllocated || d.State == api.DeviceStateShared || d.State == api.DeviceStateUnpublished || d.State == api.DeviceStateGone) &&
		(!f.tainted || len(d.Taints) > 0) &&
		(f.driver == "" || d.Driver == f.driver) &&
		(f.pool == "" || d.Pool == f.pool) &&
		(f.node == "" || d.Node == f.node)
}

// NewAttributes returns the verb that lists attributes of devices.
func NewAttributes(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	type attribute = *api.Attribute
	of := func(a attribute) (domain, name string) { return selector.Split(resourceapi.QualifiedName(a.Name), "") }
	choice := &cli.DeviceFlags{}
	cmd := &cobra.Command{
		Use:     "attributes [NAME ...]",
		Aliases: []string{"attribute", "attrs"},
		Short:   "List what devices publish, and expressions to select them by it",
		Long: `List every attribute and capacity that devices publish, by its qualified name:
its type, on how many devices it is, and its values with the number of devices
that have each, the most frequent first.

-o wide adds an expression about the most frequent value for the selector of a
request, and for how many devices it is true. Each expression was evaluated as
the scheduler does: it fails for none of the devices that are listed. Where only
some of them have the attribute, the expression tests that first. With --class
or --driver, it is only about these devices: with a CEL error on one device,
scheduling fails on every node.

A NAME is DOMAIN/NAME or the part after the slash, and can be a pattern like
'*memory'.`,
		Example: `  # What can selectors ask for?
  kubectl dra attributes

  # Of the devices of a class, with an expression for each
  kubectl dra attributes --class gpu.example.com -o wide

  # All values of one attribute
  kubectl dra attributes productName -o \
    jsonpath='{range .items[*].values[*]}{.devices} {.value}{"\n"}{end}'

  # Only capacities
  kubectl dra attributes --field-selector source=capacity

  # An expression for a claim
  kubectl dra attributes productName -o jsonpath='{.items[0].expression}'`,
	}
	choice.AddTo(cmd.Flags())
	return newCommand(streams, config, cmd, listing[attribute]{
		name: "Attribute", plural: "attributes",
		names: func(a attribute) []string {
			_, name := of(a)
			return []string{a.Name, name}
		},
		fields: []field[attribute]{
			{name: "domain", of: func(a attribute) string { domain, _ := of(a); return domain }},
			{name: "name", of: func(a attribute) string { _, name := of(a); return name }},
			{name: "source", of: func(a attribute) string { return string(a.Source) }, values: texts(api.SourceAttributes, api.SourceCapacity)},
		},

		proposes: cli.ProposeAttributes,
		prepare: func(o *lister[attribute]) error {
			o.reads, o.asks = choice.Reads(), choice.Asks()
			return nil
		},
		items: func(ctx context.Context, from *listed) ([]attribute, error) {
			return attributesOf(ctx, from, choice)
		},
		table: plain(tables.Attributes),
		total: func(items []attribute, from *listed) string {
			return tables.AttributeTotal(inventory.TotalOfAttributes(items), from.asked.inWide("an expression for each"))
		},
	})
}

// attributesOf lists the attributes of the chosen devices.
func attributesOf(ctx context.Context, from *listed, flags *cli.DeviceFlags) ([]*api.Attribute, error) {
	wanted, err := flags.Choice(from.Source)
	if err != nil {
		return nil, err
	}
	devices, failures, err := from.inventory.ChosenDevices(ctx, wanted)
	if err != nil {
		return nil, err
	}
	list, notes, err := from.inventory.Attributes(ctx, devices)
	from.notes = append(from.notes, cli.FailureNotes(failures)...)
	from.notes = append(from.notes, notes...)
	from.unending = inventory.UnendingText(failures)
	return pointers(list), err
}
