// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cause"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/collect"
)

// statusFlags are the flags of status.
type statusFlags struct {
	reading  *cli.ReadingFlags
	output   *cli.OutputFlags
	commands bool
	watch    bool
}

// statusOptions are the parsed flags.
type statusOptions struct {
	reader  *cli.Reader
	printer *cli.Printer
	watch   bool
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

-o wide shows all causes, with their evidence and the commands, and for each
class how many claims nodes can take, and why claims do not get the other
devices that no claim has. -o json has an id for each cause, which stays the
same as long as the cause does.

With -n, the pods of that namespace count, and causes that concern neither it
nor what all namespaces share are left out.

The exit code is 1 if a cause keeps pods from running or something does not
work, else 2 if something could not be checked, else 0.`,
		Example: `  # What is wrong, and what mends it?
  kubectl dra status

  # Where are devices idle, and why? All causes, with evidence and commands
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
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "After the first answer, show each change, until Ctrl-C.")
	f.reading.AddTo(cmd)
	f.reading.AddPreviewTo(cmd)
	f.output.AddTo(cmd)
	cli.AddFlags(cmd.Flags(), cli.GroupOutput, func(flags *pflag.FlagSet) {
		flags.BoolVar(&f.commands, "commands", false, "Show the commands of the next steps.")
	})
	return cmd
}

func (f *statusFlags) toOptions(cmd *cobra.Command, streams genericiooptions.IOStreams) (*statusOptions, error) {
	o := &statusOptions{watch: f.watch, streams: streams}
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
	if o.watch && len(f.reading.Previews) > 0 {
		return nil, cli.Usagef("Leave one of them out.", "--watch and --with-preview: the file replaces what would be watched")
	}
	if o.watch && !o.reader.Live() {
		return nil, cli.Usagef("Leave one of them out.", "--watch and --snapshot: nothing changes in a file")
	}
	o.printer.Text.Commands = f.commands
	return o, nil
}

func (o *statusOptions) run(ctx context.Context) error {
	if o.watch {
		return o.follow(ctx)
	}
	from, err := o.reader.Read(ctx, cli.Scope{AllNamespaces: true}.WithCauses())
	if err != nil {
		return err
	}
	status, err := o.find(ctx, from.Snap)
	if err != nil {
		return err
	}
	if err := o.print(status); err != nil {
		return err
	}
	switch {
	case slices.ContainsFunc(status.Causes, func(c api.Cause) bool { return c.Severity == api.SeverityError }):
		return &cli.OutcomeError{Code: cli.ExitDoesNotFit}
	case len(status.NotChecked) > 0:
		return &cli.OutcomeError{Code: cli.ExitUndetermined}
	default:
		return nil
	}
}

func (o *statusOptions) find(ctx context.Context, snap *snapshot.Snapshot) (*api.Status, error) {
	c := cluster.New(snap)
	found, err := cause.Find(ctx, c, cause.Options{Namespace: o.reader.Only})
	if err != nil {
		return nil, err
	}
	return found.Status, forecast.AddPlaceableTo(ctx, c, found.Status.Capacity)
}

func (o *statusOptions) print(status *api.Status) error {
	var err error
	if o.printer.Machine != nil {
		err = o.printer.Machine.PrintObj(status, o.streams.Out)
	} else {
		err = render.Status(o.streams.Out, status, o.printer.Text)
	}
	if err != nil {
		return fmt.Errorf("print the status: %w", err)
	}
	return nil
}

// watchPause is how long changes are collected before the status is found again.
const watchPause = time.Second

// follow prints the status, and again when it has changed, until the context is done. A terminal
// shows the last one alone.
func (o *statusOptions) follow(ctx context.Context) error {
	watcher, _, err := o.reader.Watch(ctx, cli.Scope{AllNamespaces: true, ComputeDomains: true})
	if err != nil {
		return err
	}
	_, isTerminal := cli.Terminal(o.streams.Out)
	isTerminal = isTerminal && o.printer.Machine == nil
	var last *api.Status
	following := &cli.Follower{Watcher: watcher, Kind: "the cluster", Beside: o.streams.ErrOut, Pause: watchPause}
	return following.Follow(ctx, func(ctx context.Context) error {
		if _, trouble := watcher.Trouble(); last != nil && trouble != nil {
			return nil
		}
		snap, err := watcher.Problems(ctx)
		var lost *collect.ServerError
		if last != nil && errors.As(err, &lost) {
			// What was printed stays until the connection is back.
			return nil
		}
		if err != nil {
			return err
		}
		status, err := o.find(ctx, snap)
		if err != nil {
			return err
		}
		switch {
		case isTerminal:
			_, err = io.WriteString(o.streams.Out, ansi.EraseEntireScreen+ansi.CursorHomePosition)
		case last != nil && reflect.DeepEqual(withoutTimes(last), withoutTimes(status)):
			return nil
		case last != nil && o.printer.Machine == nil:
			_, err = fmt.Fprintln(o.streams.Out)
		}
		if err != nil {
			return fmt.Errorf("print the status: %w", err)
		}
		last = status
		return o.print(status)
	})
}

// withoutTimes returns a status without what changes as time goes by.
func withoutTimes(s *api.Status) *api.Status {
	out := *s
	out.Pods.LongestSeconds = 0
	out.Causes = slices.Clone(s.Causes)
	for i := range out.Causes {
		out.Causes[i].LongestSeconds = 0
	}
	out.Upcoming = slices.Clone(s.Upcoming)
	for i := range out.Upcoming {
		out.Upcoming[i].Message = ""
	}
	return &out
}
