// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/inventory"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

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
