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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
)

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
