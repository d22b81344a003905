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

func newClasses(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	flags := newListFlags(config)
	cmd := &cobra.Command{
		Use:     "classes [NAME ...]",
		Aliases: []string{"class"},
		Short:   "List DeviceClasses: which devices they select, and who uses them",
		Long: `List DeviceClasses: how many devices match the selectors and are free, and how
many claims ask for the class and have devices. FAILING counts the devices on
which a selector fails; one of them is enough for a claim of the class to fail
on all nodes. -o wide says how it fails, and shows the selectors and the nodes
where a device plugin advertises the extended resource of the class.

A NAME can be a pattern like 'gpu.*'.`,
		Example: `  # All classes
  kubectl dra classes

  # With selectors, failures and device plugins
  kubectl dra classes -o wide

  # Classes that select no device
  kubectl dra classes -o jsonpath='{range .items[?(@.devices==0)]}{.name}{"\n"}{end}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := flags.toOptions(cmd, args, listing{
				kind: "Class", plural: "DeviceClasses", reads: []string{snapshot.ResourceNodes, snapshot.ResourceClasses},
				items: func(ctx context.Context, from *listed) ([]inventory.Item, error) {
					classes, err := from.inventory.Classes(ctx)
					return asItems(classes), err
				},
				table: func(items []inventory.Item) *metav1.Table { return render.Classes(typed[*inventory.Class](items)) },
				total: classTotal,
				name:  func(item inventory.Item) string { return "deviceclass.resource.k8s.io/" + item.Names()[0] },
			}, streams)
			if err != nil {
				return err
			}
			return options.run(cmd.Context())
		},
	}
	flags.addTo(cmd, false)
	cmd.ValidArgsFunction = flags.reading.complete("class", "")
	flags.reading.completeFlags(cmd)
	return cmd
}

func classTotal(items []inventory.Item) string {
	failing := 0
	for _, class := range typed[*inventory.Class](items) {
		if class.Failing > 0 {
			failing++
		}
	}
	text := fmt.Sprintf("%d classes", len(items))
	if len(items) == 1 {
		text = "1 class"
	}
	if failing > 0 {
		text += fmt.Sprintf("; selectors of %d fail on some devices: -o wide says how", failing)
	}
	return text
}
