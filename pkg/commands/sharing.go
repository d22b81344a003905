// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
)

// sharingOptions are the parsed flags of sharing.
type sharingOptions struct {
	class   string
	reader  *cli.Reader
	printer *cli.Printer
	streams genericiooptions.IOStreams
}

func newSharing(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	reading, output, commands := cli.NewReadingFlags(config), cli.NewOutputFlags(), false
	cmd := &cobra.Command{
		Use:     "sharing CLASS",
		Aliases: []string{"share"},
		Short:   "Show how pods can share the devices of a class, with manifests",
		Long: `Show in which ways pods can share a device of a DeviceClass on this cluster:

- One ResourceClaim that several pods, or several containers of a pod, use. That
  works with every device.
- Several claims on one device, for devices with allowMultipleAllocations: each
  claim gets a part of their capacity.
- Partitions of one device, which draw on its counters, such as MIG devices.
- Settings of the driver, such as time-slicing: opaque parameters that the
  class, claims or templates have. Their meaning is the driver's, and is not
  verified.

The scheduler's own allocator counts how many claims one empty device takes, and
decides whether two such pods fit now. --commands prints a command for each way
that applies a claim or a template with two pods to the namespace of -n; their
image does nothing. -o json has the manifests, too.

The exit code is 0 if two pods of one of the manifests fit now, 1 if not, 2 if
that cannot be determined.`,
		Example: `  # Can two pods share a GPU?
  kubectl dra sharing gpu.example.com

  # With manifests to start from
  kubectl dra sharing nic.example.com -n storage --commands

  # Only the manifest for partitions
  kubectl dra sharing gpu-partition.example.com -o \
    jsonpath='{.ways[?(@.method=="Partitions")].manifest}'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("List them with: kubectl dra classes", "expected the name of one DeviceClass, found %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o := &sharingOptions{class: args[0], streams: streams}
			var err error
			if o.reader, err = reading.ToReader(cmd, streams); err != nil {
				return err
			}
			if o.printer, err = output.ToPrinter(streams); err != nil {
				return err
			}
			if o.printer.Names {
				return cli.Usagef("Print the ways with -o jsonpath='{.ways[*].method}'.", "-o name: a way to share devices has no name")
			}
			o.printer.Text.Commands = commands
			return o.run(cmd.Context())
		},
	}
	reading.AddTo(cmd)
	output.AddTo(cmd)
	cli.AddFlags(cmd.Flags(), cli.GroupOutput, func(flags *pflag.FlagSet) {
		flags.BoolVar(&commands, "commands", false, "Show the commands that apply a manifest for each way.")
	})
	cmd.ValidArgsFunction = cli.CompleteWith(reading, cli.Propose("class"))
	cli.CompleteFlags(reading, cmd)
	return cmd
}

func (o *sharingOptions) run(ctx context.Context) error {
	from, err := o.reader.Read(ctx, cli.Scope{AllNamespaces: true, Creates: true})
	if err != nil {
		return err
	}
	if _, err := cli.ClassSelectors(from, o.class); err != nil {
		return err
	}
	bar := cli.NewProgress(o.streams.ErrOut, "Counting claims")
	found, err := forecast.FindSharing(ctx, cluster.New(from.Snap), from.Snap.Class(o.class), cmp.Or(from.Namespace, metav1.NamespaceDefault))
	bar.Done()
	if err != nil {
		return err
	}
	if o.printer.Machine != nil {
		err = o.printer.Machine.PrintObj(found, o.streams.Out)
	} else {
		err = render.Sharing(o.streams.Out, found, o.printer.Text)
	}
	if err != nil {
		return fmt.Errorf("print ways to share devices: %w", err)
	}
	is := func(v api.Verdict) bool {
		return slices.ContainsFunc(found.Ways, func(w api.SharingWay) bool { return w.Verdict == v })
	}
	switch {
	case is(api.Fits):
		return nil
	case is(api.Undetermined):
		return &cli.OutcomeError{Code: cli.ExitUndetermined}
	default:
		return &cli.OutcomeError{Code: cli.ExitDoesNotFit}
	}
}
