// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// statusFlags are the flags of status.
type statusFlags struct {
	reading  *cli.ReadingFlags
	output   *cli.OutputFlags
	commands bool
}

// statusOptions are the parsed flags.
type statusOptions struct {
	reader  *cli.Reader
	printer *cli.Printer
	streams genericiooptions.IOStreams
}

func newStatus(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	f := &statusFlags{reading: cli.NewReadingFlags(config), output: cli.NewOutputFlags()}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show on one screen what is wrong and what mends it",
		Long: `Show the condition of a cluster on one screen: how much of each DeviceClass is
used, the causes behind the pods that do not run, and what is about to happen.

A cause is what is behind pods that wait, pods that cannot work with their
devices, and findings of 'kubectl dra doctor': a cordoned node, a taint, a pool
that is incomplete, a class that does not exist, a template that asks for more
than any node has, a class whose devices are all in use. The worst is first.
Each names who suffers from it, who can act and the next step. "When mended" is
the answer of the scheduler's own allocator, which decides all pods that wait
again, one after another, with the cause mended; it is left out where that
cannot be known. A pod can have several causes.

-o wide shows all causes, with their evidence and the commands, and -o json has
an id for each cause, which stays the same as long as the cause does.

With -n, the pods of that namespace count, and causes that concern neither it
nor what all namespaces share are left out.

The exit code is 1 if a cause keeps pods from running or something does not
work, else 2 if something could not be checked, else 0.`,
		Example: `  # What is wrong, and what mends it?
  kubectl dra status

  # All causes, with evidence and commands
  kubectl dra status -o wide

  # What concerns a team
  kubectl dra status -n research

  # The ids of the causes in a snapshot
  kubectl dra status --snapshot cluster.yaml.gz -o \
    jsonpath='{range .causes[*]}{.id} {.message}{"\n"}{end}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.toOptions(cmd, streams)
			if err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	f.reading.AddTo(cmd)
	f.reading.AddPreviewTo(cmd)
	f.output.AddTo(cmd)
	cli.AddFlags(cmd.Flags(), cli.GroupOutput, func(flags *pflag.FlagSet) {
		flags.BoolVar(&f.commands, "commands", false, "Show the commands of the next steps.")
	})
	return cmd
}

func (f *statusFlags) toOptions(cmd *cobra.Command, streams genericiooptions.IOStreams) (*statusOptions, error) {
	o := &statusOptions{streams: streams}
	var err error
	if o.reader, err = f.reading.ToReader(cmd, streams); err != nil {
		return nil, err
	}
	if o.printer, err = f.output.ToPrinter(streams); err != nil {
		return nil, err
	}
	if o.printer.Names {
		return nil, cli.Usagef("Print ids with -o jsonpath='{.causes[*].id}'.", "-o name: a status has no name")
	}
	o.printer.Text.Commands = f.commands
	return o, nil
}

func (o *statusOptions) run(ctx context.Context) error {
	from, err := o.reader.Read(ctx, cli.Scope{AllNamespaces: true}.WithCauses())
	if err != nil {
		return err
	}
	found, err := cause.Find(ctx, cluster.New(from.Snap), cause.Options{Namespace: o.reader.Only})
	if err != nil {
		return err
	}
	if o.printer.Machine != nil {
		err = o.printer.Machine.PrintObj(found.Status, o.streams.Out)
	} else {
		err = render.Status(o.streams.Out, found.Status, o.printer.Text)
	}
	if err != nil {
		return fmt.Errorf("print the status: %w", err)
	}
	if from.NamespaceGone(o.reader.Only) {
		if err := cli.PrintNotes(o.streams, "namespace "+o.reader.Only+" does not exist"); err != nil {
			return err
		}
	}
	switch {
	case slices.ContainsFunc(found.Status.Causes, func(c api.Cause) bool { return c.Severity == api.SeverityError }):
		return &cli.OutcomeError{Code: cli.ExitDoesNotFit}
	case len(found.Status.NotChecked) > 0:
		return &cli.OutcomeError{Code: cli.ExitUndetermined}
	default:
		return nil
	}
}
