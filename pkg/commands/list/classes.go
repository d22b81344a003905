// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/tables"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// NewClasses returns the verb that lists DeviceClasses.
func NewClasses(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	type class = *api.Class
	cmd := &cobra.Command{
		Use:     "classes [NAME ...]",
		Aliases: []string{"class"},
		Short:   "List DeviceClasses: which devices they select, and who uses them",
		Long: `List DeviceClasses: how many devices match the selectors and are free, and how
many claims ask for the class and have devices of it. FAILING counts the devices
on which a selector fails; a CEL error on one device makes scheduling fail on
every node for claims of the class. -o wide shows the error and the selectors. ≤
and ≥ mark counts that are only bounds, because you are not permitted to list
all slices, or the claims of all namespaces.

PLACEABLE counts the claims for one device of the class that the scheduler's
allocator can place now, one after another, for pods without tolerations. A
device that can be shared has room for several. WAITING counts the pods that
wait for devices of the class. -o wide says how many such claims nodes take, and
why claims do not get the other devices that no claim has.

EXTENDED RESOURCE is the name under which pods can request devices of the class
in their limits. On a node where a device plugin offers the same name, the
scheduler uses only the device plugin, and devices of the class can only be
requested by claims. -o wide shows both side by side for groups of nodes, and
the resources of device plugins that no class serves; -o json and 'kubectl dra
tree node/' have each node.

A NAME can be a pattern like 'gpu.*'.`,
		Example: `  # All classes
  kubectl dra classes

  # Where are devices idle, and why? With selectors, failures and device plugins
  kubectl dra classes -o wide

  # How many devices of each are free, the most last
  kubectl dra classes --sort-by .free

  # Classes with a selector that fails on some device
  kubectl dra classes -o \
    jsonpath='{range .items[?(@.failing>0)]}{.name} {.failure}{"\n"}{end}'`,
	}
	return newCommand(streams, config, cmd, listing[class]{
		name: "Class", plural: "DeviceClasses", prefix: "deviceclass.resource.k8s.io/",
		names:  func(c class) []string { return []string{c.Name} },
		labels: func(c class) map[string]string { return c.Labels }, labelsOf: "their own",
		fields: []field[class]{
			{name: "metadata.name", of: func(c class) string { return c.Name }},
			{name: "extendedResource", of: func(c class) string { return c.ExtendedResource }},
		},
		uncertain: func(c class) bool { return c.FreeIsUpperBound || c.ClaimsAreLowerBounds || c.DevicesAreLowerBounds },

		proposes: cli.Propose("class"),
		reads:    inventory.StateReads(snapshot.ResourceNodes, snapshot.ResourcePods, snapshot.ResourceTemplates, snapshot.ResourceClasses), asks: []string{snapshot.ResourceClasses},
		items: func(ctx context.Context, from *listed) ([]class, error) {
			classes, err := from.inventory.Classes(ctx)
			if err == nil {
				err = forecast.AddPlaceable(ctx, from.cluster, classes)
			}
			return pointers(classes), err
		},
		unending: func(class class) string { return inventory.UnendingText(class.Failures) },
		table:    plain(tables.Classes),
		details:  classDetails,
		total: func(classes []class, from *listed) string {
			return tables.ClassTotal(inventory.TotalOfClasses(classes), from.asked.inWide("how"))
		},
	})
}

// classDetails shows idle devices and extended resources of the classes and, unless certain
// classes were asked for, extended resources that no class serves.
func classDetails(ctx context.Context, w io.Writer, classes []*api.Class, from *listed) error {
	var resources []api.ExtendedResource
	for _, class := range classes {
		resources = append(resources, class.ExtendedResources...)
	}
	if len(classes) == len(from.Snap.Classes) {
		others, err := from.inventory.PluginResources(ctx)
		if err != nil {
			return err
		}
		resources = append(resources, others...)
	}
	return tables.ClassDetails(w, classes, resources, render.Options{Width: cli.OutputWidth(w)})
}
