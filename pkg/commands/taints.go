// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func newTaints(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	flags := newListFlags(config)
	cmd := &cobra.Command{
		Use:     "taints [KEY | RULE ...]",
		Aliases: []string{"taint"},
		Short:   "List device taints, and whom they evict and when",
		Long: `List the taints of devices: those that drivers set in their slices, by driver, and
those of DeviceTaintRules, also of rules that select no device.

PODS counts those that use a device with the taint. NEXT EVICTION is when the
next of them gets evicted (effect NoExecute, not tolerated or not for ever).
-o wide adds the pods and the status of the rule; -o json has, for each pod,
whether and when it gets evicted and for how long it tolerates the taint.`,
		Example: `  # All taints
  kubectl dra taints

  # Which pods will be evicted, and when?
  kubectl dra taints -o jsonpath='{range .items[*].pods[?(@.evicted)]}{.namespace}/{.name} {.evictionAt}{"\n"}{end}'

  # Only those of rules
  kubectl dra taints --field-selector rule!=`,
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			options, err := flags.toOptions(cmd, args, listing{
				kind: "Taint", plural: "device taints", reads: []string{snapshot.ResourceNodes, snapshot.ResourcePods, snapshot.ResourceClasses, snapshot.ResourcePodGroups},
				items: func(_ context.Context, from *listed) ([]inventory.Item, error) {
					now = from.snap.Now()
					return asItems(from.inventory.Taints()), nil
				},
				table: func(items []inventory.Item) *metav1.Table {
					return render.Taints(typed[*inventory.Taint](items), now)
				},
				total: taintTotal,
				name:  func(item inventory.Item) string { return item.Names()[0] },
			}, streams)
			if err != nil {
				return err
			}
			return options.run(cmd.Context())
		},
	}
	flags.addTo(cmd, false)
	cmd.ValidArgsFunction = flags.reading.complete("rule", "")
	flags.reading.completeFlags(cmd)
	cmd.AddCommand(newTaintsPreview(streams, config), newTaintsAdd(streams, config), newTaintsRemove(streams, config))
	return cmd
}

func taintTotal(items []inventory.Item) string {
	devices, evicted := map[string]bool{}, map[string]bool{}
	for _, t := range typed[*inventory.Taint](items) {
		for _, d := range t.Devices {
			devices[d] = true
		}
		for _, p := range t.Pods {
			if p.Evicted {
				evicted[p.Namespace+"/"+p.Name] = true
			}
		}
	}
	return fmt.Sprintf("%s on %s; %s to be evicted", counted(len(items), "taint"), counted(len(devices), "device"), counted(len(evicted), "pod"))
}
