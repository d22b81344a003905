// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/diff"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
)

// diffFlags are the flags of diff.
type diffFlags struct {
	reading *cli.ReadingFlags
	output  *cli.OutputFlags
	target  string
}

// diffOptions are the parsed flags.
type diffOptions struct {
	// old is the file of the old state, reader reads the new one.
	old     string
	reader  *cli.Reader
	printer *cli.Printer
	// name is the target as the user wrote it, target what it stands for; nil for all pods that
	// wait.
	name    string
	target  *snapshot.Argument
	streams genericiooptions.IOStreams
}

func newDiff(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	f := &diffFlags{reading: cli.NewReadingFlags(config), output: cli.NewOutputFlags()}
	cmd := &cobra.Command{
		Use:   "diff OLD [NEW]",
		Short: "Show what changed since a snapshot, and why pods fit no longer",
		Long: `Compare two snapshots of a cluster, or a snapshot with the cluster as it is:
show the pods that wait and whose answer differs, the causes that began and
ended, the classes whose numbers of devices differ, and what changed. OLD and
NEW are files or directories, as --snapshot takes them; - is standard input. A
recording has the time behind its name, FILE@TIME, as for --at, or is taken at
its end. What came and went between the two times is not shown.

An answer that differs has the changes that made the difference: with these
undone in the new state, and nothing else, the scheduler's own allocator gives
the old answer, and undoing a part of them is not enough. Changes that are
undone together are those of a node, a pool, a class, a rule, a pod with its
claims, or the version and feature gates of the cluster. If no such set of up to
4 changes is found, it says so. A pod that is new, or that ran before, is
compared with the answer that it would have got.

Versions of objects, heartbeats of nodes and ages are no differences, nor are
slices that a driver published again with the same devices. Objects with the
same change are one line; -o wide names each object and the fields that differ.

The exit code is 0 if nothing differs, 1 if something does, 2 if nothing differs
and not all could be compared, 3 for wrong usage or unreadable input, 4 if the
cluster cannot be read.`,
		Example: `  # What is different from yesterday?
  kubectl dra diff yesterday.yaml.gz

  # Why does this pod fit no longer?
  kubectl dra diff yesterday.yaml.gz --target pod/pretrain-0 -n research

  # What changed between two snapshots, with each object and field?
  kubectl dra diff old.yaml.gz new.yaml.gz -o wide

  # Only what changed, for a script
  kubectl dra diff old.yaml.gz new.yaml.gz -o \
    jsonpath='{range .changes[*]}{.message}{"\n"}{end}'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 || slices.Contains(args, "") {
				return cli.Usagef("Save one with: kubectl dra snapshot -o cluster.yaml.gz", "read the arguments: expected the snapshot OLD and at most one more, NEW; found %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.toOptions(cmd, args, streams)
			if err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&f.target, "target", "", "Compare the answers about this `TYPE/NAME` alone: anything that 'kubectl dra why' explains.")
	f.reading.AddTo(cmd)
	f.output.AddTo(cmd)
	cli.CompleteFlags(f.reading, cmd)
	// It only fails for duplicates.
	_ = cmd.RegisterFlagCompletionFunc("target", cli.CompleteWith(f.reading, cli.ProposeTargets))
	return cmd
}

func (f *diffFlags) toOptions(cmd *cobra.Command, args []string, streams genericiooptions.IOStreams) (*diffOptions, error) {
	o := &diffOptions{old: args[0], name: f.target, streams: streams}
	if len(args) == 2 {
		if len(f.reading.Paths) > 0 {
			return nil, cli.Usagef("Leave one of them out.", "NEW and --snapshot: both are the new state")
		}
		f.reading.Paths = args[1:]
	}
	if err := cli.OnceStdin(args[:1], f.reading.Paths); err != nil {
		return nil, err
	}
	var err error
	if o.reader, err = f.reading.ToReader(cmd, streams); err != nil {
		return nil, err
	}
	o.reader.SaysSource = true
	if f.target != "" {
		targets, err := cli.ParseTargets([]string{f.target})
		if err != nil {
			return nil, err
		}
		o.target = &targets[0]
	}
	if o.printer, err = f.output.ToPrinter(streams); err != nil {
		return nil, err
	}
	if o.printer.Names {
		return nil, cli.Usagef("Print what changed with -o jsonpath='{.changes[*].message}'.", "-o name: a difference has no name")
	}
	return o, nil
}

func (o *diffOptions) run(ctx context.Context) error {
	bar := cli.NewProgress(o.streams.ErrOut, "Reading "+o.old)
	old, err := o.reader.ReadFiles(ctx, []string{o.old}, "", o.reader.Options)
	bar.Done()
	if err != nil {
		return err
	}
	from, err := o.reader.Read(ctx, cli.Scope{Target: o.target, AllNamespaces: true, Evicts: true, Ends: true}.WithCauses())
	if err != nil {
		return err
	}
	opts := diff.Options{Namespace: o.reader.Only, Fields: o.printer.Machine != nil || o.printer.Text.Wide}
	if o.target != nil {
		if opts.Target, err = o.resolve(from, old); err != nil {
			return cli.WithSuggestion([]string{o.name}, err)
		}
	}
	d, err := diff.Between(ctx, old, from.Snap, opts)
	if err != nil {
		return cli.WithSuggestion([]string{o.name}, err)
	}
	if err := o.print(d); err != nil {
		return err
	}
	switch {
	case diff.Any(d):
		return &cli.OutcomeError{Code: cli.ExitDoesNotFit}
	case len(d.NotCompared) > 0:
		return &cli.OutcomeError{Code: cli.ExitUndetermined}
	default:
		return nil
	}
}

// resolve finds the target in the new state or, if it is gone, in the old one.
func (o *diffOptions) resolve(from *cli.Source, old *snapshot.Snapshot) (*explain.Options, error) {
	before := *from
	before.Snap = old
	var first *explain.Options
	for _, source := range []*cli.Source{from, &before} {
		ref := *o.target
		if !strings.Contains(o.name, "/") && cli.BareKind(source.Snap, source.Namespace, ref.Name) == api.KindPod {
			ref.Resource = "pods"
		}
		options, err := cli.ResolveTarget(source, source.Snap, ref)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(cli.Candidates(source.Snap), func(c cli.Candidate) bool { return c.Ref() == options.Object }) {
			return &options, nil
		}
		if first == nil {
			first = &options
		}
	}
	return first, nil
}

func (o *diffOptions) print(d *api.Difference) error {
	var err error
	if o.printer.Machine != nil {
		err = o.printer.Machine.PrintObj(d, o.streams.Out)
	} else {
		err = render.Difference(o.streams.Out, d, o.printer.Text)
	}
	if err != nil {
		return fmt.Errorf("print the difference: %w", err)
	}
	return nil
}
