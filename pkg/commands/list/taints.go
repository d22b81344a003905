// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/render/tables"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// NewTaints returns the verb that lists device taints, with the verbs that change them
// below it.
func NewTaints(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	type item = *api.Taint
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
	}
	cmd.AddCommand(newTaintPreview(streams, config), newTaintAdd(streams, config), newTaintRemove(streams, config))
	return newCommand(streams, config, cmd, listing[item]{
		name: "Taint", plural: "device taints",
		names: func(t item) []string {
			names := []string{inventory.TaintText(t), t.Key}
			if t.Rule != "" {
				names = append(names, t.Rule)
			}
			return names
		},
		labels: func(t item) map[string]string { return t.Labels }, labelsOf: "their DeviceTaintRules",
		fields: []field[item]{
			{name: "key", of: func(t item) string { return t.Key }},
			{name: "value", of: func(t item) string { return t.Value }},
			{
				name: "effect", of: func(t item) string { return t.Effect },
				values: texts(resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNoExecute, resourceapi.DeviceTaintEffectNone),
			},
			{name: "rule", of: func(t item) string { return t.Rule }},
			{name: "driver", of: func(t item) string { return t.Driver }},
		},
		uncertain: func(t item) bool { return t.ClaimsAreLowerBounds || t.PodsAreLowerBounds },

		proposes: cli.ProposeTaints,
		reads:    inventory.StateReads(snapshot.ResourcePods), asks: []string{snapshot.ResourceSlices, snapshot.ResourceTaintRules},
		items: func(_ context.Context, from *listed) ([]item, error) {
			if from.Snap.Gap(snapshot.ResourcePods) != nil {
				from.notes = append(from.notes, "pods that could not be read may be evicted, too: counts with ≥ are bounds")
			}
			taints := from.inventory.Taints()
			from.notes = append(from.notes, taintsOff(from.cluster, taints)...)
			for _, rule := range from.Snap.TaintRules {
				if text := from.cluster.Taints.OpenRuleText(rule); text != "" {
					from.notes = append(from.notes, text)
				}
			}
			return pointers(taints), nil
		},
		table: func(taints []item, from *listed) *metav1.Table {
			return tables.Taints(taints, from.Snap.Now())
		},
		total: func(taints []item, _ *listed) string { return tables.TaintTotal(inventory.TotalOfTaints(taints)) },
	})
}

// taintsOff notes the disabled feature gates without which taints do nothing.
func taintsOff(c *cluster.Cluster, taints []api.Taint) []string {
	ofRules := func(t api.Taint) bool { return t.Rule != "" }
	switch {
	case len(taints) == 0:
		return nil
	case !c.Gates.Enabled("DRADeviceTaints"):
		return []string{"the feature gate DRADeviceTaints is off, so taints do nothing"}
	case !c.Gates.Enabled("DRADeviceTaintRules") && slices.ContainsFunc(taints, ofRules):
		return []string{"the feature gate DRADeviceTaintRules is off, so rules do nothing"}
	}
	return nil
}
