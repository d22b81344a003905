// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/migration"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// migrateFlags are the flags of migrate.
type migrateFlags struct {
	reading  *cli.ReadingFlags
	output   *cli.OutputFlags
	classes  []string
	commands bool
	diff     bool
	plan     string
}

// migrateOptions are the parsed flags.
type migrateOptions struct {
	reader  *cli.Reader
	printer *cli.Printer
	classes map[string]string
	diff    bool
	plan    *api.Migration
	streams genericiooptions.IOStreams
}

func newMigrate(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	f := &migrateFlags{reading: cli.NewReadingFlags(config), output: cli.NewOutputFlags()}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Show what has to change to move from device plugins to DRA",
		Long: `Show what has to change so that pods get from DRA drivers what device plugins
give them, such as nvidia.com/gpu: which nodes offer hardware in which way, what
becomes of each workload that asks for extended resources, in which order to
switch nodes and move workloads, and which quotas do not limit claims.

A workload stays as it is if a DeviceClass has its resource as
extendedResourceName: the scheduler takes the device plugin on nodes that have
one, and the driver on the others. Else it needs a ResourceClaimTemplate for
each resource, which --commands prints with the change of the workload. The
scheduler's own allocator decides whether one pod of it would fit then, in place
of its present pods. Node selectors for labels of NVIDIA's feature discovery
become expressions where devices publish the same value; others stay. What a
device plugin shares, by time-slicing or MPS, cannot be asked for by a claim for
each pod: the configuration of NVIDIA's plugin says so, or labels of nodes.

The allocator also decides the order: which pods that leave a node wait then,
and which workloads fit, with what the driver is expected to publish. --commands
prints how to switch a node, and how to go back.

The class of a resource is the one that names it, or else the one whose driver
has its name: gpu.nvidia.com for nvidia.com/gpu. --class chooses another one.
Drivers and device plugins do not tell which hardware they have, so names decide
whether a node has the same hardware twice.

Nothing changes in the cluster. The exit code is 1 if a workload cannot move, or
if a step that --verify compares was begun and is not as planned, else 2 if it
is not known what becomes of a workload, else 0.`,
		Example: `  # What would have to change?
  kubectl dra migrate

  # For a team, with the commands
  kubectl dra migrate -n research --commands

  # The changes of its workloads as a unified diff
  kubectl dra migrate -n research --diff

  # Choose the class for a resource
  kubectl dra migrate --class example.com/decoder=gpu.example.com

  # Keep the plan, and see after each step how far it is
  kubectl dra migrate -o json > plan.json
  kubectl dra migrate --verify plan.json

  # With templates and edits, to be reviewed
  kubectl dra migrate -n research -o yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.toOptions(cmd, streams)
			if err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringArrayVar(&f.classes, "class", nil, "DeviceClass in place of an extended resource: `RESOURCE=CLASS`. Can be repeated.")
	cmd.Flags().StringVar(&f.plan, "verify", "", "Compare the cluster with an earlier plan in `FILE`, as -o json or -o yaml wrote it.")
	f.reading.AddTo(cmd)
	f.output.AddTo(cmd)
	cli.AddFlags(cmd.Flags(), cli.GroupOutput, func(flags *pflag.FlagSet) {
		flags.BoolVar(&f.commands, "commands", false, "Show the commands that make the changes.")
		flags.BoolVar(&f.diff, "diff", false, "Show only the changes of workloads, as a unified diff of the fields that have to do with devices.")
	})
	return cmd
}

func (f *migrateFlags) toOptions(cmd *cobra.Command, streams genericiooptions.IOStreams) (*migrateOptions, error) {
	o := &migrateOptions{classes: map[string]string{}, diff: f.diff, streams: streams}
	if f.diff && f.commands {
		return nil, cli.Usagef("Leave one of them out.", "--diff and --commands: only one can be used")
	}
	for _, given := range f.classes {
		resource, class, found := strings.Cut(given, "=")
		if !found || resource == "" || class == "" {
			return nil, cli.Usagef("Write --class RESOURCE=CLASS, such as --class nvidia.com/gpu=gpu.nvidia.com.", "--class: expected RESOURCE=CLASS, found %q", given)
		}
		o.classes[resource] = class
	}
	var err error
	if o.plan, err = earlierPlan(f.plan); err != nil {
		return nil, err
	}
	if o.reader, err = f.reading.ToReader(cmd, streams); err != nil {
		return nil, err
	}
	if o.printer, err = f.output.ToPrinter(streams); err != nil {
		return nil, err
	}
	if o.printer.Names {
		return nil, cli.Usagef("Print the workloads with -o jsonpath='{.workloads[*].object}'.", "-o name: a plan has no name")
	}
	o.printer.Text.Commands = f.commands
	return o, nil
}

// earlierPlan reads a plan from a file; it is nil without one.
func earlierPlan(path string) (*api.Migration, error) {
	if path == "" {
		return nil, nil
	}
	const way = "Write it before the first step: kubectl dra migrate -o json > plan.json"
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, cli.Usagef(way, "--verify: %w", err)
	}
	plan := &api.Migration{}
	if err := yaml.UnmarshalStrict(text, plan); err != nil {
		return nil, cli.Usagef(way, "--verify %s: %w", path, err)
	}
	if plan.Kind != "Migration" || plan.APIVersion != api.APIVersion {
		return nil, cli.Usagef(way, "--verify %s: expected kind Migration of %s, found %q of %q", path, api.APIVersion, plan.Kind, plan.APIVersion)
	}
	return plan, nil
}

func (o *migrateOptions) run(ctx context.Context) error {
	from, err := o.reader.Read(ctx, cli.Scope{AllNamespaces: true, Creates: true, DevicePlugins: true})
	if err != nil {
		return err
	}
	found, err := migration.Find(ctx, cluster.New(from.Snap), migration.Options{Namespace: o.reader.Only, Classes: o.classes, Diffs: o.diff, Plan: o.plan})
	if unknown := (*migration.ClassError)(nil); errors.As(err, &unknown) {
		return cli.Usagef("List them with: kubectl dra classes", "--class: %v", err)
	}
	if unknown := (*migration.ResourceError)(nil); errors.As(err, &unknown) {
		return cli.Usagef("List what workloads ask for, and what nodes offer, with: kubectl dra migrate", "--class: %v", err)
	}
	if err != nil {
		return err
	}
	switch {
	case o.printer.Machine != nil:
		err = o.printer.Machine.PrintObj(found, o.streams.Out)
	case o.diff:
		err = render.MigrationDiff(o.streams.Out, found, o.printer.Text)
	default:
		err = render.Migration(o.streams.Out, found, o.printer.Text)
	}
	if err != nil {
		return fmt.Errorf("print what has to change: %w", err)
	}
	is := func(way api.MigrationWay) bool {
		return slices.ContainsFunc(found.Workloads, func(w api.MigrationWorkload) bool { return w.Way == way })
	}
	switch {
	case is(api.MigrationNotPossible), slices.ContainsFunc(found.Verified, func(c api.MigrationCheck) bool { return c.State == api.MigrationDiffers }):
		return &cli.OutcomeError{Code: cli.ExitDoesNotFit}
	case is(api.MigrationUnknown):
		return &cli.OutcomeError{Code: cli.ExitUndetermined}
	default:
		return nil
	}
}
