// Copyright The kubectl-dra Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "github.com/kubectl-dra/kubectl-dra/pkg/api/v1alpha1"
	"github.com/kubectl-dra/kubectl-dra/pkg/cluster"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/cli"
	"github.com/kubectl-dra/kubectl-dra/pkg/commands/manifest"
	"github.com/kubectl-dra/kubectl-dra/pkg/english"
	"github.com/kubectl-dra/kubectl-dra/pkg/explain"
	"github.com/kubectl-dra/kubectl-dra/pkg/forecast"
	"github.com/kubectl-dra/kubectl-dra/pkg/render"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot"
	"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/files"
)

// fitFlags are the flags of fit.
type fitFlags struct {
	reading  *cli.ReadingFlags
	output   *cli.OutputFlags
	files    []string
	replicas int
	added    []string
	shape    forecast.ClassShape
}

// fitOptions are the parsed flags.
type fitOptions struct {
	args     []string
	targets  []snapshot.Argument
	files    []string
	replicas int
	added    []cli.AddedNodes
	shape    forecast.ClassShape
	reader   *cli.Reader
	printer  *cli.Printer
	streams  genericiooptions.IOStreams
}

func newFit(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	f := &fitFlags{reading: cli.NewReadingFlags(config), output: cli.NewOutputFlags(cli.FormatSVG)}
	cmd := &cobra.Command{
		Use:   "fit [NAME | TYPE/NAME | -f FILE | --class CLASS]",
		Short: "Count how many more copies of a pod or a claim fit",
		Long: `Count how many more copies of a pod, a workload or a claim fit now, on which
nodes, and what stops the next one; and how many fit once all claims are
released. One copy after another gets its devices from the scheduler's own
allocator, and they are reserved for the next one, with CPU, memory and all else
that the node has to have. Quotas limit the number, too.

A bare NAME is a ResourceClaim. Copies of a workload are copies of its pod;
copies of a claim or a template are claims like it, each for a pod that needs
nothing else. With -f, it is a target in a file, in the cluster as if the
objects in the file were applied. With --class, it is a claim with one request.
With --same, claims from templates have one more constraint: all devices of a
claim have the same value of an attribute, as of a PCI root or a NUMA node.

Without a target, claims are counted for 1, 2, 4 and more devices of each class
and for all that the claims of the cluster ask for: how many more fit now, how
many if pods that use devices were on other nodes, which move of a pod wins the
most, and how many fit once all claims are released.

Where each device belongs to one node, the number is exact: it does not depend
on which node the scheduler takes first. Where nodes depend on each other,
because they share devices, volumes or a claim, or because of affinity or
topology spread, there are two numbers: as many were placed one after another,
and counting proves that there cannot be more than that.

With --add, the question is about a cluster with more nodes like one of it,
empty and with devices of their own; with --with-preview, about one where a
driver has started.

The exit code is 0 if at least --replicas copies fit now, 1 if not, 2 if that
cannot be determined; without a target, 0 if all could be counted, else 2.`,
		Example: `  # How many more replicas fit, and what stops the next one?
  kubectl dra fit sts/embed -n serving

  # In CI: do three of these fit into the cluster of this file?
  kubectl dra fit -f train.yaml --replicas 3 --snapshot cluster.yaml.gz

  # How many more claims for 4 devices of a class, on one pcieRoot each?
  kubectl dra fit --class gpu.example.com --count 4 \
    --same resource.kubernetes.io/pcieRoot

  # And how many replicas if the devices of each were on one NUMA node?
  kubectl dra fit sts/embed -n serving --same resource.kubernetes.io/numaNode

  # What is there room for, and what is lost because devices are scattered?
  kubectl dra fit

  # And with two more nodes like gpu-03?
  kubectl dra fit sts/embed -n serving --add node=gpu-03,count=2

  # Only the number, for a script
  kubectl dra fit sts/embed -n serving -o jsonpath='{.now.atLeast}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.toOptions(cmd, args, streams)
			if err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.files, "filename", "f", nil, "Count copies of what is in this `FILE`; - is standard input. Can be repeated.")
	flags.IntVar(&f.replicas, "replicas", 1, "How many copies `N` have to fit for exit code 0.")
	flags.StringArrayVar(&f.added, "add", nil, "Count with more nodes like one of the cluster: `node=NAME` or node=NAME,count=N. Can be repeated.")
	flags.StringVar(&f.shape.Class, "class", "", "Count claims for devices of the DeviceClass `CLASS`.")
	flags.Int64Var(&f.shape.Count, "count", 1, "How many devices `N` each claim is for, with --class.")
	flags.StringVar(&f.shape.Where, "where", "", "The CEL `EXPRESSION` that the devices have to match, with --class.")
	flags.StringVar(&f.shape.Same, "same", "", "The `ATTRIBUTE` that the devices of a claim must have in common, besides what a target asks.")
	f.reading.AddTo(cmd)
	f.reading.AddPreviewTo(cmd)
	f.output.AddTo(cmd)
	cmd.ValidArgsFunction = cli.CompleteWith(f.reading, cli.ProposeTargets)
	cli.CompleteFlags(f.reading, cmd)
	// RegisterFlagCompletionFunc only fails for duplicates.
	_ = cmd.RegisterFlagCompletionFunc("add", cli.CompleteWith(f.reading, cli.ProposeAdded))
	_ = cmd.RegisterFlagCompletionFunc("same", cli.CompleteWith(f.reading, cli.ProposeAttributes))
	for _, name := range []string{"replicas", "count"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return cmd
}

func (f *fitFlags) toOptions(cmd *cobra.Command, args []string, streams genericiooptions.IOStreams) (*fitOptions, error) {
	o := &fitOptions{args: args, files: f.files, replicas: f.replicas, shape: f.shape, streams: streams}
	var err error
	switch {
	case f.shape.Class != "" && len(args)+len(f.files) > 0:
		return nil, cli.Usagef(cli.HelpHint(cmd), "--class describes a claim: it does not go with a target or -f")
	case f.shape.Class == "" && (cmd.Flags().Changed("count") || cmd.Flags().Changed("where")):
		return nil, cli.Usagef(cli.HelpHint(cmd), "--count and --where describe a claim: they need --class")
	case f.shape.Class == "" && len(args)+len(f.files) == 0 && cmd.Flags().Changed("same"):
		return nil, cli.Usagef("Write NAME, TYPE/NAME, -f FILE or --class CLASS, for example sts/embed.", "--same: there is nothing to count copies of")
	case f.shape.Class == "" && len(args)+len(f.files) == 0 && cmd.Flags().Changed("replicas"):
		return nil, cli.Usagef("Write NAME, TYPE/NAME, -f FILE or --class CLASS, for example sts/embed.", "--replicas: there is nothing to count copies of")
	case f.replicas < 1:
		return nil, cli.Usagef(cli.HelpHint(cmd), "--replicas: expected a number from 1 on, found %d", f.replicas)
	case f.shape.Count < 1 || f.shape.Count > resourceapi.AllocationResultsMaxSize:
		return nil, cli.Usagef(cli.HelpHint(cmd), "--count: expected a number from 1 to %d, which is the most that a claim can have, found %d", resourceapi.AllocationResultsMaxSize, f.shape.Count)
	case f.shape.Same != "" && !strings.Contains(f.shape.Same, "/"):
		return nil, cli.Usagef("List them with: kubectl dra attributes -o wide", "--same: expected DOMAIN/NAME of an attribute, found %q", f.shape.Same)
	}
	if len(args) > 0 {
		if o.targets, err = cli.ParseTargets(args); err != nil {
			return nil, err
		}
		if len(o.targets) > 1 {
			return nil, cli.Usagef("Ask about one after the other.", "expected one target, found %d", len(o.targets))
		}
	}
	if o.added, err = cli.ParseAdded(f.added); err != nil {
		return nil, err
	}
	if err := cli.OnceStdin(f.files, f.reading.Paths, f.reading.Previews); err != nil {
		return nil, err
	}
	if o.reader, err = f.reading.ToReader(cmd, streams); err != nil {
		return nil, err
	}
	if o.reader.Live() {
		if err := cli.CheckTargets(o.targets); err != nil {
			return nil, err
		}
	}
	if o.printer, err = f.output.ToPrinter(streams); err != nil {
		return nil, err
	}
	if o.printer.Names {
		return nil, cli.Usagef("Print the nodes with -o jsonpath='{.nodes[*].names}'.", "-o name: a count has no name")
	}
	return o, nil
}

func (o *fitOptions) run(ctx context.Context) error {
	var manifests *snapshot.Snapshot
	if len(o.files) > 0 {
		var err error
		if manifests, err = files.Manifests(ctx, o.files, o.reader.Options); err != nil {
			return err
		}
	}
	scope := cli.Scope{Manifests: manifests, Creates: true}
	if len(o.targets) > 0 {
		scope.Target = &o.targets[0]
	}
	from, err := o.reader.Read(ctx, scope)
	if err != nil {
		return cli.WithSuggestion(o.args, err)
	}
	if len(o.targets)+len(o.files) == 0 && o.shape.Class == "" {
		return o.countShapes(ctx, from)
	}
	bar := cli.NewProgress(o.streams.ErrOut, "Counting copies")
	found, err := o.count(ctx, from, manifests)
	bar.Done()
	if err != nil {
		return cli.WithSuggestion(o.args, err)
	}
	if err := o.print(found, func(w io.Writer) error { return render.Fit(w, found, o.printer.Text) }); err != nil {
		return err
	}
	if code := cli.VerdictCode(found.Verdict); code != cli.ExitFits {
		return &cli.OutcomeError{Code: code}
	}
	return nil
}

// print writes an answer as text or for machines.
func (o *fitOptions) print(found runtime.Object, text func(io.Writer) error) error {
	if o.printer.Machine == nil {
		return text(o.streams.Out)
	}
	if err := o.printer.Machine.PrintObj(found, o.streams.Out); err != nil {
		return fmt.Errorf("print fit: %w", err)
	}
	return nil
}

// countShapes counts the shapes of all claims and classes.
func (o *fitOptions) countShapes(ctx context.Context, from *cli.Source) error {
	snap, err := cli.AddNodes(from.Snap, o.added)
	if err != nil {
		return err
	}
	s := cluster.New(snap)
	bar := cli.NewProgress(o.streams.ErrOut, "Counting claims")
	found, err := forecast.Shapes(ctx, s, func(shape *api.ClaimShape, done, total int) {
		bar.Say(fmt.Sprintf("Counting claims for %s of class %s (%d of %d)", english.Count(shape.Devices, "device"), shape.Class, done+1, total))
	})
	bar.Done()
	if err != nil {
		return err
	}
	if err := o.print(found, func(w io.Writer) error { return render.FitShapes(w, found, o.printer.Text) }); err != nil {
		return err
	}
	if slices.ContainsFunc(found.Shapes, func(s api.ShapeFit) bool { return s.Stop != nil && s.Now.AtMost == nil }) {
		return &cli.OutcomeError{Code: cli.ExitUndetermined}
	}
	return nil
}

// count counts copies in a cluster with the additions of the flags.
func (o *fitOptions) count(ctx context.Context, from *cli.Source, manifests *snapshot.Snapshot) (*api.Fit, error) {
	snap := from.Snap
	var given *manifest.Manifests
	if manifests != nil {
		given = manifest.Place(manifests, cmp.Or(from.Namespace, metav1.NamespaceDefault), o.files)
		snap = given.Over(snap)
	}
	snap, err := cli.AddNodes(snap, o.added)
	if err != nil {
		return nil, err
	}
	s := cluster.New(snap)
	shape, snap, err := o.shapeIn(s, from, given)
	if err != nil {
		return nil, err
	}
	s = s.Amended(snap)
	return forecast.CountShape(ctx, s, shape, o.replicas)
}

// shapeIn returns the shape of copies, and the snapshot with the objects that they need.
func (o *fitOptions) shapeIn(s *cluster.Cluster, from *cli.Source, given *manifest.Manifests) (*forecast.Shape, *snapshot.Snapshot, error) {
	if o.shape.Class != "" {
		if _, err := cli.ClassSelectors(from, o.shape.Class); err != nil {
			return nil, nil, err
		}
		shape, snap := forecast.ShapeOfClass(s.Snapshot, cmp.Or(from.Namespace, metav1.NamespaceDefault), o.shape)
		return shape, snap, nil
	}
	options, err := o.target(s, from, given)
	if err != nil {
		return nil, nil, err
	}
	shape, snap, err := forecast.ShapeFor(s, options)
	if err == nil && o.shape.Same != "" {
		snap, err = shape.Constrain(snap, o.shape.Same)
	}
	return shape, snap, err
}

// target returns the named target, or the only one in the files.
func (o *fitOptions) target(s *cluster.Cluster, from *cli.Source, given *manifest.Manifests) (explain.Options, error) {
	if len(o.targets) > 0 {
		ref := o.targets[0]
		bare := len(o.args) == 1 && !strings.Contains(o.args[0], "/")
		if bare && s.Snapshot.Gap(snapshot.ResourceClaims) == nil && cli.BareKind(s.Snapshot, from.Namespace, ref.Name) == api.KindPod {
			ref.Resource = "pods"
		}
		return cli.ResolveTarget(from, s.Snapshot, ref)
	}
	targets, _, err := given.Targets(s.WantsDevices)
	if err != nil {
		return explain.Options{}, err
	}
	if len(targets) > 1 {
		list := make([]string, 0, len(targets))
		for _, t := range targets {
			list = append(list, t.Object.Argument())
		}
		return explain.Options{}, cli.Usagef("Name one of them: "+english.Sample(list, 10), "find a target in the files: expected one, found %d", len(targets))
	}
	return targets[0], nil
}
