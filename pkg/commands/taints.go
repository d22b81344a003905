// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/allocator"
	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

func newTaints(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	flags := newListFlags(config, &api.Taint{}, "their DeviceTaintRules")
	cmd := &cobra.Command{
		Use:     "taints [KEY | RULE ...]",
		Aliases: []string{"taint"},
		Short:   "List device taints, and the pods that they evict",
		Long: `List the taints of devices: those that drivers set in their slices, by driver,
and those of DeviceTaintRules, also of rules that select no device.

PODS counts those that use a device with the taint. NEXT EVICTION is when the
next of them is evicted (effect NoExecute, not tolerated or not forever). ≥ and
? mark what may be more or sooner, where claims or pods could not be read. -o
wide adds the pods and the status of the rule; -o json has, for each pod,
whether and when it gets evicted and for how long it tolerates the taint.`,
		Example: `  # All taints
  kubectl dra taints

  # Which pods will be evicted?
  kubectl dra taints -o \
    jsonpath='{range .items[*].pods[?(@.evicted)]}{.name}{"\n"}{end}'

  # Only those of rules
  kubectl dra taints --field-selector rule!=

  # Which pods would a new rule evict?
  kubectl dra taints add --pool gpu-04 example.com/maintenance:NoExecute \
    --dry-run=client`,
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			options, err := flags.toOptions(cmd, args, listing{
				kind: "Taint", plural: "device taints", reads: stateReads(snapshot.ResourcePods), asks: []string{snapshot.ResourceSlices, snapshot.ResourceTaintRules},
				items: func(_ context.Context, from *listed) ([]api.Item, error) {
					now = from.snap.Now()
					if from.snap.Gap(snapshot.ResourcePods) != nil {
						from.notes = append(from.notes, "pods that could not be read may be evicted, too: counts with ≥ are bounds")
					}
					taints := from.inventory.Taints()
					from.notes = append(from.notes, taintsOff(from.alloc, taints)...)
					return asItems(taints), nil
				},
				table: func(items []api.Item) *metav1.Table {
					return render.Taints(typed[*api.Taint](items), now)
				},
				total: taintTotal,
				name:  func(item api.Item) string { return item.Names()[0] },
			}, streams)
			if err != nil {
				return err
			}
			return options.run(cmd.Context())
		},
	}
	flags.addTo(cmd, false)
	cmd.ValidArgsFunction = flags.reading.complete(proposeTaints)
	flags.complete(cmd)
	cmd.AddCommand(newTaintsPreview(streams, config), newTaintsAdd(streams, config), newTaintsRemove(streams, config))
	return cmd
}

// taintsOff notes the feature gates that are off and without which taints do
// nothing.
func taintsOff(alloc *allocator.Allocator, taints []api.Taint) []string {
	ofRules := func(t api.Taint) bool { return t.Rule != "" }
	switch {
	case len(taints) == 0:
		return nil
	case !alloc.FeatureEnabled("DRADeviceTaints"):
		return []string{"the feature gate DRADeviceTaints is off, so taints do nothing"}
	case !alloc.FeatureEnabled("DRADeviceTaintRules") && slices.ContainsFunc(taints, ofRules):
		return []string{"the feature gate DRADeviceTaintRules is off, so rules do nothing"}
	}
	return nil
}

func taintTotal(items []api.Item) string {
	devices, evicted, bound := map[string]bool{}, map[string]bool{}, false
	for _, t := range typed[*api.Taint](items) {
		for _, d := range t.Devices {
			devices[d] = true
		}
		bound = bound || t.PodsAreLowerBounds && t.Effect == string(resourceapi.DeviceTaintEffectNoExecute)
		for _, p := range t.Pods {
			if p.Evicted {
				evicted[p.Namespace+"/"+p.Name] = true
			}
		}
	}
	pods := english.Count(len(evicted), "pod")
	if bound {
		pods = render.AtLeast(len(evicted), true) + " pods"
	}
	return fmt.Sprintf("%s on %s; %s to be evicted", english.Count(len(items), "taint"), english.Count(len(devices), "device"), pods)
}
