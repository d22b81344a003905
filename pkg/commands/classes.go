// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func newClasses(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	flags := newListFlags(config, &api.Class{}, "their own")
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

EXTENDED RESOURCE is the name under which pods can request devices of the class
in their limits. On a node where a device plugin offers the same name, the
scheduler uses only the device plugin, and devices of the class can only be
requested by claims. -o wide shows both side by side for groups of nodes, and
the resources of device plugins that no class serves; -o json and 'kubectl dra
tree node/' have each node.

A NAME can be a pattern like 'gpu.*'.`,
		Example: `  # All classes
  kubectl dra classes

  # With selectors, failures and device plugins
  kubectl dra classes -o wide

  # How many devices of each are free, the most last
  kubectl dra classes --sort-by .free

  # Classes with a selector that fails on some device
  kubectl dra classes -o \
    jsonpath='{range .items[?(@.failing>0)]}{.name} {.failure}{"\n"}{end}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := flags.toOptions(cmd, args, listing{
				kind: "Class", plural: "DeviceClasses", reads: stateReads(snapshot.ResourceNodes, snapshot.ResourcePods, snapshot.ResourceClasses), asks: []string{snapshot.ResourceClasses},
				items: func(ctx context.Context, from *listed) ([]api.Item, error) {
					classes, err := from.inventory.Classes(ctx)
					return asItems(classes), err
				},
				table:   func(items []api.Item) *metav1.Table { return render.Classes(typed[*api.Class](items)) },
				details: classDetails,
				total:   func(items []api.Item) string { return classTotal(items, flags.inWide("how")) },
				name:    func(item api.Item) string { return "deviceclass.resource.k8s.io/" + item.Names()[0] },
			}, streams)
			if err != nil {
				return err
			}
			return options.run(cmd.Context())
		},
	}
	flags.addTo(cmd, false)
	cmd.ValidArgsFunction = flags.reading.complete(proposeNames("class"))
	flags.complete(cmd)
	return cmd
}

// classDetails shows the extended resources of the classes and, unless certain
// classes were asked for, those that no class serves.
func classDetails(ctx context.Context, w io.Writer, items []api.Item, from *listed) error {
	var resources []api.ExtendedResource
	for _, class := range typed[*api.Class](items) {
		resources = append(resources, class.ExtendedResources...)
	}
	if len(items) == len(from.snap.Classes) {
		others, err := from.inventory.PluginResources(ctx)
		if err != nil {
			return err
		}
		resources = append(resources, others...)
	}
	return render.ExtendedResources(w, resources, render.Options{Width: outputWidth(w)})
}

func classTotal(items []api.Item, inWide string) string {
	failing := 0
	for _, class := range typed[*api.Class](items) {
		if class.Failing > 0 {
			failing++
		}
	}
	text := fmt.Sprintf("%d classes", len(items))
	if len(items) == 1 {
		text = "1 class"
	}
	if failing > 0 {
		text += fmt.Sprintf("; selectors of %d fail on some devices%s", failing, inWide)
	}
	return text
}
