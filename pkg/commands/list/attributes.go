// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator/selector"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/tables"
)

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
