// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/names"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
	"github.com/kubectl-dra/kubectl-dra/pkg/tui"
)

type topFlags struct {
	reading *cli.ReadingFlags
	once    bool
	mouse   bool
	color   string
}

type topOptions struct {
	reader  *cli.Reader
	once    bool
	mouse   bool
	color   bool
	streams genericiooptions.IOStreams
}

func newTop(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	flags := &topFlags{reading: cli.NewReadingFlags(config)}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch devices and claims on a dashboard",
		Long: `Show a dashboard that follows the cluster: what is used, which claims are
pending and why, what is tainted, broken or about to be evicted. From a class
you can go on to its pools, devices, claims and pods.

Keys 1 to 9 and 0 choose a view: overview, nodes, pools, devices, claims,
pending, classes, taints, findings of doctor, teams. Enter opens the selected
row, or explains what waits, and Esc goes back. f finds anything by name and
/ filters; w explains a claim, and ? has all keys of a view.

It shows the claims of all namespaces that you are permitted to read; -n selects
one. If the output is not a terminal, or with --once, the overview is printed as
text.`,
		Example: `  # The dashboard
  kubectl dra top

  # Look around in a file
  kubectl dra top --snapshot cluster.yaml.gz

  # Print the overview and exit
  kubectl dra top --once`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := flags.toOptions(cmd, streams)
			if err != nil {
				return err
			}
			return options.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&flags.once, "once", false, "Print the overview as text and exit.")
	cmd.Flags().BoolVar(&flags.mouse, "mouse", false, "Begin with the mouse on; the key m turns it on and off.")
	cmd.Flags().StringVar(&flags.color, "color", cli.ColorAuto, "Use colors: `WHEN` is auto, always or never.")
	flags.reading.AddTo(cmd)
	names.CompleteFlags(flags.reading, cmd)
	return cmd
}

func (f *topFlags) toOptions(cmd *cobra.Command, streams genericiooptions.IOStreams) (*topOptions, error) {
	color, err := cli.UseColor(f.color, streams.Out)
	if err != nil {
		return nil, err
	}
	reader, err := f.reading.ToReader(cmd, streams)
	if err != nil {
		return nil, err
	}
	_, isTerminal := cli.Terminal(streams.Out)
	_, canType := cli.Terminal(streams.In)
	once := f.once || !isTerminal || !canType || os.Getenv("TERM") == "dumb"
	return &topOptions{reader: reader, once: once, mouse: f.mouse, color: color, streams: streams}, nil
}

func (o *topOptions) run(ctx context.Context) error {
	options := tui.Options{Namespace: o.reader.Namespace, Env: os.Getenv, Mouse: o.mouse, Color: o.color}
	if o.once || !o.reader.Live() {
		from, err := o.reader.Read(ctx, cli.Scope{})
		if err != nil {
			return err
		}
		options.Source, options.Fixed, options.Name = tui.NewFixed(from.Snap), true, from.Snap.Source
		if o.once {
			return o.printOnce(ctx, options, from)
		}
		return tui.Run(ctx, options, o.streams.In, o.streams.Out)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	clients, err := collect.NewClients(o.reader.Config)
	if err != nil {
		return cli.Usagef("Check --kubeconfig, --context and the other flags, or read a saved cluster with --snapshot.", "%w", err)
	}
	bar := cli.NewProgress(o.streams.ErrOut, "Asking API server "+clients.Address())
	watcher, err := collect.Watch(ctx, clients, collect.Options{
		Gates: o.reader.Options.Gates, KubernetesVersion: o.reader.Options.KubernetesVersion,
		Namespace: clients.Namespace, Progress: bar.Report,
	})
	bar.Done()
	if err != nil {
		return err
	}
	options.Source, options.Name = watcher, clients.Address()
	return tui.Run(ctx, options, o.streams.In, o.streams.Out)
}

// topAsks are the resources without which there is no overview.
func topAsks() []string {
	return []string{snapshot.ResourceSlices, snapshot.ResourceClasses, snapshot.ResourceClaims}
}

// printOnce prints the overview. It shows the claims of all namespaces that may
// be read, so that those of one are enough.
func (o *topOptions) printOnce(ctx context.Context, options tui.Options, from *cli.Source) error {
	gaps := cli.GapsIn(from.Snap, topAsks(), o.reader.Namespace, false)
	gapErr := &cli.GapError{Doing: "show the overview", Gaps: gaps, Live: o.reader.Live(), Partial: len(gaps) < len(topAsks())}
	if len(gaps) > 0 && !gapErr.Partial {
		return gapErr
	}
	var incomplete *tui.IncompleteError
	err := tui.Once(ctx, options, cli.OutputWidth(o.streams.Out), o.streams.Out)
	switch {
	case err != nil && !errors.As(err, &incomplete):
		return err
	case len(gaps) > 0:
		return gapErr
	case incomplete != nil:
		return &cli.UnendingError{Doing: "show the overview", Reason: incomplete.Reason}
	default:
		return nil
	}
}
