// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

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

// newTaintAdd returns the verb that taints devices by a new rule.
func newTaintAdd(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	flags := &ruleChangeFlags{reading: cli.NewReadingFlags(config)}
	printing := cli.NewPrintFlags()
	cmd := &cobra.Command{
		Use:   "add KEY[=VALUE]:EFFECT",
		Short: "Taint devices by a DeviceTaintRule",
		Long: `Taint devices by a new DeviceTaintRule. EFFECT is NoSchedule (no more pods get
the devices), NoExecute (and those that have them are evicted) or None (it only
informs). Choose devices by at least one of --driver, --pool and --device.

First it shows which devices get the taint and which pods would be evicted:
when, whether the pod is bare (nothing creates it again) or owned, and whether a
pod like it fits afterwards. On a terminal it asks before pods get evicted, and
if no device matches now: the name may have a typo, or the devices come later.
Elsewhere that needs --yes, also if the pods that use the devices cannot be
read. A rule that selects all devices of the cluster needs --all-devices.

With -o, the rule is printed, and all else goes to standard error:
--dry-run=client -o yaml makes a manifest.`,
		Example: `  # Take one device out of service, and evict the pods that use it
  kubectl dra taints add --driver gpu.example.com --pool gpu-04 --device gpu-3 \
    example.com/xid=79:NoExecute

  # No new pods for the devices of a node; running pods stay
  kubectl dra taints add --pool gpu-04 example.com/maintenance:NoSchedule

  # What would happen?
  kubectl dra taints add --pool gpu-04 example.com/maintenance:NoExecute \
    --dry-run=client

  # A manifest to apply later
  kubectl dra taints add --pool gpu-04 example.com/maintenance:NoSchedule \
    --dry-run=client -o yaml > rule.yaml`,
		Args: OneTaint,
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := flags.toChange(cmd, streams)
			if err != nil {
				return err
			}
			rule, err := flags.Rule(args[0])
			if err != nil {
				return err
			}
			if printing.Output != "" {
				change.words = streams.ErrOut
				if change.printer, err = printing.ToPrinter(); err != nil {
					return err
				}
			}
			return change.add(cmd.Context(), rule)
		},
	}
	cmd.Flags().StringVar(&flags.Name, "name", "", "`NAME` of the rule. Without one it is made from the taint and the devices.")
	cmd.Flags().BoolVarP(&flags.yes, "yes", "y", false, "Do not ask before pods get evicted, or if no device matches.")
	cmd.Flags().BoolVar(&flags.All, "all-devices", false, "Taint all devices of the cluster.")
	cli.AddFlags(cmd.Flags(), cli.GroupOutput, func(flags *pflag.FlagSet) {
		flags.StringVarP(&printing.Output, "output", "o", "", fmt.Sprintf("`FORMAT` in which to print the rule, one of %s.", strings.Join(printing.AllowedFormats(), ", ")))
		printing.AddTo(flags)
	})
	// RegisterFlagCompletionFunc only fails for duplicates.
	_ = cmd.RegisterFlagCompletionFunc("output", cli.Fixed(printing.AllowedFormats()...))
	flags.addTo(cmd, "Taint")
	cmd.ValidArgsFunction = cli.CompleteWith(flags.reading, ProposeTaint)
	return cmd
}

func (c *ruleChange) add(ctx context.Context, rule *resourceapi.DeviceTaintRule) error {
	from, err := c.reader.Read(ctx, previewScope())
	if err != nil {
		return err
	}
	if slices.ContainsFunc(from.Snap.TaintRules, func(r *resourceapi.DeviceTaintRule) bool { return r.Name == rule.Name }) {
		return cli.Usagef("Choose another name with --name, or remove the other first: kubectl dra taints remove "+rule.Name,
			"add DeviceTaintRule %s: there is one of that name", rule.Name)
	}
	outcome, err := c.preview(ctx, from.Snap, rule)
	if err != nil {
		return err
	}
	if c.dryRun == cli.DryRunNone {
		if question := outcome.question(); question != "" {
			if err := c.confirm(question); err != nil {
				return err
			}
		}
	}
	object, err := c.create(ctx, rule)
	if err != nil {
		return err
	}
	if c.printer != nil {
		err = c.printer.PrintObj(object, c.streams.Out)
	} else {
		err = c.say("DeviceTaintRule %s %s", rule.Name, map[string]string{
			cli.DryRunClient: "would be added (dry run)", cli.DryRunServer: "added (server dry run)", cli.DryRunNone: "added",
		}[c.dryRun])
	}
	if err == nil && c.dryRun != cli.DryRunNone && outcome.gapErr != nil {
		return outcome.gapErr
	}
	return err
}

// create adds the rule, or returns the object that would be added, in the version of the
// server.
func (c *ruleChange) create(ctx context.Context, rule *resourceapi.DeviceTaintRule) (*unstructured.Unstructured, error) {
	if !c.reader.Live() {
		return objectOf(rule)
	}
	rules, err := c.rules()
	if err != nil {
		return nil, err
	}
	if c.dryRun == cli.DryRunClient {
		object, err := objectOf(rule)
		if err == nil {
			object.SetAPIVersion(rules.version.String())
		}
		return object, err
	}
	return rules.Create(ctx, rule, c.dryRunOption()...)
}

// newTaintRemove returns the verb that removes rules.
func newTaintRemove(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	flags := &ruleChangeFlags{reading: cli.NewReadingFlags(config)}
	all := false
	cmd := &cobra.Command{
		Use:   "remove (RULE | KEY[=VALUE][:EFFECT])",
		Short: "Remove DeviceTaintRules",
		Long: `Remove a DeviceTaintRule: the one of that name, or the one with the taint and,
if they are given, exactly the driver, pool and device. If several rules match,
they are listed and nothing is removed; --all removes all of them.

Taints that a driver sets in its slices cannot be removed like this.`,
		Example: `  # By name
  kubectl dra taints remove gpu-02-memory-errors

  # By what the rule says
  kubectl dra taints remove example.com/maintenance:NoSchedule
  kubectl dra taints remove gpu.example.com/ecc \
    --driver gpu.example.com --pool gpu-02 --device gpu-3

  # All rules with this taint, whatever devices they are for
  kubectl dra taints remove example.com/maintenance --all`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := flags.toChange(cmd, streams)
			if err != nil {
				return err
			}
			return change.remove(cmd.Context(), args[0], flags.Selector(), all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "Remove all rules that match, if there are several.")
	flags.addTo(cmd, "Only a rule for exactly the")
	cmd.ValidArgsFunction = cli.CompleteWith(flags.reading, cli.ProposeRules)
	return cmd
}

func (c *ruleChange) remove(ctx context.Context, what string, selector *resourceapi.DeviceTaintSelector, all bool) error {
	from, err := c.reader.Read(ctx, cli.Scope{AllNamespaces: true, Only: []string{snapshot.ResourceTaintRules}})
	if err != nil {
		return err
	}
	chosen := rulesLike(from.Snap.TaintRules, what, selector)
	if gap := from.Snap.Gap(snapshot.ResourceTaintRules); gap != nil && len(chosen) == 0 {
		return &cli.GapError{Doing: fmt.Sprintf("remove %q", what), Gaps: []snapshot.Gap{*gap}, Live: c.reader.Live()}
	}
	if len(chosen) == 0 {
		return cli.Missing(from.Snap, "", "rule", what)
	}
	if len(chosen) > 1 && !all {
		lines := make([]string, 0, len(chosen))
		for _, rule := range chosen {
			lines = append(lines, fmt.Sprintf("  %s  %s on %s", rule.Name, rule.Spec.Taint.String(), inventory.RuleSelector(rule)))
		}
		return cli.Usagef("Name one of them, choose with --driver, --pool and --device, or add --all to remove all of them.",
			"remove %q: %d DeviceTaintRules match, nothing was removed\n%s", what, len(chosen), strings.Join(lines, "\n"))
	}
	if c.dryRun == cli.DryRunClient {
		for _, rule := range chosen {
			if err := c.say("DeviceTaintRule %s would be removed (dry run)", rule.Name); err != nil {
				return err
			}
		}
		return nil
	}
	rules, err := c.rules()
	if err != nil {
		return err
	}
	for _, rule := range chosen {
		if err := rules.Delete(ctx, rule, c.dryRunOption()...); err != nil {
			return err
		}
		if err := c.say("DeviceTaintRule %s removed%s", rule.Name, c.suffix()); err != nil {
			return err
		}
	}
	return nil
}

// rulesLike finds rules by name or by content.
func rulesLike(rules []*resourceapi.DeviceTaintRule, what string, selector *resourceapi.DeviceTaintSelector) []*resourceapi.DeviceTaintRule {
	if selector == nil {
		for _, rule := range rules {
			if rule.Name == what {
				return []*resourceapi.DeviceTaintRule{rule}
			}
		}
	}
	key, value, effect, err := ParseTaint(what)
	if err != nil {
		return nil
	}
	var chosen []*resourceapi.DeviceTaintRule
	for _, rule := range rules {
		taint := rule.Spec.Taint
		if taint.Key == key && (value == "" || taint.Value == value) && (effect == "" || taint.Effect == effect) &&
			(selector == nil || rule.Spec.DeviceSelector != nil && sameSelector(*rule.Spec.DeviceSelector, *selector)) {
			chosen = append(chosen, rule)
		}
	}
	return chosen
}

func sameSelector(a, b resourceapi.DeviceTaintSelector) bool {
	return ptr.Equal(a.Driver, b.Driver) && ptr.Equal(a.Pool, b.Pool) && ptr.Equal(a.Device, b.Device)
}
